"""The consumer: the blocking public client for reading records, alone or in a group.

Each part is imported when it is used first, as those of `kafka_fast` are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_fast._lazy import lazily

if TYPE_CHECKING:
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
else:
    _WHERE = {
        "Assignor": "control.group.assignors",
        "Consumer": "consumer.client",
        "ConsumerRecord": "records._consumer_record",
        "ConsumerRecords": "records._consumer_records",
        "GroupMember": "control.group.assignors",
        "GroupTopics": "control.group.assignors",
        "PartitionReplicas": "control.group.assignors",
        "RebalanceEvent": "consumer.group.rebalances",
        "RebalanceListener": "consumer.listener",
        "RecordRange": "consumer.ranges.record_range",
        "read_range": "consumer.ranges.record_range",
    }
    __getattr__, __dir__ = lazily(__name__, _WHERE, above="kafka_fast")

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
