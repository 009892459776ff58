"""Translates between a producer's planes; `net.carrier` does so for the planes of any client."""

from __future__ import annotations

from typing import Any

from kafka_fast.control.producer.messages import (
    BatchRow,
    CompleteBatch,
    FailBatch,
    FailQueue,
    ForgiveBatch,
    LimitTopic,
    NameTopic,
    ProducePunt,
    ProducerCommand,
    ProducerEvent,
    ProgramProduce,
    QueueReport,
    QueueRow,
    RefuseRecords,
    RenumberQueue,
    RestartTopic,
    RouteQueue,
    RouteWanted,
    SetAvailable,
    SetPartitionCount,
    SetPartitions,
    SetProducerId,
    SplitBatch,
    ThawQueue,
)
from kafka_fast.control.producer.routes import FIRST_VERSION_WITH_IDS
from kafka_fast.dataplane.produce import _queues
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.errors import Outcome
from kafka_fast.net import carrier
from kafka_fast.protocol.apis.records.produce import ProduceRequest

_OUTCOMES = {
    Outcome.NOT_SENT: _queues.OUTCOME_NOT_SENT,
    Outcome.REJECTED: _queues.OUTCOME_REJECTED,
    Outcome.MAYBE_WRITTEN: _queues.OUTCOME_MAYBE_WRITTEN,
}


def read_event(event: tuple[Any, ...]) -> ProducerEvent:
    """Return the control plane's record for one of the data plane's events."""
    kind, link_id, code, _, _, frame, told = event
    if kind == _queues.EVENT_PUNT:
        return ProducePunt(link_id, code, frame, tuple(BatchRow(*row) for row in told))
    if kind == _queues.EVENT_ROUTE:
        return RouteWanted(tuple(told))
    if kind == _queues.EVENT_REPORT:
        queue, batches = told
        return QueueReport(QueueRow(*queue), tuple(BatchRow(*row) for row in batches))
    return carrier.read_event(event)


def topic_format(version: int) -> int:
    """Return how Produce requests of this version name a topic."""
    if version >= FIRST_VERSION_WITH_IDS:
        return _queues.FORMAT_ID
    if version in ProduceRequest.flexible:
        return _queues.FORMAT_COMPACT_NAME
    return _queues.FORMAT_NAME


def carry_out(queues: Queues, command: ProducerCommand, seed: int) -> bool:
    """Carry out a command of the data plane; return False for any other command.

    Args:
        queues: the produce side.
        command: the control plane's command.
        seed: random bits, used if the topic is new.
    """
    match command:
        case ProgramProduce(link_id, version, prefix):
            queues.program(link_id, version, topic_format(version), prefix)
        case NameTopic() | SetPartitions() | SetPartitionCount() | LimitTopic() | RestartTopic():
            change_topic(queues, command, seed)
        case SetAvailable(queue_id, available):
            queues.set_available(queue_id, available)
        case RouteQueue(queue_id, link_id):
            queues.route(queue_id, link_id)
        case SetProducerId(producer_id, epoch):
            queues.set_producer_id(producer_id, epoch)
        case ThawQueue(queue_id, generation, at, single):
            queues.thaw(queue_id, generation, at, single)
        case RenumberQueue(queue_id, generation, producer_id, epoch, base_sequence, serial, slice_):
            queues.renumber(queue_id, generation, producer_id, epoch, base_sequence, serial, slice_)
        case FailQueue(queue_id, error_code):
            queues.fail_queue(queue_id, error_code)
        case RefuseRecords(error):
            queues.refuse(error)
        case FailBatch() | CompleteBatch() | SplitBatch() | ForgiveBatch():
            judge(queues, command)
        case _:
            return carrier.carry_out(queues.plane, command)
    return True


def change_topic(
    queues: Queues,
    change: NameTopic | SetPartitions | SetPartitionCount | LimitTopic | RestartTopic,
    seed: int,
) -> None:
    """Carry out what is new of a topic; `seed` as in `carry_out`."""
    queues.topic(change.topic, seed)
    match change:
        case NameTopic(topic, version, field):
            queues.name_topic(topic, topic_format(version), field)
        case SetPartitions(topic, first, queue_ids):
            queues.set_partitions(topic, first, queue_ids)
        case SetPartitionCount(topic, count):
            queues.set_partition_count(topic, count)
        case LimitTopic(topic, size, wire_size):
            queues.limit_topic(topic, size, wire_size)
        case RestartTopic(topic):
            queues.restart_topic(topic)


def judge(queues: Queues, verdict: FailBatch | CompleteBatch | SplitBatch | ForgiveBatch) -> None:
    """Pass a verdict on one batch."""
    row = verdict.row
    place = (row.queue_id, row.generation)
    batch = (row.serial, row.slice)
    match verdict:
        case FailBatch(_, error_code, outcome, detail):
            queues.judge(
                *place,
                _queues.VERDICT_FAIL,
                *batch,
                error_code=error_code,
                outcome=_OUTCOMES[outcome],
                detail=detail,
            )
        case ForgiveBatch():
            queues.judge(*place, _queues.VERDICT_FORGIVE, *batch)
        case CompleteBatch(_, base_offset):
            queues.judge(*place, _queues.VERDICT_SUCCEED, *batch, base_offset=base_offset)
        case SplitBatch(_, size, error_code):
            queues.judge(
                *place,
                _queues.VERDICT_SPLIT,
                *batch,
                error_code=error_code,
                size=size,
            )
