"""How large the batches are that topics take: learnt from refusals, and from the brokers' settings.

A broker that answers MESSAGE_TOO_LARGE does not name its limit. One DescribeConfigs request brings
the limit, if this client may ask. The verdict on the batch waits for the answer, but not for long.
Without an answer the limit is taken for half of what was refused.

    a batch is refused ─► ask ─► learn ─► it is split, and no larger ones are made or sent
                                    ▲
    metadata.max.age.ms is over ────┘  the setting may have changed: ask again

What is learnt of a topic holds until then, or until the topic is deleted and created again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kafka_fast.config import CommonSettings
from kafka_fast.control.context import Context
from kafka_fast.control.producer.producer_messages import BatchRow
from kafka_fast.control.requests.call import AnswerSource, Call
from kafka_fast.control.requests.meanings import Done, Meaning, meaning_of
from kafka_fast.control.requests.open_call import OpenCall
from kafka_fast.control.requests.targets import AnyNode
from kafka_fast.errors import ErrorCode, KafkaError
from kafka_fast.logs import get_logger
from kafka_fast.protocol.apis.configs.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kafka_fast.values import Value, field

logger = get_logger("kafka_fast.producer")

TOPIC_RESOURCE = 2

SETTINGS: dict[int, str] = {
    ErrorCode.MESSAGE_TOO_LARGE: "max.message.bytes",
    ErrorCode.RECORD_LIST_TOO_LARGE: "segment.bytes",
}
"""The topic's setting behind an error code."""

LIMIT_PATIENCE = 2.0
"""Seconds that a verdict waits for the answer."""


ASK_AGAIN = 1.0
"""Seconds after which a refusal that contradicts an answer makes the client ask once more."""

MARGIN = 0.9
"""Share of the limit to which compressed batches are filled: the next may compress less well."""


class BatchLimit(NamedTuple):
    """The largest batches that a topic takes, in bytes."""

    size: int
    """Not compressed: a batch is full then."""
    wire_size: int
    """In a request: no larger one is sent."""

    def lowered_to(self, other: BatchLimit) -> BatchLimit:
        """Return the smaller ones of both limits."""
        return BatchLimit(min(self.size, other.size), min(self.wire_size, other.wire_size))


class _Topic(Value, frozen=False):
    asked_at: float
    told: dict[str, int] = field(factory=dict)
    """The settings, as the brokers told them."""
    is_settled: bool = False
    is_former: bool = False
    """Asked about a topic that has been deleted since."""
    learnt: BatchLimit | None = None


