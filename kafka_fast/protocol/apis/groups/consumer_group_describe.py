"""ConsumerGroupDescribe (69): state, members and assignments of groups of KIP-848.

Version 1 adds the kind of each member (KIP-1099).
"""

from __future__ import annotations

from kafka_fast.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int8,
    int16,
    int32,
    string,
    struct,
    uuid,
)


class ConsumerGroupDescribeRequest(Request, api_key=69, versions="0-1", flexible="0+"):
    """Ids of groups that the asked broker coordinates."""

    group_ids: list[str] = array(string, "0+")
    include_authorized_operations: bool = bool_("0+")


class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: bytes = uuid("0+")
    topic_name: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class Assignment(Struct):
    """What a member has, or shall have."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions, "0+")


class Member(Struct):
    """An entry of `DescribedGroup.members`."""

    member_id: str = string("0+")
    instance_id: str | None = string("0+", nullable="0+", default=None)
    rack_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array(string, "0+")
    subscribed_topic_regex: str | None = string("0+", nullable="0+", default=None)
    assignment: Assignment = struct(Assignment, "0+")
    target_assignment: Assignment = struct(Assignment, "0+")
    member_type: int = int8("1+", default=-1, ignorable=True)


class DescribedGroup(Struct):
    """An entry of `ConsumerGroupDescribeResponse.groups`."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    group_id: str = string("0+")
    group_state: str = string("0+")
    group_epoch: int = int32("0+")
    assignment_epoch: int = int32("0+")
    assignor_name: str = string("0+")
    members: list[Member] = array(Member, "0+")
    authorized_operations: int = int32("0+", default=-2147483648)


class ConsumerGroupDescribeResponse(Response, api_key=69, versions="0-1", flexible="0+"):
    """The groups as their coordinator has them."""

    throttle_time_ms: int = int32("0+")
    groups: list[DescribedGroup] = array(DescribedGroup, "0+")
