"""Operations on partitions: elect leaders, move replicas to other brokers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from kafka_fast.control.admin.operation import NO_SUCH_PARTITION, ONLY, Operation
from kafka_fast.control.admin.types.partitions import ElectionType, PartitionReassignment
from kafka_fast.control.arguments import checked_choice, mapping_of, partitions_of
from kafka_fast.control.metadata.metadata import by_topic
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, FindAgain, Meaning
from kafka_fast.control.requests.targets import Controller
from kafka_fast.errors import ErrorCode, KafkaError, UnsupportedVersionError, UsageError
from kafka_fast.protocol.apis.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kafka_fast.protocol.apis.topics.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from kafka_fast.protocol.apis.topics.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from kafka_fast.types import TopicPartition

FIRST_ELECTION_WITH_TYPES = 1
FIRST_REASSIGNMENT_WITH_FACTOR = 1

# ---- elections ----

NO_ELECTION = frozenset(
    {
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Nothing to wait for: the controller knows who leads and who is alive."""
NO_TYPES = "elections other than of preferred leaders need Kafka 2.4"


def _election(
    kind: ElectionType,
    partitions: Iterable[TopicPartition] | None,
    *,
    version: int,
    timeout_ms: int,
) -> ElectLeadersRequest:
    topics = None
    if partitions is not None:
        topics = [
            TopicPartitions(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(partitions).items()
        ]
    request = ElectLeadersRequest(topic_partitions=topics, timeout_ms=timeout_ms)
    if version >= FIRST_ELECTION_WITH_TYPES:
        request.election_type = kind
    return request


class ElectLeaders(Operation[TopicPartition, None]):
    """ElectLeaders of some partitions."""

    name = "elect_leaders"
    permission = "ALTER on the cluster"
    since = "2.2"
    final = NO_ELECTION
    words = NO_SUCH_PARTITION
    explained: ClassVar[Mapping[int, str]] = {
        ErrorCode.ELECTION_NOT_NEEDED: "an earlier try, of which no answer came, may have elected "
        "it"
    }
    request_class = ElectLeadersRequest
    response_class = ElectLeadersResponse

    def __init__(self, kind: ElectionType, partitions: Iterable[TopicPartition]) -> None:
        """Take which replicas become leaders, and of which partitions.

        Raises:
            UsageError: there is no such type of elections.
        """
        super().__init__(Controller(), partitions_of(partitions))
        self._kind = checked_choice(ElectionType, kind, "the type of an election")

    def unsupported(self, item: TopicPartition, version: int) -> KafkaError | None:
        """Refuse what brokers before KIP-460 do not know."""
        if version < FIRST_ELECTION_WITH_TYPES and self._kind != ElectionType.PREFERRED:
            return UnsupportedVersionError(f"{self.describe(item)}: {NO_TYPES}")
        return None

    def build(self, items: Sequence[TopicPartition], version: int) -> ElectLeadersRequest:
        """Ask for the elections."""
        return _election(self._kind, items, version=version, timeout_ms=self.timeout_ms)

    def outcomes(
        self, answer: ElectLeadersResponse, items: Sequence[TopicPartition], source: AnswerSource
    ) -> Iterator[tuple[TopicPartition, Meaning[None]]]:
        """Return which partitions have got their leaders."""
        if answer.error_code:
            yield from self.all_refused(items, answer.error_code)
            return
        for topic in answer.replica_election_results:
            for part in topic.partition_result:
                key = TopicPartition(topic.topic, part.partition_id)
                yield key, self.done_or_refusal(key, part.error_code, part.error_message)


class ElectAllLeaders(Operation[str, dict[TopicPartition, KafkaError | None]]):
    """ElectLeaders of all partitions: the answer names those that needed an election."""

    name = "elect_leaders"
    permission = "ALTER on the cluster"
    since = "2.2"
    request_class = ElectLeadersRequest
    response_class = ElectLeadersResponse

    def __init__(self, kind: ElectionType) -> None:
        """Take which replicas become leaders.

        Raises:
            UsageError: there is no such type of elections.
        """
        super().__init__(Controller(), [ONLY])
        self._kind = checked_choice(ElectionType, kind, "the type of an election")

    def unsupported(self, item: str, version: int) -> KafkaError | None:
        """Refuse what brokers before KIP-460 do not know."""
        if version < FIRST_ELECTION_WITH_TYPES and self._kind != ElectionType.PREFERRED:
            return UnsupportedVersionError(f"{self.describe(item)}: {NO_TYPES}")
        return None

    def build(self, items: Sequence[str], version: int) -> ElectLeadersRequest:
        """Ask for elections wherever one is needed."""
        return _election(self._kind, None, version=version, timeout_ms=self.timeout_ms)

    def outcomes(
        self, answer: ElectLeadersResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[dict[TopicPartition, KafkaError | None]]]]:
        """Return what became of each partition; old brokers name those that needed none, too."""
        if answer.error_code:
            yield ONLY, self.refusal(ONLY, answer.error_code)
            return
        reader = ElectLeaders(self._kind, [])
        results: dict[TopicPartition, KafkaError | None] = {}
        for key, meaning in reader.outcomes(answer, [], source):
            if isinstance(meaning, FindAgain):  # older brokers say it of each partition
                yield ONLY, meaning
                return
            error = None if isinstance(meaning, Done) else meaning.error
            if error is None or getattr(error, "code", 0) != ErrorCode.ELECTION_NOT_NEEDED:
                results[key] = error
        yield ONLY, Done(results)


