"""Translates between a producer's planes; `net.carrier` does so for the planes of any client.

`_produce_carrier` is made by a build, see `control.command_fields`.
"""

from __future__ import annotations

from typing import Any

from kafka_fast.control.producer.messages import (
    BatchRow,
    ProduceCommand,
    ProducePunt,
    ProducerEvent,
    QueueChange,
    QueueReport,
    QueueRow,
    RefuseRecords,
    RouteWanted,
    SetAvailable,
    SetPartitionCount,
    SetPartitions,
)
from kafka_fast.dataplane.produce import _queues
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.net import carrier
from kafka_fast.producer._produce_carrier import carry_produce
from kafka_fast.protocol.apis.records.produce import ProduceRequest
from kafka_fast.values import assert_never


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


def carry_out(queues: Queues, command: ProduceCommand, seed: int) -> None:
    """Carry out a command of the data plane's produce side.

    Args:
        queues: the produce side.
        command: the control plane's command.
        seed: random bits, used if the topic is new.
    """
    carry_produce(command, queues, seed)


def change(queues: Queues, change: QueueChange, seed: int) -> None:
    """Make a change of the queues; `seed` as in `carry_out`."""
    match change:
        case SetPartitions(topic, first, queue_ids):
            queues.topic(topic, seed)
            queues.set_partitions(topic, first, queue_ids)
        case SetPartitionCount(topic, count):
            queues.topic(topic, seed)
            queues.set_partition_count(topic, count)
        case SetAvailable(queue_id, available):
            queues.set_available(queue_id, available)
        case RefuseRecords(error):
            queues.refuse(error)
        case _:
            assert_never(change)
