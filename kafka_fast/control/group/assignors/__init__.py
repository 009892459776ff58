"""Who reads what: the assignors of the classic protocol. Pure functions of members and topics."""

from __future__ import annotations

from kafka_fast.control.group.assignors.interface import (
    Assignor,
    GroupMember,
    GroupTopics,
    PartitionReplicas,
)

__all__ = ["Assignor", "GroupMember", "GroupTopics", "PartitionReplicas"]
