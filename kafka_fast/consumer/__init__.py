"""The consumer: the blocking public client for reading records, alone or in a group."""

from __future__ import annotations

from kafka_fast.consumer.client import Consumer
from kafka_fast.consumer.group.rebalances import RebalanceEvent
from kafka_fast.consumer.listener import RebalanceListener
from kafka_fast.consumer.ranges.record_range import RecordRange, read_range
from kafka_fast.control.group.assignors import (
    Assignor,
    GroupMember,
    GroupTopics,
    PartitionReplicas,
)
from kafka_fast.records._consumer_record import ConsumerRecord
from kafka_fast.records._consumer_records import ConsumerRecords

__all__ = [
    "Assignor",
    "Consumer",
    "ConsumerRecord",
    "ConsumerRecords",
    "GroupMember",
    "GroupTopics",
    "PartitionReplicas",
    "RebalanceEvent",
    "RebalanceListener",
    "RecordRange",
    "read_range",
]
