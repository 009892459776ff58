"""Operations on topics: list, describe, create, delete, add partitions, delete records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from kafka_fast.control.admin.operation import NO_SUCH_TOPIC, ONLY, Operation
from kafka_fast.control.admin.types.acls import operations_of
from kafka_fast.control.admin.types.topic_ids import topic_id_bytes, topic_id_text
from kafka_fast.control.admin.types.topics import (
    BROKER_DEFAULT,
    CreatedTopic,
    NewPartitions,
    NewTopic,
    TopicDescription,
    TopicListing,
    TopicPartitionInfo,
)
from kafka_fast.control.arguments import checked_name, mapping_of, names_of, several
from kafka_fast.control.metadata.metadata import by_topic
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Meaning
from kafka_fast.control.requests.targets import AnyNode, Controller, Leaders
from kafka_fast.errors import ErrorCode, KafkaError, UnsupportedVersionError, UsageError
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_fast.protocol.apis.topics.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kafka_fast.protocol.apis.topics.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafka_fast.protocol.apis.topics.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kafka_fast.protocol.apis.topics.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kafka_fast.types import TopicPartition

NO_SUCH_NAME_OR_ID: Mapping[int, str] = {
    **NO_SUCH_TOPIC,
    ErrorCode.UNKNOWN_TOPIC_ID: "there is no topic with this id",
}

FIRST_VERSION_WITH_OPERATIONS = 8
FIRST_VERSION_WITH_IDS = 12
FIRST_CREATE_WITH_DEFAULTS = 4
FIRST_DELETE_WITH_STATES = 6
TOPICS = "the names of topics"
"""What they are called in errors."""
TOPICS_PER_REQUEST = 500
"""More would make an answer that keeps the control thread from other work."""


class ListTopics(Operation[str, dict[str, TopicListing]]):
    """Metadata of all topics, for their names."""

    name = "list_topics"
    permission = "DESCRIBE on the topic"
    request_class = MetadataRequest
    response_class = MetadataResponse

    def __init__(self, *, include_internal: bool) -> None:
        """Take whether internal topics are wanted as well."""
        super().__init__(AnyNode(), [ONLY])
        self._include_internal = include_internal

    def build(self, items: Sequence[str], version: int) -> MetadataRequest:
        """Ask for all topics."""
        return MetadataRequest(topics=None, allow_auto_topic_creation=False)

    def outcomes(
        self, answer: MetadataResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[dict[str, TopicListing]]]]:
        """Return the topics by name, in the order of their names."""
        if answer.error_code:
            yield ONLY, self.refusal(ONLY, answer.error_code)
            return
        listings = [
            TopicListing(topic.name, topic_id_text(topic.topic_id), topic.is_internal)
            for topic in answer.topics
            if topic.name is not None and (self._include_internal or not topic.is_internal)
        ]
        yield ONLY, Done({one.name: one for one in sorted(listings, key=lambda one: one.name)})


class DescribeTopics(Operation[str, TopicDescription]):
    """Metadata of some topics, by name or by id."""

    name = "describe_topics"
    noun = "topic"
    permission = "DESCRIBE on the topic"
    final = frozenset(NO_SUCH_NAME_OR_ID)
    words = NO_SUCH_NAME_OR_ID
    request_class = MetadataRequest
    response_class = MetadataResponse

    def __init__(
        self, topics: Iterable[str], *, by_id: bool, include_authorized_operations: bool
    ) -> None:
        """Take which topics are described.

        Args:
            topics: their names.
            by_id: the names are ids, as text.
            include_authorized_operations: whether to ask what this client may do with them.
        """
        super().__init__(AnyNode(), names_of(topics, TOPICS))
        self._ids = {text: topic_id_bytes(text) for text in self.items or ()} if by_id else {}
        self._by_id = by_id
        self._include_operations = include_authorized_operations

    def unsupported(self, item: str, version: int) -> KafkaError | None:
        """Refuse ids where brokers know none."""
        if self._by_id and version < FIRST_VERSION_WITH_IDS:
            return UnsupportedVersionError(
                f"{self.describe(item)}: topics are described by their ids since Kafka 3.1"
            )
        return None

    def max_items(self, version: int) -> int:
        """Return how many topics one answer may describe."""
        return TOPICS_PER_REQUEST

    def build(self, items: Sequence[str], version: int) -> MetadataRequest:
        """Ask for the topics."""
        topics = [
            MetadataRequestTopic(topic_id=self._ids[item], name=None)
            if self._by_id
            else MetadataRequestTopic(name=item)
            for item in items
        ]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        if version >= FIRST_VERSION_WITH_OPERATIONS:
            request.include_topic_authorized_operations = self._include_operations
        return request

    def outcomes(
        self, answer: MetadataResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[TopicDescription]]]:
        """Return each topic, or why it is not described."""
        if answer.error_code:
            yield from self.all_refused(items, answer.error_code)
            return
        for topic in answer.topics:
            key = topic_id_text(topic.topic_id) if self._by_id else topic.name
            if key is None:
                continue
            if topic.error_code:
                yield key, self.refusal(key, topic.error_code)
            else:
                yield key, Done(_description(topic))


def _description(topic: MetadataResponseTopic) -> TopicDescription:
    partitions = sorted(topic.partitions, key=lambda one: one.partition_index)
    return TopicDescription(
        topic.name or "",
        topic_id_text(topic.topic_id),
        topic.is_internal,
        tuple(_partition_info(partition) for partition in partitions),
        operations_of(topic.topic_authorized_operations),
    )


def _partition_info(partition: MetadataResponsePartition) -> TopicPartitionInfo:
    has_leader = partition.leader_id >= 0
    return TopicPartitionInfo(
        partition.partition_index,
        partition.leader_id if has_leader else None,
        partition.leader_epoch,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
    )


class CreateTopics(Operation[str, CreatedTopic]):
    """CreateTopics."""

    name = "create_topics"
    noun = "topic"
    permission = "CREATE on the topic, or on the cluster"
    explained: ClassVar[Mapping[int, str]] = {
        ErrorCode.TOPIC_ALREADY_EXISTS: "an earlier try, of which no answer came, may have created "
        "it"
    }
    request_class = CreateTopicsRequest
    response_class = CreateTopicsResponse

    def __init__(
        self, topics: Iterable[NewTopic], *, validate_only: bool, retry_on_quota: bool
    ) -> None:
        """Take the topics.

        Args:
            topics: each with a name of its own.
            validate_only: whether to check only whether they could be created.
            retry_on_quota: see `Operation`.

        Raises:
            UsageError: two topics have the same name, or one has assignments and numbers.
        """
        self._topics: dict[str, NewTopic] = {}
        for topic in several(topics, "new topics"):
            if not isinstance(topic, NewTopic):
                raise TypeError(f"a NewTopic says which topic is new, not {topic!r}")
            checked_name(topic.name, "the name of a topic")
            if topic.name in self._topics:
                raise UsageError(f"two new topics are called {topic.name!r}")
            _check_numbers(topic)
            self._topics[topic.name] = topic
        super().__init__(Controller(), self._topics, retry_on_quota=retry_on_quota)
        self._validate_only = validate_only

    def unsupported(self, item: str, version: int) -> KafkaError | None:
        """Refuse numbers that are left to a broker which is too old for that."""
        topic = self._topics[item]
        numbers = (topic.num_partitions, topic.replication_factor)
        is_complete = topic.assignments is not None or BROKER_DEFAULT not in numbers
        if version >= FIRST_CREATE_WITH_DEFAULTS or is_complete:
            return None
        return UnsupportedVersionError(
            f"{self.describe(item)}: brokers older than Kafka 2.4 need num_partitions and "
            "replication_factor (KIP-464)"
        )

    def build(self, items: Sequence[str], version: int) -> CreateTopicsRequest:
        """Ask for the topics."""
        return CreateTopicsRequest(
            topics=[_creatable(self._topics[item]) for item in items],
            timeout_ms=self.timeout_ms,
            validate_only=self._validate_only,
        )

    def outcomes(
        self, answer: CreateTopicsResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[CreatedTopic]]]:
        """Return each topic as it was created, or why it was not."""
        for topic in answer.topics:
            if topic.error_code:
                refusal = self.refusal(topic.name, topic.error_code, topic.error_message)
                yield topic.name, refusal
            else:
                yield topic.name, Done(_created(topic))


def _check_numbers(topic: NewTopic) -> None:
    numbers = (topic.num_partitions, topic.replication_factor)
    if topic.assignments is not None and numbers != (BROKER_DEFAULT, BROKER_DEFAULT):
        raise UsageError(
            f"topic {topic.name!r}: assignments say how many partitions and replicas there are, "
            "so num_partitions and replication_factor are left out"
        )


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in (topic.assignments or {}).items()
        ],
        configs=[
            CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
        ],
    )


def _created(topic: CreatableTopicResult) -> CreatedTopic:
    is_told = topic.num_partitions >= 0
    return CreatedTopic(
        topic_id_text(topic.topic_id),
        topic.num_partitions if is_told else None,
        topic.replication_factor if is_told else None,
        {config.name: config.value for config in topic.configs or ()} if is_told else None,
    )


class DeleteTopics(Operation[str, None]):
    """DeleteTopics, by name or by id."""

    name = "delete_topics"
    noun = "topic"
    permission = "DELETE on the topic"
    final = frozenset(NO_SUCH_NAME_OR_ID)
    words = NO_SUCH_NAME_OR_ID
    explained: ClassVar[Mapping[int, str]] = dict.fromkeys(
        final, "an earlier try, of which no answer came, may have deleted it"
    )
    request_class = DeleteTopicsRequest
    response_class = DeleteTopicsResponse

    def __init__(self, topics: Iterable[str], *, by_id: bool, retry_on_quota: bool) -> None:
        """Take the topics.

        Args:
            topics: their names.
            by_id: the names are ids, as text.
            retry_on_quota: see `Operation`.
        """
        super().__init__(Controller(), names_of(topics, TOPICS), retry_on_quota=retry_on_quota)
        self._ids = {text: topic_id_bytes(text) for text in self.items or ()} if by_id else {}
        self._by_id = by_id

    def unsupported(self, item: str, version: int) -> KafkaError | None:
        """Refuse ids where brokers know none."""
        if self._by_id and version < FIRST_DELETE_WITH_STATES:
            return UnsupportedVersionError(
                f"{self.describe(item)}: topics are deleted by their ids since Kafka 2.8"
            )
        return None

    def build(self, items: Sequence[str], version: int) -> DeleteTopicsRequest:
        """Ask for the end of the topics."""
        if version < FIRST_DELETE_WITH_STATES:
            return DeleteTopicsRequest(topic_names=list(items), timeout_ms=self.timeout_ms)
        states = [
            DeleteTopicState(topic_id=self._ids[item], name=None)
            if self._by_id
            else DeleteTopicState(name=item)
            for item in items
        ]
        return DeleteTopicsRequest(topics=states, timeout_ms=self.timeout_ms)

    def outcomes(
        self, answer: DeleteTopicsResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[None]]]:
        """Return which topics were deleted."""
        for topic in answer.responses:
            key = topic_id_text(topic.topic_id) if self._by_id else topic.name
            if key is None:
                continue
            yield key, self.done_or_refusal(key, topic.error_code, topic.error_message)


class CreatePartitions(Operation[str, None]):
    """CreatePartitions."""

    name = "create_partitions"
    noun = "topic"
    permission = "ALTER on the topic"
    final = frozenset(NO_SUCH_NAME_OR_ID)
    words = NO_SUCH_NAME_OR_ID
    explained: ClassVar[Mapping[int, str]] = {
        ErrorCode.INVALID_PARTITIONS: "an earlier try, of which no answer came, may have added the "
        "partitions"
    }
    request_class = CreatePartitionsRequest
    response_class = CreatePartitionsResponse

    def __init__(
        self,
        partitions: Mapping[str, NewPartitions],
        *,
        validate_only: bool,
        retry_on_quota: bool,
    ) -> None:
        """Take the partitions.

        Args:
            partitions: what each topic is to have.
            validate_only: whether to check only whether they could be added.
            retry_on_quota: see `Operation`.
        """
        self._partitions = mapping_of(partitions, "numbers of partitions")
        names = names_of(self._partitions, TOPICS)
        super().__init__(Controller(), names, retry_on_quota=retry_on_quota)
        self._validate_only = validate_only

    def build(self, items: Sequence[str], version: int) -> CreatePartitionsRequest:
        """Ask for the partitions."""
        return CreatePartitionsRequest(
            topics=[_more_partitions(item, self._partitions[item]) for item in items],
            timeout_ms=self.timeout_ms,
            validate_only=self._validate_only,
        )

    def outcomes(
        self, answer: CreatePartitionsResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[None]]]:
        """Return which topics have got their partitions."""
        for topic in answer.results:
            name, code = topic.name, topic.error_code
            yield name, self.done_or_refusal(name, code, topic.error_message)


def _more_partitions(topic: str, partitions: NewPartitions) -> CreatePartitionsTopic:
    assignments = partitions.assignments
    return CreatePartitionsTopic(
        name=topic,
        count=partitions.total_count,
        assignments=None
        if assignments is None
        else [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in assignments],
    )


class DeleteRecords(Operation[TopicPartition, int]):
    """DeleteRecords: move the start of logs."""

    name = "delete_records"
    permission = "DELETE on the topic"
    request_class = DeleteRecordsRequest
    response_class = DeleteRecordsResponse

    def __init__(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Take the first offset that each partition keeps; -1: its high watermark."""
        self._offsets = mapping_of(offsets, "offsets")
        super().__init__(Leaders(), self._offsets)

    def build(self, items: Sequence[TopicPartition], version: int) -> DeleteRecordsRequest:
        """Ask for the new starts."""
        return DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(
                            partition_index=partition,
                            offset=self._offsets[TopicPartition(topic, partition)],
                        )
                        for partition in partitions
                    ],
                )
                for topic, partitions in by_topic(items).items()
            ],
            timeout_ms=self.timeout_ms,
        )

    def outcomes(
        self, answer: DeleteRecordsResponse, items: Sequence[TopicPartition], source: AnswerSource
    ) -> Iterator[tuple[TopicPartition, Meaning[int]]]:
        """Return where each log starts now."""
        for topic in answer.topics:
            for part in topic.partitions:
                partition = TopicPartition(topic.name, part.partition_index)
                if part.error_code:
                    yield partition, self.refusal(partition, part.error_code)
                else:
                    yield partition, Done(part.low_watermark)
