"""The requests of a transaction, and what their answers mean for it.

    AddPartitions, AddOffsets ─┐
    EndTransaction ────────────┼─► the coordinator of the transactional id
    (`identity`: an epoch) ────┘
    CommitOffsets ───────────────► the coordinator of the group

An error says with its class what follows: an `AbortableTransactionError` has the transaction
aborted, a `ProducerFencedError` and any other one stop the producer. The transactional id's
coordinator decides. What it says of the state of a transaction that is older than its timeout is
the timeout's doing.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from kafka_fast.control.diagnosis.permissions import described
from kafka_fast.control.diagnosis.troubles import About
from kafka_fast.control.metadata.metadata import by_topic
from kafka_fast.control.producer.identity import AGAIN_SOON, FENCED, FORGOTTEN, fenced_text
from kafka_fast.control.producer.verdicts import ProducerIdentity
from kafka_fast.control.requests.call import ONLY, AnswerSource, Call
from kafka_fast.control.requests.meanings import (
    Done,
    Meaning,
    NotDone,
    Refused,
    Retry,
    meaning_of,
    worst,
)
from kafka_fast.control.requests.targets import Coordinator, CoordinatorKind
from kafka_fast.errors import (
    AbortableTransactionError,
    BrokerError,
    ErrorCode,
    KafkaError,
    ProducerFencedError,
    ProtocolError,
    UnsupportedVersionError,
    broker_error,
)
from kafka_fast.instants import NEVER
from kafka_fast.protocol.apis.transactions.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from kafka_fast.protocol.apis.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kafka_fast.protocol.apis.transactions.end_txn import EndTxnRequest, EndTxnResponse
from kafka_fast.protocol.apis.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kafka_fast.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from kafka_fast.values import Value

STOPPING = frozenset(
    {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    }
)
"""No transaction of this producer will ever succeed."""

LAST_PARTITIONS_VERSION = 3
"""Of AddPartitionsToTxn; the next ones are for brokers."""

LAST_OFFSETS_VERSION = {1: 4, 2: 5}
"""Of TxnOffsetCommit, by protocol version. Version 6 names topics by ids, which a producer does not
know of the topics that its program reads."""

FIRST_VERSION_WITH_MEMBER = 3
"""Of TxnOffsetCommit (KIP-447)."""

LAST_END_VERSION = {1: 4, 2: 5}
"""Of EndTxn, by protocol version."""


class OpenTransaction(Value, frozen=False):
    """What the calls of one transaction have in common."""

    transactional_id: str
    identity: ProducerIdentity
    version: int
    """1, or 2 (KIP-890)."""
    began: float
    """When it was begun; monotonic seconds."""
    timeout: float
    """transaction.timeout.ms, in seconds."""
    warn_at: float = NEVER
    """When the log warns of its age."""

    @property
    def coordinator(self) -> Coordinator:
        """Where its calls go."""
        return Coordinator(CoordinatorKind.TRANSACTION, self.transactional_id)

    def is_timed_out(self, now: float) -> bool:
        """Tell whether the coordinator has aborted it, or is about to."""
        return now - self.began >= self.timeout


def transaction_error(
    transaction: OpenTransaction, code: int, api: str, about: str, now: float
) -> KafkaError:
    """Return the error of a transaction, or of its producer, for an answer that is final.

    Args:
        transaction: the transaction.
        code: what the broker answered.
        api: as "EndTxn".
        about: what was asked about, to go on from the API: " of orders-3"; or "".
        now: the time.
    """
    cause = broker_error(code, f"{api}{about}: {described(code, api)}")
    error: KafkaError
    if code in STOPPING and not is_downgrade(transaction, cause):
        return cause
    too_long = (
        f"the transaction was open for {now - transaction.began:.1f} s, longer than "
        f"transaction.timeout.ms ({transaction.timeout * 1000:.0f})"
    )
    is_timed_out = transaction.is_timed_out(now)
    if code == ErrorCode.INVALID_TXN_STATE and is_timed_out:
        error = AbortableTransactionError(f"{too_long}: the coordinator has aborted it; {cause}")
    elif code in FENCED and is_timed_out and transaction.version == 1:
        # Version 1 fences a producer that is too slow, and does not tell it from one with a
        # successor. To ask for the id again could take it away from that one.
        error = ProducerFencedError(
            f"{too_long}: the coordinator has aborted it and fenced this producer, unless a newer "
            f"one has transactional id {transaction.transactional_id!r}; {cause}"
        )
    elif code in FENCED:
        error = ProducerFencedError(fenced_text(transaction.transactional_id, cause))
    else:
        error = AbortableTransactionError(f"the transaction cannot be committed: {cause}")
    error.__cause__ = cause
    return error


def is_downgrade(transaction: OpenTransaction, error: BaseException | None) -> bool:
    """Tell whether the cluster has gone back to version 1 since the transaction was begun."""
    code = error.code if isinstance(error, BrokerError) else 0
    return code == ErrorCode.UNSUPPORTED_VERSION and transaction.version > 1


def offsets_failure(error: KafkaError) -> KafkaError:
    """Return what an error of a group's offsets means for the transaction.

    The group's coordinator says nothing of the producer. So the transaction is to be aborted,
    unless no transaction of this producer could succeed.
    """
    if isinstance(error, AbortableTransactionError):
        return error
    if isinstance(error, BrokerError) and error.code in STOPPING:
        return error
    failure = AbortableTransactionError(f"the transaction cannot be committed: {error}")
    failure.__cause__ = error
    return failure


def transaction_meaning(
    transaction: OpenTransaction, code: int, api: str, about: str, now: float
) -> NotDone:
    """Return what an error code of a transaction's API means."""
    if code not in FENCED and code not in FORGOTTEN:
        meaning = meaning_of(code, api, about)
        if code == ErrorCode.CONCURRENT_TRANSACTIONS and isinstance(meaning, Retry):
            return Retry(meaning.error, AGAIN_SOON)
        if not isinstance(meaning, Refused):
            return meaning
    return Refused(transaction_error(transaction, code, api, about, now))


