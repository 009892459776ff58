"""Operations on transactions: list, describe and abort them, fence their producers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from kafka_fast.control.admin.operation import Operation
from kafka_fast.control.admin.types.transactions import (
    ProducerIdAndEpoch,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kafka_fast.control.arguments import names_of, partitions_of, several
from kafka_fast.control.metadata.metadata import by_topic
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Meaning, NotDone, Refused
from kafka_fast.control.requests.targets import (
    AllNodes,
    CoordinatorKind,
    CoordinatorOfEach,
    Leaders,
    OneNode,
)
from kafka_fast.errors import ErrorCode, KafkaError, UnsupportedVersionError, UsageError
from kafka_fast.protocol.apis.transactions import describe_producers as producers_api
from kafka_fast.protocol.apis.transactions import describe_transactions as transactions_api
from kafka_fast.protocol.apis.transactions.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafka_fast.protocol.apis.transactions.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kafka_fast.protocol.apis.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafka_fast.types import TopicPartition

FIRST_LIST_WITH_DURATION = 1
FIRST_LIST_WITH_PATTERN = 2
NO_FILTER = -1
PARTITIONS_PER_REQUEST = 500
"""More would make an answer that keeps the control thread from other work."""
NO_SUCH_REPLICA = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)


def _check_ids(transactional_ids: Iterable[str]) -> list[str]:
    ids = names_of(transactional_ids, "transactional ids")
    if "" in ids:
        raise UsageError("a transactional id is not empty")
    return ids


# ---- what coordinators know ----


class ListTransactions(Operation[int, dict[str, TransactionListing]]):
    """ListTransactions: of all nodes, because each may be a coordinator."""

    name = "list_transactions"
    noun = "node"
    permission = "DESCRIBE on the transactional id"
    since = "3.0"
    request_class = ListTransactionsRequest
    response_class = ListTransactionsResponse

    def __init__(
        self,
        *,
        states: Iterable[TransactionState | str],
        producer_ids: Iterable[int],
        min_duration_ms: int | None,
        pattern: str | None,
    ) -> None:
        """Take what is left out.

        Args:
            states: only transactions in one of these; none: in any.
            producer_ids: only those of these producers; none: of any.
            min_duration_ms: only those that are open for longer.
            pattern: only those whose transactional id matches, a regular expression of RE2J.

        Raises:
            UsageError: the duration is negative, or a state is the unknown one.
        """
        super().__init__(AllNodes(), None)
        if min_duration_ms is not None and min_duration_ms < 0:
            raise UsageError(f"a duration of {min_duration_ms} ms")
        # A state that this version has no name for may be given as text.
        self._states = [str(getattr(state, "value", state)) for state in names_of(states, "states")]
        if TransactionState.UNKNOWN.value in self._states:
            raise UsageError("brokers know no transactions in the state UNKNOWN")
        self._producer_ids = several(producer_ids, "the ids of producers")
        self._min_duration_ms = min_duration_ms
        self._pattern = pattern

    def unsupported(self, item: int, version: int) -> KafkaError | None:
        """Refuse filters that the broker does not have."""
        if self._pattern is not None and version < FIRST_LIST_WITH_PATTERN:
            what = "transactional ids are matched with a pattern since Kafka 4.1"
        elif self._min_duration_ms is not None and version < FIRST_LIST_WITH_DURATION:
            what = "transactions are listed by their duration since Kafka 3.8"
        else:
            return None
        return UnsupportedVersionError(f"{self.describe(item)}: {what}")

    def build(self, items: Sequence[int], version: int) -> ListTransactionsRequest:
        """Ask a node for the transactions that it coordinates."""
        request = ListTransactionsRequest(
            state_filters=self._states, producer_id_filters=self._producer_ids
        )
        if version >= FIRST_LIST_WITH_DURATION:
            duration = self._min_duration_ms
            request.duration_filter = NO_FILTER if duration is None else duration
        if version >= FIRST_LIST_WITH_PATTERN:
            request.transactional_id_pattern = self._pattern
        return request

    def outcomes(
        self, answer: ListTransactionsResponse, items: Sequence[int], source: AnswerSource
    ) -> Iterator[tuple[int, Meaning[dict[str, TransactionListing]]]]:
        """Return the transactions of a node, by their transactional ids."""
        for item in items:  # each node has a request of its own
            if answer.error_code:
                yield item, self.refusal(item, answer.error_code)
                continue
            listings = [
                TransactionListing(
                    one.transactional_id, one.producer_id, TransactionState(one.transaction_state)
                )
                for one in answer.transaction_states
            ]
            yield item, Done({one.transactional_id: one for one in listings})

    def refusal(self, item: int, code: int, said: str | None = None) -> NotDone:
        """Give up a node that stops: it coordinates nothing any more."""
        meaning = super().refusal(item, code, said)
        return Refused(meaning.error) if code == ErrorCode.COORDINATOR_NOT_AVAILABLE else meaning


class DescribeTransactions(Operation[str, TransactionDescription]):
    """DescribeTransactions."""

    name = "describe_transactions"
    noun = "transactional id"
    permission = "DESCRIBE on the transactional id"
    since = "3.0"
    request_class = transactions_api.DescribeTransactionsRequest
    response_class = transactions_api.DescribeTransactionsResponse

    def __init__(self, transactional_ids: Iterable[str]) -> None:
        """Take the ids.

        Raises:
            UsageError: one is empty.
        """
        super().__init__(
            CoordinatorOfEach(CoordinatorKind.TRANSACTION), _check_ids(transactional_ids)
        )

    def build(
        self, items: Sequence[str], version: int
    ) -> transactions_api.DescribeTransactionsRequest:
        """Ask a coordinator for some of its ids."""
        return transactions_api.DescribeTransactionsRequest(transactional_ids=list(items))

    def outcomes(
        self,
        answer: transactions_api.DescribeTransactionsResponse,
        items: Sequence[str],
        source: AnswerSource,
    ) -> Iterator[tuple[str, Meaning[TransactionDescription]]]:
        """Return the transactions."""
        for one in answer.transaction_states:
            key = one.transactional_id
            if one.error_code:
                yield key, self.refusal(key, one.error_code)
                continue
            partitions = [
                TopicPartition(topic.topic, number)
                for topic in one.topics
                for number in topic.partitions
            ]
            start = one.transaction_start_time_ms
            description = TransactionDescription(
                TransactionState(one.transaction_state),
                one.producer_id,
                one.producer_epoch,
                one.transaction_timeout_ms,
                start if start >= 0 else None,
                frozenset(partitions),
            )
            yield key, Done(description)


class FenceProducers(Operation[str, ProducerIdAndEpoch]):
    """InitProducerId, as a new producer of the same transactional id would send it."""

    name = "fence_producers"
    noun = "transactional id"
    permission = "WRITE on the transactional id"
    request_class = InitProducerIdRequest
    response_class = InitProducerIdResponse

    def __init__(self, transactional_ids: Iterable[str]) -> None:
        """Take the ids.

        Raises:
            UsageError: one is empty.
        """
        super().__init__(
            CoordinatorOfEach(CoordinatorKind.TRANSACTION), _check_ids(transactional_ids)
        )

    def max_items(self, version: int) -> int:
        """Return 1: a request is about one id."""
        return 1

    def build(self, items: Sequence[str], version: int) -> InitProducerIdRequest:
        """Ask for the next epoch; the old transaction is aborted for it."""
        (transactional_id,) = items
        return InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=self.timeout_ms
        )

    def outcomes(
        self, answer: InitProducerIdResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[ProducerIdAndEpoch]]]:
        """Return the id and epoch from which on nobody is fenced."""
        for item in items:
            if answer.error_code:
                yield item, self.refusal(item, answer.error_code)
            else:
                yield item, Done(ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch))


# ---- what logs know ----


class DescribeProducers(Operation[TopicPartition, tuple[ProducerState, ...]]):
    """DescribeProducers: of leaders, or of one broker with replicas."""

    name = "describe_producers"
    permission = "READ on the topic"
    since = "2.8"
    request_class = producers_api.DescribeProducersRequest
    response_class = producers_api.DescribeProducersResponse

    def __init__(
        self, partitions: Iterable[TopicPartition], *, broker_id: int | None = None
    ) -> None:
        """Take the partitions, and who is asked; None: the leader of each."""
        target = Leaders() if broker_id is None else OneNode(broker_id)
        super().__init__(target, partitions_of(partitions))
        self._broker_id = broker_id

    def max_items(self, version: int) -> int:
        """Return how many partitions one answer may describe."""
        return PARTITIONS_PER_REQUEST

    def build(
        self, items: Sequence[TopicPartition], version: int
    ) -> producers_api.DescribeProducersRequest:
        """Ask for the producers."""
        return producers_api.DescribeProducersRequest(
            topics=[
                producers_api.TopicRequest(name=topic, partition_indexes=numbers)
                for topic, numbers in by_topic(items).items()
            ]
        )

    def outcomes(
        self,
        answer: producers_api.DescribeProducersResponse,
        items: Sequence[TopicPartition],
        source: AnswerSource,
    ) -> Iterator[tuple[TopicPartition, Meaning[tuple[ProducerState, ...]]]]:
        """Return the producers of each partition."""
        for topic in answer.topics:
            for part in topic.partitions:
                key = TopicPartition(topic.name, part.partition_index)
                if part.error_code:
                    yield key, self.refusal(key, part.error_code, part.error_message)
                else:
                    yield key, Done(tuple(map(_producer, part.active_producers)))

    def refusal(self, item: TopicPartition, code: int, said: str | None = None) -> NotDone:
        """Give up what a certain broker does not have: no other one is asked for it."""
        meaning = super().refusal(item, code, said)
        is_final = self._broker_id is not None and code in NO_SUCH_REPLICA
        return Refused(meaning.error) if is_final else meaning


def _producer(state: producers_api.ProducerState) -> ProducerState:
    epoch, start = state.coordinator_epoch, state.current_txn_start_offset
    return ProducerState(
        state.producer_id,
        state.producer_epoch,
        state.last_sequence,
        state.last_timestamp,
        epoch if epoch >= 0 else None,
        start if start >= 0 else None,
    )


class AbortTransaction(Operation[TopicPartition, None]):
    """WriteTxnMarkers, as a coordinator sends it, for a transaction that hangs."""

    name = "abort_transaction"
    permission = "ALTER or CLUSTER_ACTION on the cluster"
    since = "2.8"
    words: ClassVar[Mapping[int, str]] = {
        ErrorCode.INVALID_PRODUCER_EPOCH: "the producer has a higher epoch",
        ErrorCode.TRANSACTION_COORDINATOR_FENCED: "a coordinator with a higher epoch has written",
    }
    request_class = WriteTxnMarkersRequest
    response_class = WriteTxnMarkersResponse

    def __init__(
        self,
        partition: TopicPartition,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
    ) -> None:
        """Take whose transaction is aborted, and where.

        Args:
            partition: in which it is open.
            producer_id: of its producer.
            producer_epoch: of its producer.
            coordinator_epoch: of the coordinator that wrote the last marker.

        Raises:
            UsageError: the id or an epoch is negative.
        """
        super().__init__(Leaders(), [partition])
        if min(producer_id, producer_epoch, coordinator_epoch) < 0:
            raise UsageError(
                f"{partition}: the transaction of producer {producer_id} with epoch "
                f"{producer_epoch}, coordinator epoch {coordinator_epoch}: none may be negative"
            )
        self._producer_id = producer_id
        self._producer_epoch = producer_epoch
        self._coordinator_epoch = coordinator_epoch

    def build(self, items: Sequence[TopicPartition], version: int) -> WriteTxnMarkersRequest:
        """Ask for the marker."""
        topics = [
            WritableTxnMarkerTopic(name=topic, partition_indexes=numbers)
            for topic, numbers in by_topic(items).items()
        ]
        marker = WritableTxnMarker(
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            transaction_result=False,
            topics=topics,
            coordinator_epoch=self._coordinator_epoch,
        )
        return WriteTxnMarkersRequest(markers=[marker])

    def outcomes(
        self, answer: WriteTxnMarkersResponse, items: Sequence[TopicPartition], source: AnswerSource
    ) -> Iterator[tuple[TopicPartition, Meaning[None]]]:
        """Return whether the marker was written."""
        for marker in answer.markers:
            if marker.producer_id != self._producer_id:
                continue
            for topic in marker.topics:
                for part in topic.partitions:
                    key = TopicPartition(topic.name, part.partition_index)
                    yield key, self.done_or_refusal(key, part.error_code)