class TopicLimits:
    """The largest batches that topics take. `limit` may be called from any thread."""

    def __init__(
        self,
        context: Context[CommonSettings],
        *,
        on_settled: Callable[[str, float], None],
    ) -> None:
        """Start without limits; `ask_limits` gets those of a topic.

        Args:
            context: the producer's.
            on_settled: called with a topic when its limits are known, or will never be.
        """
        self._requester = context.requester
        self._timeout = context.settings.request_timeout
        self._max_age = context.settings.metadata_max_age
        self._on_settled = on_settled
        self._topics: dict[str, _Topic] = {}
        self._asking: OpenCall[str, dict[str, int]] | None = None  # the latest call

    # ---- getters ----

    def limit(self, topic: str, code: int) -> int | None:
        """Return the topic's setting for an error code; None if unknown. Any thread."""
        known = self._topics.get(topic)
        return None if known is None else known.told.get(SETTINGS[code])

    def learnt(self, topic: str) -> BatchLimit | None:
        """Return what is known to be the largest batches that a topic takes; None: nothing."""
        known = self._topics.get(topic)
        return None if known is None else known.learnt

    def is_settled(self, topic: str, refused_size: int, now: float) -> bool:
        """Tell whether the limits need not be asked for, or waited for.

        Args:
            topic: the topic.
            refused_size: bytes of a batch that was refused.
            now: the time.
        """
        known = self._topics.get(topic)
        if known is None or not known.is_settled:
            return False
        age = now - known.asked_at
        was_changed = min(known.told.values(), default=0) >= refused_size and age >= ASK_AGAIN
        return age < self._max_age and not was_changed

    # ---- commands ----

    def ask_limits(self, topic: str, now: float) -> None:
        """Ask for a topic's limits, unless that is under way. `on_settled` is called at the end."""
        known = self._topics.get(topic)
        if known is None or known.is_settled:
            learnt = None if known is None else known.learnt
            self._topics[topic] = _Topic(now, learnt=learnt)
            deadline = now + LIMIT_PATIENCE
            if self._asking is not None and self._asking.deadline == deadline:
                self._asking.add_item(topic)  # one request for all topics of a turn
            else:
                call = _DescribeTopic(self._settle, timeout=self._timeout)
                self._asking = self._requester.open_call(call, [topic], deadline=deadline)

    def learn(self, topic: str, refused: Sequence[BatchRow], now: float) -> BatchLimit:
        """Return how large batches may be, after some were refused as too large."""
        known = self._topics.setdefault(topic, _Topic(now))
        smallest = min(row.wire_size for row in refused)
        told = min(known.told.values(), default=smallest)
        wire_size = told if told < smallest else smallest // 2
        shrinks = min(row.size / row.wire_size for row in refused)
        limit = BatchLimit(_uncompressed(wire_size, shrinks), wire_size)
        known.learnt = limit if known.learnt is None else known.learnt.lowered_to(limit)
        return known.learnt

    def forget_topic(self, topic: str) -> None:
        """Forget a topic's limits: another topic has its name."""
        known = self._topics.pop(topic, None)
        if known is not None and not known.is_settled:
            self._topics[topic] = _Topic(known.asked_at, is_former=True)

    def renew(self, now: float) -> None:
        """Ask again for limits that are in use and may have changed since."""
        for topic, known in list(self._topics.items()):
            is_old = known.is_settled and now - known.asked_at >= self._max_age
            if known.learnt is not None and is_old:
                self.ask_limits(topic, now)

    # ---- in ----

    def _settle(self, topic: str, told: dict[str, int], now: float) -> None:
        known = self._topics[topic]
        if known.is_former:
            del self._topics[topic]
        else:
            known.told.update(told)
            known.is_settled = True
            known.learnt = _renewed(known.learnt, min(told.values(), default=0))
        self._on_settled(topic, now)


def _uncompressed(wire_size: int, shrinks: float) -> int:
    """Return the size of a batch that takes so many bytes once it has shrunk by a factor."""
    return int(wire_size * shrinks * (MARGIN if shrinks > 1 else 1.0))


def _renewed(learnt: BatchLimit | None, told: int) -> BatchLimit | None:
    """Return a limit after brokers have told the setting again; 0: they have not.

    A limit that nobody has told is forgotten. If it still holds, one batch is refused again.
    """
    if learnt is None or not told:
        return None
    return BatchLimit(learnt.size * told // learnt.wire_size, told)


class _DescribeTopic(Call[str, dict[str, int]]):
    """One request. It is sent once, because an error can do without the limit."""

    request_class = DescribeConfigsRequest
    response_class = DescribeConfigsResponse
    max_tries = 1

    def __init__(
        self, on_settled: Callable[[str, dict[str, int], float], None], *, timeout: float
    ) -> None:
        super().__init__(AnyNode(), timeout=timeout)
        self._on_settled = on_settled

    def build(self, items: Sequence[str], version: int) -> DescribeConfigsRequest:
        """Return the request for the settings of sizes."""
        return DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=TOPIC_RESOURCE,
                    resource_name=topic,
                    configuration_keys=list(SETTINGS.values()),
                )
                for topic in items
            ]
        )

    def read(
        self, answer: DescribeConfigsResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterable[tuple[str, Meaning[dict[str, int]]]]:
        """Return the values of the settings."""
        for result in answer.results:
            topic = result.resource_name
            if result.error_code:
                yield (
                    topic,
                    meaning_of(result.error_code, "DescribeConfigs", f" of topic {topic!r}"),
                )
            else:
                yield (
                    topic,
                    Done(
                        {
                            config.name: int(config.value)
                            for config in result.configs
                            if config.value is not None and config.value.isdecimal()
                        }
                    ),
                )

    def handle_done(self, item: str, value: dict[str, int], now: float) -> None:
        """Pass the limits on."""
        self._on_settled(item, value, now)

    def handle_failed(self, item: str, error: KafkaError, now: float) -> None:
        """Do without limits: the broker is old or slow, or this client may not see them."""
        logger.debug("the limits of topic %r are not known: %s", item, error)
        self._on_settled(item, {}, now)
