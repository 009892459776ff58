"""Messages between the members of a classic consumer group: subscription and assignment.

The coordinator passes these messages on as bytes, without reading them. On the wire a version
stands before each message (`encode_versioned`, `decode_versioned`). No version is flexible.
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Message, Struct, array, bytes_, int32, string


class ConsumerProtocolSubscriptionTopicPartition(Struct):
    """An entry of `ConsumerProtocolSubscription.owned_partitions`."""

    topic: str = string("1+")
    partitions: list[int] = array(int32, "1+")


class ConsumerProtocolSubscription(Message, versions="0-3"):
    """A member's topics, and since version 1 the partitions that the member owns."""

    topics: list[str] = array(string, "0+")
    user_data: bytes | None = bytes_("0+", nullable="0+", default=None)
    owned_partitions: list[ConsumerProtocolSubscriptionTopicPartition] = array(
        ConsumerProtocolSubscriptionTopicPartition, "1+", ignorable=True
    )
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)


class ConsumerProtocolAssignmentTopicPartition(Struct):
    """An entry of `ConsumerProtocolAssignment.assigned_partitions`."""

    topic: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class ConsumerProtocolAssignment(Message, versions="0-3"):
    """The partitions that the leader assigns to a member."""

    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = array(
        ConsumerProtocolAssignmentTopicPartition, "0+"
    )
    user_data: bytes | None = bytes_("0+", nullable="0+", default=None)


class StickyTopicAssignment(Struct):
    """An entry of `StickyUserData.previous_assignment`."""

    topic: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class StickyUserData(Message, versions="0-1"):
    """The user data of the sticky assignor, for the group's leader; no version stands in front.

    Java defines it in code (StickyAssignor), not among its message schemas.
    """

    previous_assignment: list[StickyTopicAssignment] = array(StickyTopicAssignment, "0+")
    generation: int = int32("1+", default=-1, ignorable=True)


class CooperativeStickyUserData(Message, versions="0"):
    """The user data of the cooperative sticky assignor; no version stands in front."""

    generation: int = int32("0+")
