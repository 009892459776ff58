"""Translates between a producer's planes; `client_carrier` does so for those of any client.

`_produce_carrier` is made by a build, see `control.command_fields`.
"""

from __future__ import annotations

from typing import Any

from kafka_fast.control.messages import DumpEvent
from kafka_fast.control.producer.producer_messages import (
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
from kafka_fast.dataplane.core._events import PlaneEvent
from kafka_fast.dataplane.core.constructors import EventConstructors
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.net.core.client_carrier import NoStreams, TransportConstructors
from kafka_fast.producer._produce_carrier import carry_produce
from kafka_fast.values import assert_never


class ProduceConstructors(TransportConstructors, NoStreams):
    """For a client that produces."""

    def queue_row(
        self, queue_id: int, generation: int, next_sequence: int, may_have_gap: bool
    ) -> QueueRow:
        return QueueRow(queue_id, generation, next_sequence, may_have_gap)

    def batch_row(self, *fields: Any) -> BatchRow:
        return BatchRow(*fields)

    def produce_punt(
        self, link_id: int, version: int, frame: bytes, batches: tuple[BatchRow, ...]
    ) -> ProducePunt:
        return ProducePunt(link_id, version, frame, batches)

    def route_wanted(self, queue_ids: tuple[int, ...]) -> RouteWanted:
        return RouteWanted(queue_ids)

    def queue_report(self, queue: QueueRow, batches: tuple[BatchRow, ...]) -> QueueReport:
        return QueueReport(queue, batches)


_CONSTRUCTORS: EventConstructors[ProducerEvent | DumpEvent] = ProduceConstructors()


def read_event(event: PlaneEvent) -> ProducerEvent | DumpEvent:
    """Return the control plane's record for one of the data plane's events."""
    return event.read(_CONSTRUCTORS)


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
