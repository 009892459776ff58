"""Names of topics that are known by their ids only: what a KIP-848 coordinator assigns.

Most ids are in the cluster's metadata, because the member has subscribed to the topics by name. Of
a pattern that the coordinator matches, and of topics that were made anew, the brokers are asked.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafka_fast.config import CommonSettings
from kafka_fast.control.context import Context
from kafka_fast.control.instants import LONG_AGO, NEVER
from kafka_fast.errors import KafkaError
from kafka_fast.logs import get_logger
from kafka_fast.protocol.apis.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

logger = get_logger("kafka_fast.group")


class TopicNames:
    """The names of topic ids. Control thread only."""

    def __init__(
        self, context: Context[CommonSettings], *, on_found: Callable[[float], None]
    ) -> None:
        """Begin with what the cluster's metadata tell.

        Args:
            context: the client's; its cluster follows the topics that are found.
            on_found: called when names were found.
        """
        self._settings = context.settings
        self._cluster = context.cluster
        self._questions = context.links.questions
        self._discovery = context.discovery
        self._backoff = context.backoff
        self._on_found = on_found
        self._found: dict[bytes, str] = {}
        self._wanted: frozenset[bytes] = frozenset()
        self._asking = False
        self._failures = 0
        self._ask_at = LONG_AGO

    def name(self, topic_id: bytes) -> str | None:
        """Return the name, if it is known."""
        name = self._found.get(topic_id) or self._cluster.topic_name(topic_id)
        if name is not None:
            self._found[topic_id] = name  # also when the cluster knows a newer topic of that name
        return name

    def is_known(self, topic_id: bytes) -> bool:
        """Tell whether there is a name. Any thread."""
        return topic_id in self._found or self._cluster.topic_name(topic_id) is not None

    def want(self, topic_ids: Iterable[bytes]) -> None:
        """Find these names, and forget all other questions."""
        self._wanted = frozenset(topic_ids)

    def keep(self, topic_ids: Iterable[bytes]) -> None:
        """Forget the names of all other topics."""
        kept = frozenset(topic_ids)
        self._found = {it: name for it, name in self._found.items() if it in kept}

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        if not self._wanted or self._asking or self._discovery.any_link() is None:
            return NEVER
        return self._ask_at

    def tick(self, now: float) -> None:
        """Ask for what is wanted, if that is due."""
        if not self._wanted or self._asking or now < self._ask_at:
            return
        link = self._discovery.any_link()
        if link is None:
            self._cluster.request_refresh("looking for a topic's name")
            return
        self._asking = True
        self._questions.ask(
            link,
            MetadataRequest(
                topics=[MetadataRequestTopic(topic_id=it, name=None) for it in self._wanted],
                allow_auto_topic_creation=False,
            ),
            MetadataResponse,
            self._handle,
            self._handle_failure,
            timeout=self._settings.request_timeout,
        )

    def _handle(self, response: MetadataResponse, now: float) -> None:
        self._asking = False
        found = {
            topic.topic_id: topic.name
            for topic in response.topics
            if topic.name and not topic.error_code and topic.topic_id in self._wanted
        }
        self._pause(now, fruitful=bool(found))
        if not found:
            return
        self._wanted -= found.keys()
        self._found.update(found)
        for topic_id, name in found.items():
            self._cluster.want_topic(name, now)
            if self._cluster.topic_id(name) not in (None, topic_id):
                self._cluster.request_refresh("the topic was made anew", name)
        self._on_found(now)

    def _handle_failure(self, error: KafkaError, now: float) -> None:
        logger.debug("topic names: %s", error)
        self._asking = False
        self._pause(now, fruitful=False)

    def _pause(self, now: float, *, fruitful: bool) -> None:
        """Wait before the next question: a new topic spreads over the brokers bit by bit."""
        self._failures = 0 if fruitful else self._failures + 1
        self._ask_at = now + self._backoff.delay(max(0, self._failures - 1))
