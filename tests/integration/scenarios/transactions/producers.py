"""Steps of scenarios about transactions: a transactional producer without any policy.

What it asks it asks once, and returns the error code; the steps in the past participle ask until
nothing is refused for the moment only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafka_fast import errors
from kafka_fast.protocol.apis.cluster.find_coordinator import FindCoordinatorRequest
from kafka_fast.protocol.apis.records.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from kafka_fast.protocol.apis.records.produce import ProduceRequest
from kafka_fast.protocol.apis.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka_fast.protocol.apis.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafka_fast.protocol.apis.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    TransactionState,
)
from kafka_fast.protocol.apis.transactions.end_txn import EndTxnRequest, EndTxnResponse
from kafka_fast.protocol.apis.transactions.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafka_fast.protocol.apis.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafka_fast.protocol.apis.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kafka_fast.record import ControlType, RecordBatch, read_batches
from tests.integration.scenarios.groups import NO_COORDINATOR_YET, until
from tests.integration.scenarios.steps import unique_name
from tests.integration.scenarios.wire import WireClient, batch, produce_request
from tests.waiting import eventually

TRANSACTION = 1  # kind of coordinator
READ_COMMITTED = 1
CONCURRENT = errors.ConcurrentTransactions.code
FENCED = errors.ProducerFenced.code
STALE_EPOCH = errors.InvalidProducerEpoch.code
BAD_STATE = errors.InvalidTxnState.code
UNKNOWN_ID = errors.InvalidProducerIdMapping.code
ABORTABLE = errors.TransactionAbortable.code
OUT_OF_ORDER = errors.OutOfOrderSequenceNumber.code


class TransactionalProducer:
    """One producer with a transactional id; speaks protocol version 1 or 2 as each step says."""

    def __init__(
        self, client: WireClient, transactional_id: str | None = None, *, protocol: int = 1
    ) -> None:
        self.client = client
        self.transactional_id = transactional_id or unique_name()
        self.protocol = protocol
        self.producer_id = -1
        self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    # ---- identity ----

    def find_coordinator_once(self) -> int:
        """Ask who coordinates the transactional id; return the error code."""
        request = FindCoordinatorRequest(
            key_type=TRANSACTION, coordinator_keys=[self.transactional_id]
        )
        return int(self.client.ask(request, 6).coordinators[0].error_code)

    def find_coordinator(self) -> int:
        """Return the node that coordinates the transactional id, when it does."""
        request = FindCoordinatorRequest(
            key_type=TRANSACTION, coordinator_keys=[self.transactional_id]
        )
        coordinator = until(
            lambda: self.client.ask(request, 6).coordinators[0],
            lambda one: one.error_code not in NO_COORDINATOR_YET,
        )
        assert coordinator.error_code == 0
        until(self.described, lambda one: one.error_code not in NO_COORDINATOR_YET)
        return int(coordinator.node_id)

    def ask_for_id(
        self,
        *,
        timeout_ms: int = 60_000,
        expected: tuple[int, int] = (-1, -1),
        version: int = 5,
    ) -> InitProducerIdResponse:
        """Send one InitProducerId and keep what a good answer brings."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=expected[0],
            producer_epoch=expected[1],
        )
        answer: InitProducerIdResponse = self.client.ask(request, version)
        if not answer.error_code:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return answer

    def init(self, **options: Any) -> TransactionalProducer:
        """Get an id and an epoch, however often that has to be asked for."""
        self.find_coordinator()
        later = {*NO_COORDINATOR_YET, CONCURRENT}
        answer = until(lambda: self.ask_for_id(**options), lambda one: one.error_code not in later)
        assert answer.error_code == 0
        return self

    def copy(self) -> TransactionalProducer:
        """Return a producer that knows what this one knows, and does not hear of what follows."""
        made = TransactionalProducer(self.client, self.transactional_id, protocol=self.protocol)
        made.producer_id, made.epoch = self.producer_id, self.epoch
        made.sequences = dict(self.sequences)
        return made

    # ---- partitions ----

    def add(self, topic: str, *partitions: int, version: int = 3) -> int:
        """Add partitions once; return the error code that all of them get."""
        codes = self.add_all([(topic, index) for index in partitions or (0,)], version=version)
        (code,) = set(codes.values())
        return code

    def add_all(
        self, partitions: Sequence[tuple[str, int]], *, version: int = 3
    ) -> dict[tuple[str, int], int]:
        """Add partitions once; return the error code of each."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=topics_of(partitions),
        )
        answer = self.client.ask(request, version)
        return {
            (topic.name, one.partition_index): one.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        }

    def added(self, topic: str, *partitions: int) -> None:
        """Add partitions, however often that has to be asked for."""
        assert settled(lambda: self.add(topic, *partitions)) == 0

    def add_as_broker(self, topic: str, *partitions: int, verify: bool = False) -> list[int]:
        """Add partitions, or ask whether they were, as the leader of a partition does."""
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            verify_only=verify,
            topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )
        answer = self.client.ask(AddPartitionsToTxnRequest(transactions=[transaction]), 5)
        if answer.error_code:
            return [answer.error_code]
        results = answer.results_by_transaction[0].topic_results[0].results_by_partition
        codes = {one.partition_index: one.partition_error_code for one in results}
        return [codes[index] for index in partitions]

    # ---- records ----

    def write(
        self,
        topic: str,
        partition: int = 0,
        *,
        count: int = 1,
        epoch: int | None = None,
        sequence: int | None = None,
        version: int | None = None,
        transactional_id: str | None = None,
        is_transactional: bool = True,
        value: bytes = b"value",
    ) -> int:
        """Produce one batch once; return the partition's error code."""
        request = self.produce_request(
            topic,
            partition,
            count=count,
            epoch=epoch,
            sequence=sequence,
            transactional_id=transactional_id,
            is_transactional=is_transactional,
            value=value,
        )
        if version is None:
            version = 12 if self.protocol == 2 else 11
        code = int(self.client.ask(request, version).responses[0].partition_responses[0].error_code)
        if not code:
            place = (topic, partition)
            first = self.sequences.get(place, 0) if sequence is None else sequence
            self.sequences[place] = first + count
        return code

    def produce_request(
        self,
        topic: str,
        partition: int = 0,
        *,
        count: int = 1,
        epoch: int | None = None,
        sequence: int | None = None,
        transactional_id: str | None = None,
        is_transactional: bool = True,
        value: bytes = b"value",
    ) -> ProduceRequest:
        """Return a Produce request for the next batch."""
        first = self.sequences.get((topic, partition), 0) if sequence is None else sequence
        records = batch(
            count,
            value=value,
            producer=(self.producer_id, self.epoch if epoch is None else epoch, first),
            is_transactional=is_transactional,
        )
        named = transactional_id or self.transactional_id
        return produce_request(topic, [(partition, records)], transactional_id=named)

    def written(self, topic: str, partition: int = 0, **options: Any) -> None:
        """Add the partition where the protocol wants that, and produce a batch."""
        if self.protocol < 2:
            self.added(topic, partition)
        assert self.write(topic, partition, **options) == 0

    # ---- offsets ----

    def add_offsets(self, group: str, *, version: int = 4) -> int:
        """Add a group's offsets once; return the error code."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        return int(self.client.ask(request, version).error_code)

    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[tuple[str, int], int],
        *,
        member_id: str = "",
        generation: int = -1,
        instance_id: str | None = None,
        metadata: str | None = "",
        version: int | None = None,
        topic_ids: Mapping[str, bytes] | None = None,
    ) -> list[int]:
        """Send one TxnOffsetCommit; return the error codes."""
        if version is None:
            version = 5 if self.protocol == 2 else 4
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    topic_id=(topic_ids or {}).get(topic, bytes(16)),
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offset,
                            committed_metadata=metadata,
                        )
                    ],
                )
                for (topic, index), offset in offsets.items()
            ],
        )
        answer = self.client.ask(request, version)
        return [one.error_code for topic in answer.topics for one in topic.partitions]

    def offsets_sent(self, group: str, offsets: Mapping[tuple[str, int], int], **rest: Any) -> None:
        """Commit offsets in the transaction, however often that has to be asked for."""
        if self.protocol < 2:
            assert settled(lambda: self.add_offsets(group)) == 0
        assert set(until(lambda: self.commit_offsets(group, offsets, **rest), no_delay)) == {0}

    # ---- the end ----

    def ask_to_end(self, *, commit: bool, version: int | None = None) -> EndTxnResponse:
        """Send one EndTxn; keep the epoch that a good answer of version 5 brings."""
        if version is None:
            version = 5 if self.protocol == 2 else 4
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        answer: EndTxnResponse = self.client.ask(request, version)
        if not answer.error_code and version >= 5:
            if (self.producer_id, self.epoch) != (answer.producer_id, answer.producer_epoch):
                self.sequences.clear()
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def end(self, *, commit: bool) -> None:
        """End the transaction and wait until all of its markers are written."""
        later = {*NO_COORDINATOR_YET, CONCURRENT}
        answer = until(
            lambda: self.ask_to_end(commit=commit), lambda one: one.error_code not in later
        )
        assert answer.error_code == 0
        self.wait_for_state("CompleteCommit" if commit else "CompleteAbort")

    def write_marker(
        self,
        topic: str,
        partition: int = 0,
        *,
        epoch: int,
        commit: bool = False,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
        version: int = 2,
    ) -> int:
        """End the transaction in one partition, past its coordinator; return the error code."""
        marker = WritableTxnMarker(
            producer_id=self.producer_id,
            producer_epoch=epoch,
            transaction_result=commit,
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
        )
        answer = self.client.ask(WriteTxnMarkersRequest(markers=[marker]), version)
        return int(answer.markers[0].topics[0].partitions[0].error_code)

    # ---- what the coordinator says of it ----

    def described(self) -> TransactionState:
        """Return what the coordinator knows of the transaction."""
        request = DescribeTransactionsRequest(transactional_ids=[self.transactional_id])
        state: TransactionState = self.client.ask(request, 0).transaction_states[0]
        return state

    def wait_for_state(self, name: str) -> TransactionState:
        """Wait until the transaction is in a state."""
        return until(self.described, lambda one: one.transaction_state == name)


def topics_of(partitions: Sequence[tuple[str, int]]) -> list[AddPartitionsToTxnTopic]:
    """Return partitions by topic."""
    indexes: dict[str, list[int]] = {}
    for topic, index in partitions:
        indexes.setdefault(topic, []).append(index)
    return [AddPartitionsToTxnTopic(name=topic, partitions=one) for topic, one in indexes.items()]


def no_delay(codes: Sequence[int]) -> bool:
    """Tell whether nothing was refused for the moment only."""
    return not {*NO_COORDINATOR_YET, CONCURRENT, errors.NotEnoughReplicas.code} & set(codes)


def settled(step: Callable[[], int]) -> int:
    """Repeat a step while it is refused for the moment only; return its error code."""
    return until(step, lambda code: no_delay([code]))


def log_of(client: WireClient, topic: str, partition: int = 0) -> list[tuple[str, int]]:
    """Return what the batches of a log are, and the epochs of their producers."""
    return [
        (
            ControlType(one.control_record().type).name if one.is_control else "data",
            one.producer_epoch,
        )
        for one in batches(client, topic, partition)
    ]


def fetch(
    client: WireClient, topic: str, offset: int = 0, *, partition: int = 0, isolation: int = 0
) -> PartitionData:
    """Return a partition as a reader of an isolation level gets it."""
    asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_bytes=1 << 20,
        isolation_level=isolation,
        topics=[FetchTopic(topic=topic, partitions=[asked])],
    )
    data: PartitionData = client.ask(request, 12).responses[0].partitions[0]
    assert data.error_code == 0
    return data


def batches(client: WireClient, topic: str, partition: int = 0) -> list[RecordBatch]:
    """Return all batches of a log."""
    return list(read_batches(fetch(client, topic, partition=partition).records or b""))


def wait_for_end(client: WireClient, topic: str, end: int, partition: int = 0) -> None:
    """Wait until a log has its next record at an offset, or beyond."""
    eventually(
        lambda: fetch(client, topic, partition=partition).high_watermark >= end, f"offset {end}"
    )
