"""Produce: one batch for each partition, appended or refused partition by partition.

A partition that a request names twice counts once: as in Kafka the last one named is appended and
answered, and the others are not heard of again.

    request ─► partitions that can be ─► the coordinator, for those in which ─► the log
                                         a transaction begins
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_fast.errors import (
    BrokerError,
    ConcurrentTransactions,
    CoordinatorNotAvailable,
    CorruptMessage,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidRequiredAcks,
    InvalidTopicException,
    InvalidTxnState,
    MessageTooLarge,
    NotCoordinator,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    ProducerFenced,
    TransactionAbortable,
    TransactionalIdAuthorizationFailed,
    UnknownTopicOrPartition,
    error_name,
)
from kafka_fast.protocol.apis.records.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafka_fast.record import RecordBatch
from kafka_fast.record.types import NO_PRODUCER_ID
from kafka_fast.testing.broker.acls import Operation, ResourceType
from kafka_fast.testing.broker.partitions.append import (
    RefusedRecordsError,
    append_batch,
    the_one_batch,
)
from kafka_fast.testing.broker.partitions.cluster_topics import Partition, Topic
from kafka_fast.testing.broker.partitions.leaders import LeaderHints, led_partition
from kafka_fast.testing.broker.received_request import (
    CloseConnectionError,
    ReceivedRequest,
    Waiting,
)
from kafka_fast.testing.broker.registry import answers
from kafka_fast.testing.broker.transactions.transaction import TopicPartition
from kafka_fast.testing.broker.transactions.verification import verify_partitions

_ACKS = (-1, 0, 1)
_IDS_FROM_VERSION = 13
_HINTS_FROM_VERSION = 10  # KIP-951
_ABORTABLE_FROM_VERSION = 11  # older clients do not know TRANSACTION_ABORTABLE
_ADDS_FROM_VERSION = 12  # since then it is of version 2 of transactions (KIP-890)
_WAIT_FOR_MARKERS = 0.1  # seconds: Kafka's add.partitions.to.txn.retry.backoff.max.ms


@dataclass(slots=True)
class _Part:
    """One partition of a request on its way to the log."""

    answer: PartitionProduceResponse
    topic: Topic
    batch: RecordBatch
    may_begin: bool = False
    """A transaction: the coordinator knows that it begins here."""
    refusal: tuple[int, str] | None = None
    """Of the coordinator: error code and message."""

    @property
    def place(self) -> TopicPartition:
        """Return the partition."""
        return self.topic.name, self.answer.index


@answers(ProduceRequest)
def answer(request: ReceivedRequest) -> ProduceResponse | Waiting | None:
    """Append what can be appended and say so, or nothing with acks=0.

    In version 2 of transactions a batch waits a moment for the end of the transaction before it
    (KAFKA-18654).

    Raises:
        CloseConnectionError: a batch failed with acks=0, which leaves no other way to tell.
    """
    response, parts = _read(request)
    if not _verify(request, parts, request.now):
        return Waiting(
            request.now + _WAIT_FOR_MARKERS,
            lambda now, last_chance: _answer_later(request, response, parts, now, last_chance),
        )
    return _append_all(request, response, parts)


def _answer_later(
    request: ReceivedRequest,
    response: ProduceResponse,
    parts: list[_Part],
    now: float,
    last_chance: bool,
) -> ProduceResponse | None:
    if not _verify(request, parts, now) and not last_chance:
        return None
    return _append_all(request, response, parts)


def _read(request: ReceivedRequest) -> tuple[ProduceResponse, list[_Part]]:
    """Return the answer, as far as partitions are refused for what the request says, and the rest.

    A transaction needs the right to its id, and is of one producer: otherwise nothing is appended.
    """
    body: ProduceRequest = request.body
    parts: list[_Part] = []
    response = ProduceResponse(
        responses=[_read_topic(request, data, parts) for data in _last_named(body.topic_data)]
    )
    transactional = [part.batch for part in parts if part.batch.is_transactional]
    code = 0
    if transactional and not _has_right(request):
        code = TransactionalIdAuthorizationFailed.code
    elif len({(one.producer_id, one.producer_epoch) for one in transactional}) > 1:
        code = InvalidProducerIdMapping.code
    if code:
        for topic in response.responses:
            for one in topic.partition_responses:
                one.error_code = code
        return response, []
    return response, parts


def _has_right(request: ReceivedRequest) -> bool:
    transactional_id = request.body.transactional_id
    return transactional_id is not None and request.allows(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    )


def _read_topic(
    request: ReceivedRequest, data: TopicProduceData, parts: list[_Part]
) -> TopicProduceResponse:
    answers = []
    for one in data.partition_data:
        made = PartitionProduceResponse(index=one.index, base_offset=-1)
        answers.append(made)
        try:
            topic = _find(request, data, one.index)
            if topic.is_internal:
                raise InvalidTopicException(f"{topic.name} is the brokers' own")
            batch = the_one_batch(one.records, request.version)
            if request.body.acks not in _ACKS:
                raise InvalidRequiredAcks(f"acks={request.body.acks}")
            parts.append(_Part(made, topic, batch))
        except BrokerError as error:
            made.error_code = error.code
            made.error_message = error.args[0]
    return TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=answers)


# ---- transactions ----


def _verify(request: ReceivedRequest, parts: list[_Part], now: float) -> bool:
    """Ask the coordinator about the transactions that begin here; False: ask again later."""
    adds = request.version >= _ADDS_FROM_VERSION
    beginning = [part for part in parts if _begins(request, part)]
    if not beginning or not (adds or request.state.settings.transactions.verification):
        return True
    batch = beginning[0].batch
    for part in beginning:
        producers = part.topic.partitions[part.answer.index].producers
        producers.begin(
            batch.producer_id,
            batch.producer_epoch,
            part.batch.base_sequence,
            starts_at_zero=adds,
        )
    verdicts = verify_partitions(
        request.state,
        request.body.transactional_id,
        batch.producer_id,
        batch.producer_epoch,
        [part.place for part in beginning],
        now,
        add=adds,
    )
    for part in beginning:
        error = verdicts[part.place]
        part.may_begin = error is None
        part.refusal = None if error is None else _as_producers_know(error, request.version)
    return not (
        adds
        and request.body.acks != 0
        and any(isinstance(error, ConcurrentTransactions) for error in verdicts.values())
    )


def _begins(request: ReceivedRequest, part: _Part) -> bool:
    """Tell whether the batch would begin a transaction in a partition that is led here."""
    partition = part.topic.partitions[part.answer.index]
    producer_id = part.batch.producer_id
    epoch = partition.producers.epoch(producer_id)
    is_open = partition.log.transactions.is_open(producer_id)
    return (
        part.batch.is_transactional
        and producer_id > NO_PRODUCER_ID
        and partition.leader == request.node_id
        and part.batch.producer_epoch >= epoch  # otherwise it is refused for that
        and not (is_open and part.batch.producer_epoch == epoch)
    )


def _as_producers_know(error: BrokerError, version: int) -> tuple[int, str]:
    """Return the error of a coordinator as a producer is told it: code and message."""
    code, message = error.code, str(error.args[0])
    if isinstance(error, ProducerFenced):
        code = InvalidProducerEpoch.code
    elif isinstance(error, TransactionAbortable) and version < _ABORTABLE_FROM_VERSION:
        code = InvalidTxnState.code
    elif isinstance(error, CoordinatorNotAvailable | NotCoordinator) or (
        isinstance(error, ConcurrentTransactions) and version < _ADDS_FROM_VERSION
    ):
        code = NotEnoughReplicas.code
        message = (
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {error_name(error.code)}"
        )
    return code, message


# ---- into the log ----


def _append_all(
    request: ReceivedRequest, response: ProduceResponse, parts: list[_Part]
) -> ProduceResponse | None:
    hints = LeaderHints(request.state)
    for part in parts:
        _append_part(request, part, hints)
    response.node_endpoints = hints.produce_endpoints()
    if request.body.acks != 0:
        return response
    failed = [p for t in response.responses for p in t.partition_responses if p.error_code]
    if failed:
        name = error_name(failed[0].error_code)
        raise CloseConnectionError(f"a Produce request with acks=0 met {name}")
    return None


def _append_part(request: ReceivedRequest, part: _Part, hints: LeaderHints) -> None:
    """Append the partition's batch and fill in the answer."""
    made, topic = part.answer, part.topic
    partition = topic.partitions[made.index]
    try:
        try:
            led_partition(request, topic, made.index)
            if part.refusal is not None:
                made.error_code, made.error_message = part.refusal
                return
            _append(request, part, partition)
        except NotLeaderOrFollower:
            if request.version >= _HINTS_FROM_VERSION:
                made.current_leader = hints.for_produce(partition)
            raise
        except (CorruptMessage, MessageTooLarge):
            raise
        except BrokerError:  # refused by the log itself, which says where it starts
            made.log_start_offset = partition.log.start_offset
            raise
    except BrokerError as error:
        made.error_code = error.code
        made.error_message = error.args[0]
        if isinstance(error, RefusedRecordsError):
            made.record_errors = [
                BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
                for index, message in error.records.items()
            ]