class AddPartitions(Call[TopicPartition, None]):
    """Adds partitions to a transaction before their first record is sent (version 1)."""

    request_class = AddPartitionsToTxnRequest
    response_class = AddPartitionsToTxnResponse
    waits_for_answer = True

    def __init__(
        self,
        transaction: OpenTransaction,
        *,
        timeout: float,
        on_added: Callable[[TopicPartition, float], None],
        on_failed: Callable[[KafkaError, float], None],
    ) -> None:
        """Take the transaction, and whom to tell.

        Args:
            transaction: which one.
            timeout: seconds for one try.
            on_added: called with each partition that was added.
            on_failed: called with why one cannot be.
        """
        super().__init__(transaction.coordinator, timeout=timeout)
        self._transaction = transaction
        self._on_added = on_added
        self._on_failed = on_failed

    def subject(self, item: TopicPartition) -> About:
        """Keep troubles under `About.PRODUCER_ID`."""
        return About.PRODUCER_ID

    def max_version(self, items: Sequence[TopicPartition]) -> int:
        """Return the last version that is for clients."""
        return LAST_PARTITIONS_VERSION

    def build(self, items: Sequence[TopicPartition], version: int) -> AddPartitionsToTxnRequest:
        """Return the request for these partitions."""
        identity = self._transaction.identity
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transaction.transactional_id,
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=partitions)
                for topic, partitions in by_topic(items).items()
            ],
        )

    def read(
        self,
        answer: AddPartitionsToTxnResponse,
        items: Sequence[TopicPartition],
        source: AnswerSource,
    ) -> Iterator[tuple[TopicPartition, Meaning[None]]]:
        """Return what became of each partition.

        One that is refused keeps the others from being added: they were not attempted.
        """
        for topic in answer.results_by_topic_v3_and_below:
            for result in topic.results_by_partition:
                partition = TopicPartition(topic.name, result.partition_index)
                code = result.partition_error_code
                if code:
                    yield partition, self._meaning(partition, code, source.now)
                else:
                    yield partition, Done(None)

    def _meaning(self, partition: TopicPartition, code: int, now: float) -> NotDone:
        if code == ErrorCode.OPERATION_NOT_ATTEMPTED:
            return Retry(broker_error(code, f"{self.api} of {partition}"))
        return transaction_meaning(self._transaction, code, self.api, f" of {partition}", now)

    def handle_done(self, item: TopicPartition, value: None, now: float) -> None:
        """Let the partition's records go."""
        self._on_added(item, now)

    def handle_failed(self, item: TopicPartition, error: KafkaError, now: float) -> None:
        """Fail the transaction."""
        self._on_failed(error, now)


