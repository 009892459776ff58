"""Operations that look at topics in another way: page by page, and as each node sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kafka_fast.control.admin.operation import NO_SUCH_TOPIC, ONLY, Operation
from kafka_fast.control.admin.types.acls import operations_of
from kafka_fast.control.admin.types.topic_ids import topic_id_text
from kafka_fast.control.admin.types.topics import TopicDescription, TopicPartitionInfo
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Meaning, Refused, Retry
from kafka_fast.control.requests.targets import AllNodes, AnyNode
from kafka_fast.errors import ErrorCode, KafkaError, broker_error, error_description
from kafka_fast.logs import some_of
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kafka_fast.protocol.apis.topics.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value


class TopicPage(Value):
    """A part of the description of topics."""

    topics: tuple[TopicDescription, ...]
    """In the order of their names; the last one may go on in the next page."""
    refused: Mapping[str, KafkaError]
    """The topics that the broker does not describe, and why."""
    unsettled: frozenset[str]
    """The topics that a broker may describe later."""
    cursor: TopicPartition | None
    """With which partition the next page begins; None: this was the last one."""


class DescribeTopicPage(Operation[str, TopicPage]):
    """DescribeTopicPartitions: one page (KIP-966)."""

    name = "describe_topics"
    noun = "topic"
    permission = "DESCRIBE on the topic"
    since = "3.8"
    final = frozenset(NO_SUCH_TOPIC)
    words = NO_SUCH_TOPIC
    request_class = DescribeTopicPartitionsRequest
    response_class = DescribeTopicPartitionsResponse

    def __init__(
        self,
        topics: Iterable[str],
        *,
        cursor: TopicPartition | None,
        partition_limit: int,
        include_authorized_operations: bool,
    ) -> None:
        """Take what the page is of.

        Args:
            topics: names, from that of the cursor on; the broker sorts them.
            cursor: with which partition the page begins; None: with the first.
            partition_limit: how many partitions the page may have; the broker has its own limit.
            include_authorized_operations: whether to tell what this client may do with the topics.
        """
        super().__init__(AnyNode(), [ONLY])
        self._topics = list(topics)
        self._cursor = cursor
        self._limit = partition_limit
        self._include_operations = include_authorized_operations

    def build(self, items: Sequence[str], version: int) -> DescribeTopicPartitionsRequest:
        """Ask for the page."""
        return DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in self._topics],
            response_partition_limit=self._limit,
            cursor=None
            if self._cursor is None
            else DescribeTopicPartitionsRequestCursor(
                topic_name=self._cursor.topic, partition_index=self._cursor.partition
            ),
        )

    def outcomes(
        self, answer: DescribeTopicPartitionsResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[TopicPage]]]:
        """Return the page."""
        described: list[TopicDescription] = []
        refused: dict[str, KafkaError] = {}
        unsettled: set[str] = set()
        for topic in answer.topics:
            if topic.name is None:
                continue
            if not topic.error_code:
                described.append(self._description(topic.name, topic))
                continue
            meaning = self.refusal(topic.name, topic.error_code)
            if isinstance(meaning, Refused):
                refused[topic.name] = meaning.error
            else:
                unsettled.add(topic.name)
        following = answer.next_cursor
        cursor = (
            None
            if following is None
            else TopicPartition(following.topic_name, following.partition_index)
        )
        yield ONLY, Done(TopicPage(tuple(described), refused, frozenset(unsettled), cursor))

    def _description(
        self, name: str, topic: DescribeTopicPartitionsResponseTopic
    ) -> TopicDescription:
        partitions = sorted(topic.partitions, key=lambda one: one.partition_index)
        bits = topic.topic_authorized_operations
        return TopicDescription(
            name,
            topic_id_text(topic.topic_id),
            topic.is_internal,
            tuple(_partition_info(partition) for partition in partitions),
            operations_of(bits) if self._include_operations else None,
        )


def _partition_info(partition: DescribeTopicPartitionsResponsePartition) -> TopicPartitionInfo:
    eligible, last_known = partition.eligible_leader_replicas, partition.last_known_elr
    return TopicPartitionInfo(
        partition.partition_index,
        partition.leader_id if partition.leader_id >= 0 else None,
        partition.leader_epoch,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
        None if eligible is None else tuple(eligible),
        None if last_known is None else tuple(last_known),
    )


class AwaitTopics(Operation[int, None]):
    """Metadata of some topics from every node, until each node knows all of them."""

    name = "wait_until_topics_visible"
    noun = "node"
    permission = "DESCRIBE on the topic"
    request_class = MetadataRequest
    response_class = MetadataResponse

    def __init__(self, topics: Iterable[str]) -> None:
        """Take the names."""
        super().__init__(AllNodes(), None)
        self.topics = list(dict.fromkeys(topics))
        """The names."""

    def build(self, items: Sequence[int], version: int) -> MetadataRequest:
        """Ask for the topics."""
        return MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in self.topics],
            allow_auto_topic_creation=False,
        )

    def outcomes(
        self, answer: MetadataResponse, items: Sequence[int], source: AnswerSource
    ) -> Iterator[tuple[int, Meaning[None]]]:
        """Return whether a node knows all topics; the requester asks it again if not."""
        for item in items:  # each node has a request of its own
            yield item, self._meaning(item, answer)

    def _meaning(self, item: int, answer: MetadataResponse) -> Meaning[None]:
        if answer.error_code:
            return self.refusal(item, answer.error_code)
        topics = {topic.name: topic for topic in answer.topics}
        late: dict[str, int] = {}
        for name in self.topics:
            code = _lacks(topics.get(name))
            if code:
                late[name] = code
        if not late:
            return Done(None)
        name, code = next(iter(late.items()))
        refusal = self.refusal(item, code, f"topic {name!r}: {error_description(code)}")
        if isinstance(refusal, Refused):
            return refusal
        names = some_of([repr(name) for name in late])
        # The leader is not what this asks for: no metadata of this client are stale.
        return Retry(broker_error(code, f"node {item} does not know all leaders yet of {names}"))


def _lacks(topic: MetadataResponseTopic | None) -> int:
    """Return the error of a topic that a node does not know with all of its leaders; 0: none."""
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic.error_code:
        return topic.error_code
    if not topic.partitions or any(one.leader_id < 0 for one in topic.partitions):
        return ErrorCode.LEADER_NOT_AVAILABLE
    return 0