def _last_named(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """Return the topics, each once; of a partition that is named twice the last data count."""
    merged: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        partitions = merged.setdefault((topic.name, topic.topic_id), {})
        partitions.update((one.index, one) for one in topic.partition_data)
    return [
        TopicProduceData(name=name, topic_id=topic_id, partition_data=list(partitions.values()))
        for (name, topic_id), partitions in merged.items()
    ]


def _find(request: ReceivedRequest, data: TopicProduceData, index: int) -> Topic:
    if request.version >= _IDS_FROM_VERSION:
        topic = request.state.topic_by_id(data.topic_id)
        request.check_topic(Operation.WRITE, topic.name)
        return _with_partition(topic, index)
    request.check_topic(Operation.WRITE, data.name)
    if data.name in request.state.topics:
        return _with_partition(request.state.topics[data.name], index)
    raise UnknownTopicOrPartition(f"no topic {data.name!r}")


def _with_partition(topic: Topic, index: int) -> Topic:
    if not 0 <= index < len(topic.partitions):
        raise UnknownTopicOrPartition(f"topic {topic.name!r} has no partition {index}")
    return topic


def _append(request: ReceivedRequest, part: _Part, partition: Partition) -> None:
    made = part.answer
    planned = request.planned_error(partition.topic, partition.index)
    if planned is None or planned.applied:
        unix_ms = request.state.unix_ms(request.now)
        appended = append_batch(
            partition,
            part.topic.config,
            part.batch,
            request.body.acks,
            unix_ms,
            may_begin=part.may_begin or not request.state.settings.transactions.verification,
        )
        request.state.changes += 1
        made.base_offset = appended.base_offset
        made.log_append_time_ms = appended.log_append_time
        made.log_start_offset = partition.log.start_offset
    if planned is not None:
        made.error_code = planned.code
        made.base_offset = -1
