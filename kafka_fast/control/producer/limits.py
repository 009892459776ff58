"""How large a batch a topic takes: asked for when a batch was too large, for its error.

A broker that answers MESSAGE_TOO_LARGE does not name its limit. One DescribeConfigs request brings
the limit, if this client may ask. The verdict on the batch waits for the answer, but not for long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kafka_fast.config import CommonSettings
from kafka_fast.control.context import Context
from kafka_fast.control.requests.call import AnswerSource, Call
from kafka_fast.control.requests.meanings import Done, Meaning, meaning_of
from kafka_fast.control.requests.targets import AnyNode
from kafka_fast.errors import ErrorCode, KafkaError
from kafka_fast.logs import get_logger
from kafka_fast.protocol.apis.describe_configs import (
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


class _Topic(Value, frozen=False):
    asked_at: float
    limits: dict[str, int] = field(factory=dict)
    is_settled: bool = False


class TopicLimits:
    """The largest batches that topics take. `limit` may be called from any thread."""

    def __init__(
        self,
        context: Context[CommonSettings],
        *,
        on_settled: Callable[[str, float], None],
    ) -> None:
        """Begin with nothing known.

        Args:
            context: the producer's.
            on_settled: called with a topic when its limits are known, or will never be.
        """
        self._requester = context.requester
        self._timeout = context.settings.request_timeout
        self._max_age = context.settings.metadata_max_age
        self._on_settled = on_settled
        self._topics: dict[str, _Topic] = {}

    def limit(self, topic: str, code: int) -> int | None:
        """Return the topic's limit for an error code; None if unknown. Any thread."""
        known = self._topics.get(topic)
        return None if known is None else known.limits.get(SETTINGS[code])

    def is_settled(self, topic: str, now: float) -> bool:
        """Tell whether the limits need not be asked for, or waited for."""
        known = self._topics.get(topic)
        return known is not None and known.is_settled and now - known.asked_at < self._max_age

    def ask(self, topic: str, now: float) -> None:
        """Ask for a topic's limits, unless that is under way. `on_settled` is called at the end."""
        known = self._topics.get(topic)
        if known is None or known.is_settled:
            self._topics[topic] = _Topic(now)
            call = _DescribeTopic(self._settle, timeout=self._timeout)
            self._requester.begin(call, [topic], deadline=now + LIMIT_PATIENCE)

    def forget(self, topic: str) -> None:
        """Forget a topic's limits: the topic that has its name now may have others."""
        known = self._topics.get(topic)
        if known is not None and known.is_settled:
            del self._topics[topic]

    def _settle(self, topic: str, limits: dict[str, int], now: float) -> None:
        self._topics[topic].limits.update(limits)
        self._topics[topic].is_settled = True
        self._on_settled(topic, now)


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
