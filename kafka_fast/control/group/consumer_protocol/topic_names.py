"""The names of topics that a KIP-848 coordinator assigns by their ids.

Most ids are in the cluster's metadata, because the member has subscribed to the topics by name. The
brokers are asked for the names of recreated topics, and of topics that the coordinator has matched
with a regex.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kafka_fast.config import CommonSettings
from kafka_fast.control.context import Context
from kafka_fast.control.requests.any_node import SILENT_NODE_PATIENCE
from kafka_fast.control.requests.call import AnswerSource, Call
from kafka_fast.control.requests.meanings import Done, Meaning, Retry
from kafka_fast.control.requests.targets import AnyNode
from kafka_fast.errors import ErrorCode, KafkaError, broker_error
from kafka_fast.logs import get_logger
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

logger = get_logger("kafka_fast.group")


class TopicNames(Call[bytes, str]):
    """The names of topic ids. Control thread only."""

    request_class = MetadataRequest
    response_class = MetadataResponse
    beside_after = SILENT_NODE_PATIENCE

    def __init__(
        self,
        context: Context[CommonSettings],
        *,
        on_found: Callable[[float], None],
    ) -> None:
        """Use the names in the cluster's metadata, and ask for no others before `want_names`.

        Args:
            context: the client's.
            on_found: called with the time when names were found.
        """
        super().__init__(AnyNode(), timeout=context.settings.request_timeout)
        self._cluster = context.cluster
        self._on_found = on_found
        self._found: dict[bytes, str] = {}
        self._found_more = False
        self._refused: set[bytes] = set()
        self._wanted = context.requester.open_call(self)

    def name(self, topic_id: bytes) -> str | None:
        """Return the name, if it is known."""
        name = self._found.get(topic_id) or self._cluster.topic_name(topic_id)
        if name is not None:
            self._found[topic_id] = name  # kept even when the name belongs to a newer topic
        return name

    def is_known(self, topic_id: bytes) -> bool:
        """Tell whether there is a name. Any thread."""
        return topic_id in self._found or self._cluster.topic_name(topic_id) is not None

    def want_names(self, topic_ids: Iterable[bytes]) -> None:
        """Look for the names of these ids, and of no others."""
        named = frozenset(topic_ids)
        self._refused &= named
        open_ids = named - self._refused
        for topic_id in self._wanted:
            if topic_id not in open_ids:
                self._wanted.discard(topic_id)
        for topic_id in sorted(open_ids):
            if topic_id not in self._wanted:
                self._wanted.add_item(topic_id)

    def forget_others(self, topic_ids: Iterable[bytes]) -> None:
        """Forget the names of all other topics."""
        kept = frozenset(topic_ids)
        self._found = {topic_id: name for topic_id, name in self._found.items() if topic_id in kept}

    # ---- the call ----

    def describe(self, item: bytes) -> str:
        """Return the name of the request in errors."""
        return f"the name of topic id {item.hex()}"

    def build(self, items: Sequence[bytes], version: int) -> MetadataRequest:
        """Return the request for topics by their ids."""
        return MetadataRequest(
            topics=[MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in items],
            allow_auto_topic_creation=False,
        )

    def read(
        self, answer: MetadataResponse, items: Sequence[bytes], source: AnswerSource
    ) -> Iterable[tuple[bytes, Meaning[str]]]:
        """Return the names. A broker may not know a new topic yet, so an error is tried again."""
        for topic in answer.topics:
            if topic.name and not topic.error_code:
                yield topic.topic_id, Done(topic.name)
            else:
                code = topic.error_code or ErrorCode.UNKNOWN_TOPIC_ID
                yield topic.topic_id, Retry(broker_error(code, self.describe(topic.topic_id)))

    def handle_done(self, item: bytes, value: str, now: float) -> None:
        """Keep a name, and the metadata of its topic."""
        self._found[item] = value
        self._found_more = True
        self._cluster.want_topic(value, now)
        if self._cluster.topic_id(value) not in (None, item):
            self._cluster.request_refresh("the topic was recreated", value)

    def handle_read(self, now: float) -> None:
        """Tell that names were found."""
        if self._found_more:
            self._found_more = False
            self._on_found(now)

    def handle_failed(self, item: bytes, error: KafkaError, now: float) -> None:
        """Stop asking: a broker that is older than the coordinator has refused for good."""
        logger.warning("%s is not known: %s", self.describe(item), error)
        self._refused.add(item)