class TransactionCall(Call[str, None]):
    """A call of a transaction about one thing."""

    waits_for_answer = True

    def __init__(
        self,
        transaction: OpenTransaction,
        target: Coordinator,
        *,
        timeout: float,
        on_ended: Callable[[KafkaError | None, float], None],
    ) -> None:
        """Take the transaction, and whom to tell.

        Args:
            transaction: which one.
            target: the coordinator that is asked.
            timeout: seconds for one try.
            on_ended: called with None, or with why it has failed.
        """
        super().__init__(target, timeout=timeout)
        self._transaction = transaction
        self._on_ended = on_ended

    def subject(self, item: str) -> About:
        """Keep troubles under `About.PRODUCER_ID`."""
        return About.PRODUCER_ID

    def handle_done(self, item: str, value: None, now: float) -> None:
        """Tell that it was done."""
        self._on_ended(None, now)

    def handle_failed(self, item: str, error: KafkaError, now: float) -> None:
        """Tell why it was not done."""
        self._on_ended(error, now)


class AddOffsets(TransactionCall):
    """Adds a group's offsets to a transaction before they are sent (version 1)."""

    request_class = AddOffsetsToTxnRequest
    response_class = AddOffsetsToTxnResponse

    def __init__(
        self,
        transaction: OpenTransaction,
        group_id: str,
        *,
        timeout: float,
        on_ended: Callable[[KafkaError | None, float], None],
    ) -> None:
        """Take the group; the rest is the base class's."""
        super().__init__(transaction, transaction.coordinator, timeout=timeout, on_ended=on_ended)
        self._group_id = group_id

    def describe(self, item: str) -> str:
        """Return the call with its group."""
        return f"{self.api} of group {self._group_id!r}"

    def build(self, items: Sequence[str], version: int) -> AddOffsetsToTxnRequest:
        """Return the request."""
        identity = self._transaction.identity
        return AddOffsetsToTxnRequest(
            transactional_id=self._transaction.transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            group_id=self._group_id,
        )

    def read(
        self, answer: AddOffsetsToTxnResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[None]]]:
        """Return whether the group was added."""
        code = answer.error_code
        if not code:
            yield ONLY, Done(None)
            return
        about = f" of group {self._group_id!r}"
        yield ONLY, transaction_meaning(self._transaction, code, self.api, about, source.now)