# ---- reassignments ----


class AlterPartitionReassignments(Operation[TopicPartition, None]):
    """AlterPartitionReassignments."""

    name = "alter_partition_reassignments"
    permission = "ALTER on the cluster"
    since = "2.4"
    at_controllers = True
    final = frozenset(NO_SUCH_PARTITION)
    words = NO_SUCH_PARTITION
    explained: ClassVar[Mapping[int, str]] = {
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "an earlier try, of which no answer came, may have "
        "ended it"
    }
    request_class = AlterPartitionReassignmentsRequest
    response_class = AlterPartitionReassignmentsResponse

    def __init__(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool,
    ) -> None:
        """Take the brokers that each partition is to have.

        Args:
            reassignments: ids of brokers, the preferred leader first; None: end the move that is
                under way.
            allow_replication_factor_change: whether a partition may get more or fewer replicas.

        Raises:
            UsageError: a partition is to have no replica.
        """
        reassignments = mapping_of(reassignments, "reassignments")
        for partition, replicas in reassignments.items():
            if replicas is not None and not replicas:
                raise UsageError(f"{partition} needs a replica; None ends a move")
        super().__init__(Controller(), partitions_of(reassignments))
        self._replicas = {
            partition: None if replicas is None else list(replicas)
            for partition, replicas in reassignments.items()
        }
        self._may_change_factor = allow_replication_factor_change

    def unsupported(self, item: TopicPartition, version: int) -> KafkaError | None:
        """Refuse to ask brokers before KIP-860 to keep the number of replicas."""
        if version < FIRST_REASSIGNMENT_WITH_FACTOR and not self._may_change_factor:
            return UnsupportedVersionError(
                f"{self.describe(item)}: the number of replicas is kept since Kafka 4.1; allow its "
                "change for older brokers"
            )
        return None

    def build(
        self, items: Sequence[TopicPartition], version: int
    ) -> AlterPartitionReassignmentsRequest:
        """Ask for the moves."""
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=self.timeout_ms,
            topics=[
                ReassignableTopic(
                    name=topic,
                    partitions=[
                        ReassignablePartition(
                            partition_index=number,
                            replicas=self._replicas[TopicPartition(topic, number)],
                        )
                        for number in numbers
                    ],
                )
                for topic, numbers in by_topic(items).items()
            ],
        )
        if version >= FIRST_REASSIGNMENT_WITH_FACTOR:
            request.allow_replication_factor_change = self._may_change_factor
        return request

    def outcomes(
        self,
        answer: AlterPartitionReassignmentsResponse,
        items: Sequence[TopicPartition],
        source: AnswerSource,
    ) -> Iterator[tuple[TopicPartition, Meaning[None]]]:
        """Return which moves have begun, or ended."""
        if answer.error_code:
            yield from self.all_refused(items, answer.error_code, answer.error_message)
            return
        for topic in answer.responses:
            for part in topic.partitions:
                key = TopicPartition(topic.name, part.partition_index)
                yield key, self.done_or_refusal(key, part.error_code, part.error_message)


class ListPartitionReassignments(Operation[str, dict[TopicPartition, PartitionReassignment]]):
    """ListPartitionReassignments."""

    name = "list_partition_reassignments"
    permission = "DESCRIBE on the cluster"
    since = "2.4"
    at_controllers = True
    request_class = ListPartitionReassignmentsRequest
    response_class = ListPartitionReassignmentsResponse

    def __init__(self, partitions: Iterable[TopicPartition] | None) -> None:
        """Take the partitions that may be moving; None: all."""
        super().__init__(Controller(), [ONLY])
        self._partitions = (
            None if partitions is None else list(dict.fromkeys(partitions_of(partitions)))
        )

    def build(self, items: Sequence[str], version: int) -> ListPartitionReassignmentsRequest:
        """Ask for the moves."""
        topics = None
        if self._partitions is not None:
            topics = [
                ListPartitionReassignmentsTopics(name=topic, partition_indexes=numbers)
                for topic, numbers in by_topic(self._partitions).items()
            ]
        return ListPartitionReassignmentsRequest(timeout_ms=self.timeout_ms, topics=topics)

    def outcomes(
        self, answer: ListPartitionReassignmentsResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[dict[TopicPartition, PartitionReassignment]]]]:
        """Return the moves that are under way."""
        if answer.error_code:
            yield ONLY, self.refusal(ONLY, answer.error_code, answer.error_message)
            return
        moves = {
            TopicPartition(topic.name, part.partition_index): PartitionReassignment(
                tuple(part.replicas), tuple(part.adding_replicas), tuple(part.removing_replicas)
            )
            for topic in answer.topics
            for part in topic.partitions
        }
        yield ONLY, Done(moves)
