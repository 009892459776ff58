"""Operations on transactions: each version of their requests, and what answers mean."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kafka_fast import TopicPartition
from kafka_fast.admin import (
    ProducerIdAndEpoch,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kafka_fast.control.admin.operations.transactions import (
    AbortTransaction,
    DescribeProducers,
    DescribeTransactions,
    FenceProducers,
    ListTransactions,
)
from kafka_fast.control.requests.meanings import Done, FindAgain, Refresh, Retry
from kafka_fast.control.requests.targets import (
    CoordinatorKind,
    CoordinatorOfEach,
    Leaders,
    OneNode,
)
from kafka_fast.errors import (
    CoordinatorNotAvailable,
    ErrorCode,
    InvalidProducerEpoch,
    InvalidRegularExpression,
    NotLeaderOrFollower,
    TransactionalIdAuthorizationFailed,
    TransactionalIdNotFound,
    TransactionCoordinatorFenced,
    UnknownTopicOrPartition,
    UsageError,
)
from kafka_fast.protocol.apis.transactions import describe_producers as producers_api
from kafka_fast.protocol.apis.transactions import describe_transactions as transactions_api
from kafka_fast.protocol.apis.transactions import list_transactions as list_api
from kafka_fast.protocol.apis.transactions.init_producer_id import InitProducerIdResponse
from kafka_fast.protocol.apis.transactions.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from tests.unit.control.admin.operations.trying import meanings, refused, sent, values, versions

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


# ---- lists ----


def listing(**filters: Any) -> ListTransactions:
    defaults = {"states": (), "producer_ids": (), "min_duration_ms": None, "pattern": None}
    return ListTransactions(**{**defaults, **filters})


def test_transactions_are_listed_with_filters() -> None:
    for version in versions(ListTransactions):
        operation = listing(
            states=[TransactionState.ONGOING, "Newest"],
            producer_ids={7},
            min_duration_ms=5 if version >= 1 else None,
            pattern="a.*" if version >= 2 else None,
        )
        assert operation.items is None
        assert operation.unsupported(1, version) is None
        request = sent(operation, version, [1])
        assert (request.state_filters, request.producer_id_filters) == (["Ongoing", "Newest"], [7])
        assert request.duration_filter == (5 if version >= 1 else -1)
        assert request.transactional_id_pattern == ("a.*" if version >= 2 else None)
        bare = sent(listing(), version, [1])
        assert (bare.state_filters, bare.producer_id_filters) == ([], [])
        assert (bare.duration_filter, bare.transactional_id_pattern) == (-1, None)


def test_filters_need_newer_brokers() -> None:
    assert "since Kafka 3.8" in str(listing(min_duration_ms=0).unsupported(1, 0))
    assert "since Kafka 4.1" in str(listing(pattern="a").unsupported(1, 1))
    with pytest.raises(UsageError, match="-1 ms"):
        listing(min_duration_ms=-1)
    with pytest.raises(UsageError, match="UNKNOWN"):
        listing(states=[TransactionState.UNKNOWN])


def test_a_node_lists_its_transactions() -> None:
    answer = list_api.ListTransactionsResponse(
        unknown_state_filters=["Newest"],
        transaction_states=[
            list_api.TransactionState(
                transactional_id="a", producer_id=7, transaction_state="Ongoing"
            ),
            list_api.TransactionState(
                transactional_id="b", producer_id=8, transaction_state="Newest"
            ),
        ],
    )
    listed = values(listing(), answer, 2, [3])[3]
    assert listed == {
        "a": TransactionListing("a", 7, TransactionState.ONGOING),
        "b": TransactionListing("b", 8, TransactionState.UNKNOWN),
    }
    assert pickle.loads(pickle.dumps(listed)) == listed


def test_a_node_lists_nothing() -> None:
    def meaning(code: int) -> Any:
        return meanings(listing(), list_api.ListTransactionsResponse(error_code=code), 2, [3])[3]

    assert isinstance(meaning(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), Retry)
    assert isinstance(
        refused(meaning(ErrorCode.COORDINATOR_NOT_AVAILABLE)), CoordinatorNotAvailable
    )
    error = refused(meaning(ErrorCode.INVALID_REGULAR_EXPRESSION))
    assert isinstance(error, InvalidRegularExpression)
    assert "ListTransactions of node 3" in str(error)


# ---- coordinators ----


def test_transactions_are_described() -> None:
    operation = DescribeTransactions(["a", "b", "c", "d", "a"])
    assert operation.target == CoordinatorOfEach(CoordinatorKind.TRANSACTION)
    assert sent(operation, 0).transactional_ids == ["a", "b", "c", "d"]
    ongoing = transactions_api.TransactionState(
        transactional_id="a",
        transaction_state="Ongoing",
        transaction_timeout_ms=60000,
        transaction_start_time_ms=5,
        producer_id=7,
        producer_epoch=1,
        topics=[transactions_api.TopicData(topic="t", partitions=[0, 1])],
    )
    newest = transactions_api.TransactionState(
        transactional_id="b", transaction_state="Newest", transaction_start_time_ms=-1
    )
    absent = transactions_api.TransactionState(
        transactional_id="c", error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    )
    moved = transactions_api.TransactionState(
        transactional_id="d", error_code=ErrorCode.NOT_COORDINATOR
    )
    answer = transactions_api.DescribeTransactionsResponse(
        transaction_states=[ongoing, newest, absent, moved]
    )
    read = meanings(operation, answer, 0)
    assert read["a"] == Done(
        TransactionDescription(TransactionState.ONGOING, 7, 1, 60000, 5, frozenset({ZERO, ONE}))
    )
    assert read["b"] == Done(
        TransactionDescription(TransactionState.UNKNOWN, 0, 0, 0, None, frozenset())
    )
    error = refused(read["c"])
    assert isinstance(error, TransactionalIdNotFound)
    assert "DescribeTransactions of transactional id 'c'" in str(error)
    assert isinstance(read["d"], FindAgain)
    with pytest.raises(UsageError, match="not empty"):
        DescribeTransactions(["a", ""])


def test_producers_are_fenced() -> None:
    operation = FenceProducers(["a"])
    for version in versions(FenceProducers):
        assert operation.max_items(version) == 1
        request = sent(operation, version)
        assert (request.transactional_id, request.transaction_timeout_ms) == ("a", 30000)
        assert (request.producer_id, request.producer_epoch) == (-1, -1)
        answer = InitProducerIdResponse(producer_id=7, producer_epoch=3)
        assert values(operation, answer, version) == {"a": ProducerIdAndEpoch(7, 3)}
    denied = InitProducerIdResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    error = refused(meanings(operation, denied, 4)["a"])
    assert isinstance(error, TransactionalIdAuthorizationFailed)
    assert "of transactional id 'a'" in str(error)
    assert "needs WRITE on the transactional id" in str(error)
    ending = InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)
    assert isinstance(meanings(operation, ending, 4)["a"], Retry)
    with pytest.raises(UsageError, match="not empty"):
        FenceProducers([""])


# ---- logs ----


def producers(*codes: int) -> producers_api.DescribeProducersResponse:
    states = [
        producers_api.ProducerState(
            producer_id=7,
            producer_epoch=1,
            last_sequence=4,
            last_timestamp=5,
            coordinator_epoch=2,
            current_txn_start_offset=3,
        ),
        producers_api.ProducerState(producer_id=8, coordinator_epoch=-1),
    ]
    partitions = [
        producers_api.PartitionResponse(
            partition_index=number, error_code=code, active_producers=[] if code else states
        )
        for number, code in enumerate(codes)
    ]
    return producers_api.DescribeProducersResponse(
        topics=[producers_api.TopicResponse(name="t", partitions=partitions)]
    )


def test_producers_are_described() -> None:
    operation = DescribeProducers([ZERO, ONE])
    assert operation.target == Leaders()
    (topic,) = sent(operation, 0).topics
    assert (topic.name, topic.partition_indexes) == ("t", [0, 1])
    read = meanings(operation, producers(0, ErrorCode.NOT_LEADER_OR_FOLLOWER), 0)
    assert read[ZERO] == Done(
        (ProducerState(7, 1, 4, 5, 2, 3), ProducerState(8, 0, -1, -1, None, None))
    )
    assert isinstance(read[ONE], Refresh)


def test_one_broker_either_has_the_replica_or_not() -> None:
    operation = DescribeProducers([ZERO, ONE], broker_id=2)
    assert operation.target == OneNode(2)
    codes = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    read = meanings(operation, producers(*codes), 0)
    assert isinstance(refused(read[ZERO]), NotLeaderOrFollower)
    assert isinstance(refused(read[ONE]), UnknownTopicOrPartition)


def abort(**changed: int) -> AbortTransaction:
    ids = {"producer_id": 7, "producer_epoch": 1, "coordinator_epoch": 2}
    return AbortTransaction(ZERO, **{**ids, **changed})


def marker(code: int, producer_id: int = 7) -> WriteTxnMarkersResponse:
    part = WritableTxnMarkerPartitionResult(partition_index=0, error_code=code)
    topic = WritableTxnMarkerTopicResult(name="t", partitions=[part])
    return WriteTxnMarkersResponse(
        markers=[WritableTxnMarkerResult(producer_id=producer_id, topics=[topic])]
    )


def test_a_transaction_is_aborted() -> None:
    for version in versions(AbortTransaction):
        (one,) = sent(abort(), version).markers
        assert (one.producer_id, one.producer_epoch, one.coordinator_epoch) == (7, 1, 2)
        assert not one.transaction_result
        assert [(topic.name, topic.partition_indexes) for topic in one.topics] == [("t", [0])]
        assert one.transaction_version == 0
        assert values(abort(), marker(0), version) == {ZERO: None}
    assert meanings(abort(), marker(0, producer_id=8), 1) == {}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.INVALID_PRODUCER_EPOCH, InvalidProducerEpoch),
        (ErrorCode.TRANSACTION_COORDINATOR_FENCED, TransactionCoordinatorFenced),
    ],
)
def test_a_transaction_is_not_aborted(code: int, kind: type[Exception]) -> None:
    error = refused(meanings(abort(), marker(code), 1)[ZERO])
    assert isinstance(error, kind)
    assert "WriteTxnMarkers of t-0" in str(error)
    assert "higher epoch" in str(error)


@pytest.mark.parametrize("name", ["producer_id", "producer_epoch", "coordinator_epoch"])
def test_ids_and_epochs_are_not_negative(name: str) -> None:
    with pytest.raises(UsageError, match=r"t-0: .* none may be negative"):
        abort(**{name: -1})
