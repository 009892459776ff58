"""How large a batch a topic takes: asked for when one was too large, to say so in its error.

A broker that answers MESSAGE_TOO_LARGE does not say what it would have taken. One DescribeConfigs
request brings it, if this client may ask; the verdict on the batch waits for that, but not long.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.config import CommonSettings
from kafka_fast.control.context import Context
from kafka_fast.control.instants import NEVER
from kafka_fast.control.link import Link
from kafka_fast.errors import ErrorCode, KafkaError
from kafka_fast.protocol.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kafka_fast.values import Value, field

TOPIC_RESOURCE = 2

SETTINGS: dict[int, str] = {
    ErrorCode.MESSAGE_TOO_LARGE: "max.message.bytes",
    ErrorCode.RECORD_LIST_TOO_LARGE: "segment.bytes",
}
"""The setting of the topic that an error code is about."""

PATIENCE = 2.0
"""Seconds that a verdict waits for the answer."""


class _Topic(Value, frozen=False):
    asked_at: float
    limits: dict[str, int] = field(factory=dict)
    is_settled: bool = False


class TopicLimits:
    """The sizes that topics take. `limit` may be called from any thread."""

    def __init__(
        self, context: Context[CommonSettings], *, on_settled: Callable[[str, float], None]
    ) -> None:
        """Begin with nothing known.

        Args:
            context: the producer's.
            on_settled: called with a topic when its limits are known, or that they will not be.
        """
        self._questions = context.links.questions
        self._timeout = context.settings.request_timeout
        self._max_age = context.settings.metadata_max_age  # then a topic is asked about again
        self._on_settled = on_settled
        self._topics: dict[str, _Topic] = {}

    def limit(self, topic: str, code: int) -> int | None:
        """Return what the topic takes at most; None if that is not known. Any thread."""
        known = self._topics.get(topic)
        return None if known is None else known.limits.get(SETTINGS[code])

    def is_settled(self, topic: str, now: float) -> bool:
        """Tell whether there is nothing to ask, or to wait for."""
        known = self._topics.get(topic)
        return known is not None and known.is_settled and now - known.asked_at < self._max_age

    def next_deadline(self) -> float:
        """Return when `tick` has something to do."""
        waiting = (it.asked_at + PATIENCE for it in self._topics.values() if not it.is_settled)
        return min(waiting, default=NEVER)

    def ask(self, topic: str, link: Link | None, now: float) -> None:
        """Ask for a topic's limits, unless that is under way; `on_settled` ends it."""
        known = self._topics.get(topic)
        if known is not None and not known.is_settled:
            return
        self._topics[topic] = _Topic(now)
        if link is None:
            self._settle(topic, now)
            return
        resource = DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE,
            resource_name=topic,
            configuration_keys=list(SETTINGS.values()),
        )
        try:
            self._questions.ask(
                link,
                DescribeConfigsRequest(resources=[resource]),
                DescribeConfigsResponse,
                lambda response, then: self._handle(topic, response, then),
                lambda error, then: self._settle(topic, then),
                timeout=self._timeout,
            )
        except KafkaError:  # an old broker: the error then names the setting, and no number
            self._settle(topic, now)

    def tick(self, now: float) -> None:
        """Wait no longer for what takes too long."""
        for topic, known in list(self._topics.items()):
            if not known.is_settled and now >= known.asked_at + PATIENCE:
                self._settle(topic, now)

    def _handle(self, topic: str, response: DescribeConfigsResponse, now: float) -> None:
        for result in response.results:
            if result.resource_name == topic and not result.error_code:
                self._topics[topic].limits.update(
                    (config.name, int(config.value))
                    for config in result.configs
                    if config.value is not None and config.value.isdecimal()
                )
        self._settle(topic, now)

    def _settle(self, topic: str, now: float) -> None:
        if not self._topics[topic].is_settled:
            self._topics[topic].is_settled = True
            self._on_settled(topic, now)