class CommitOffsets(TransactionCall):
    """Sends a group's offsets, which take effect when the transaction commits."""

    request_class = TxnOffsetCommitRequest
    response_class = TxnOffsetCommitResponse

    def __init__(
        self,
        transaction: OpenTransaction,
        group: GroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        timeout: float,
        on_ended: Callable[[KafkaError | None, float], None],
    ) -> None:
        """Take group and offsets; the rest is the base class's."""
        target = Coordinator(CoordinatorKind.GROUP, group.group_id)
        super().__init__(transaction, target, timeout=timeout, on_ended=on_ended)
        self._group = group
        self._offsets = dict(offsets)

    def describe(self, item: str) -> str:
        """Return the call with its group."""
        return f"{self.api} of group {self._group.group_id!r}"

    def max_version(self, items: Sequence[str]) -> int:
        """Return the last version that names topics, and that this transaction may use."""
        return LAST_OFFSETS_VERSION[self._transaction.version]

    def unsupported(self, item: str, version: int) -> KafkaError | None:
        """Refuse a member's offsets where the broker would not know whether it was expelled."""
        if version >= FIRST_VERSION_WITH_MEMBER or self._group.generation < 0:
            return None
        return UnsupportedVersionError(
            f"{self.describe(item)} needs Kafka 2.5 for the offsets of a group's member (KIP-447): "
            f"this broker offers version {version} of {FIRST_VERSION_WITH_MEMBER}; pass the "
            "group's name in place of its metadata, with one transactional id for each partition"
        )

    def build(self, items: Sequence[str], version: int) -> TxnOffsetCommitRequest:
        """Return the request for the offsets that are left."""
        identity, group = self._transaction.identity, self._group
        return TxnOffsetCommitRequest(
            transactional_id=self._transaction.transactional_id,
            group_id=group.group_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            generation_id_or_member_epoch=group.generation,
            member_id=group.member_id,
            group_instance_id=group.instance_id,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset.offset,
                            committed_leader_epoch=offset.leader_epoch,
                            committed_metadata=offset.metadata,
                        )
                        for partition in partitions
                        for offset in [self._offsets[TopicPartition(topic, partition)]]
                    ],
                )
                for topic, partitions in by_topic(self._offsets).items()
            ],
        )

    def read(
        self, answer: TxnOffsetCommitResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[None]]]:
        """Drop the offsets that were taken, and return the worst error of the rest."""
        wrong: list[NotDone] = []
        for topic in answer.topics:
            for part in topic.partitions:
                partition = TopicPartition(topic.name, part.partition_index)
                if part.error_code:
                    wrong.append(self._meaning(partition, part.error_code, source.now))
                else:
                    self._offsets.pop(partition, None)
        if self._offsets and not wrong:
            left = ", ".join(map(str, self._offsets))
            wrong.append(Retry(ProtocolError(f"the answer to {self.api} leaves {left} out")))
        yield ONLY, worst(wrong) if wrong else Done(None)

    def _meaning(self, partition: TopicPartition, code: int, now: float) -> NotDone:
        about = f" of {partition} in group {self._group.group_id!r}"
        return transaction_meaning(self._transaction, code, self.api, about, now)


class EndTransaction(Call[str, "ProducerIdentity | None"]):
    """Tells the coordinator to commit or to abort.

    It is repeated until it is answered: the same decision twice is one decision.
    """

    request_class = EndTxnRequest
    response_class = EndTxnResponse

    def __init__(
        self,
        transaction: OpenTransaction,
        *,
        commits: bool,
        timeout: float,
        on_done: Callable[[ProducerIdentity | None, float], None],
        on_failed: Callable[[KafkaError, float], None],
    ) -> None:
        """Take the decision, and whom to tell.

        Args:
            transaction: which one.
            commits: whether it is committed; else it is aborted.
            timeout: seconds for one try.
            on_done: called with the identity of the next transaction (version 2), or None.
            on_failed: called with why the coordinator does not take the decision.
        """
        super().__init__(transaction.coordinator, timeout=timeout)
        self._transaction = transaction
        self._commits = commits
        self._on_done = on_done
        self._on_failed = on_failed
        self.is_sent = False
        """It was in a request: the coordinator may have decided."""
        self.tries = 0
        """In how many requests it was. An unanswered one may arrive late."""

    def describe(self, item: str) -> str:
        """Return what is decided."""
        return "the commit" if self._commits else "the abort"

    def subject(self, item: str) -> About:
        """Keep troubles under `About.PRODUCER_ID`."""
        return About.PRODUCER_ID

    def max_version(self, items: Sequence[str]) -> int:
        """Return the last version that this transaction may use."""
        return LAST_END_VERSION[self._transaction.version]

    def build(self, items: Sequence[str], version: int) -> EndTxnRequest:
        """Return the request."""
        self.is_sent = True
        self.tries += 1
        identity = self._transaction.identity
        return EndTxnRequest(
            transactional_id=self._transaction.transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            committed=self._commits,
        )

    def read(
        self, answer: EndTxnResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[ProducerIdentity | None]]]:
        """Return the identity of the next transaction, if the coordinator gives it one."""
        code = answer.error_code
        if not code:
            has_identity = answer.producer_id >= 0 and answer.producer_epoch >= 0
            identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)
            yield ONLY, Done(identity if has_identity else None)
            return
        yield ONLY, transaction_meaning(self._transaction, code, self.api, "", source.now)

    def handle_done(self, item: str, value: ProducerIdentity | None, now: float) -> None:
        """Tell that the decision was taken."""
        self._on_done(value, now)

    def handle_failed(self, item: str, error: KafkaError, now: float) -> None:
        """Tell why it was not."""
        self._on_failed(error, now)
