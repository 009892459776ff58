"""Translates between a producer's planes; `client_carrier` does so for those of any client.

`_produce_carrier` is made by a build, see `control.message_fields`.
"""

from __future__ import annotations

from kafka_fast.control.messages import DumpEvent
from kafka_fast.control.producer.producer_messages import (
    HoldRecords,
    ProduceCommand,
    ProducerEvent,
    QueueChange,
    RefuseRecords,
    SetAvailable,
    SetPartitionCount,
    SetPartitions,
)
from kafka_fast.dataplane.core._events import PlaneEvent
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.net.core.client_carrier import in_words
from kafka_fast.producer._produce_carrier import carry_produce, read_produce
from kafka_fast.values import assert_never


def read_event(event: PlaneEvent) -> ProducerEvent | DumpEvent:
    """Return the control plane's record for one of the data plane's events."""
    return in_words(read_produce(event))


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
        case HoldRecords(error):
            queues.hold(error)
        case _:
            assert_never(change)
