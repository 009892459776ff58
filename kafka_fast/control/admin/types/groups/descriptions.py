"""Groups with their members, as their coordinators describe them."""

from __future__ import annotations

from kafka_fast.control.admin.types.acls import AclOperation
from kafka_fast.control.admin.types.groups.listings import GroupState, GroupType
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value


class MemberDescription(Value):
    """A member of a classic, consumer or share group."""

    member_id: str
    client_id: str
    host: str
    """The address that its requests come from, as the broker writes it: "/10.0.0.7"."""
    assignment: frozenset[TopicPartition] | None
    """What it reads; None: it is no consumer, or its bytes are those of no consumer."""
    instance_id: str | None = None
    """group.instance.id; None: it is no static member."""
    rack_id: str | None = None
    """client.rack; None: it has none, or the group is classic and does not say."""
    subscribed_topics: frozenset[str] = frozenset()
    """The topics that it subscribes to by name. Of a classic group these are known while it is
    stable.
    """
    subscribed_regex: str | None = None
    """The regular expression that it subscribes to (KIP-848); None: none."""
    target_assignment: frozenset[TopicPartition] | None = None
    """What it is to read, which others may have to give up first; None: the same, or not told."""
    member_epoch: int | None = None
    """The epoch of the assignment that it has; None: of a classic group."""
    upgraded: bool | None = None
    """Whether it speaks the group's protocol. Members of a consumer group that is being upgraded
    may speak the classic one. None: the brokers are older than 4.0, or it is of another group.
    """
    protocol_metadata: bytes = b""
    """What it tells the leader of a classic group. Its own kind of client can read it."""
    protocol_assignment: bytes = b""
    """What the leader of a classic group tells it. Its own kind of client can read it."""


class ClassicGroupDescription(Value):
    """A classic group: of consumers, of workers of Connect, or of others."""

    group_id: str
    state: GroupState
    protocol_type: str
    """What its members are: "consumer", "connect"; "" if nobody has ever joined it."""
    protocol: str
    """What the members have agreed on: the name of a consumer group's assignor; "" if nothing."""
    members: tuple[MemberDescription, ...]
    coordinator: int
    """Id of the broker that coordinates it."""
    authorized_operations: frozenset[AclOperation] | None = None
    """What this client may do with the group; None: not asked for."""

    @property
    def is_simple(self) -> bool:
        """Whether nobody has ever joined the group: it only has offsets."""
        return self.protocol_type == ""


class ConsumerGroupDescription(Value):
    """A group of consumers, of either protocol."""

    group_id: str
    type: GroupType
    """CLASSIC or CONSUMER."""
    state: GroupState
    assignor: str
    """The name of the assignor; "" if members have not agreed on any."""
    members: tuple[MemberDescription, ...]
    coordinator: int
    """Id of the broker that coordinates it."""
    group_epoch: int | None = None
    """Counts what its members subscribe to; None: the group is classic."""
    assignment_epoch: int | None = None
    """The epoch for which the members were assigned partitions; None as above."""
    is_simple: bool = False
    """Nobody has ever joined the group: it only has offsets."""
    authorized_operations: frozenset[AclOperation] | None = None
    """What this client may do with the group; None: not asked for."""


class ShareGroupDescription(Value):
    """A group of consumers that share partitions."""

    group_id: str
    state: GroupState
    assignor: str
    """The name of the assignor."""
    members: tuple[MemberDescription, ...]
    coordinator: int
    """Id of the broker that coordinates it."""
    group_epoch: int
    """Counts what its members subscribe to."""
    assignment_epoch: int
    """The epoch for which the members were assigned partitions."""
    authorized_operations: frozenset[AclOperation] | None = None
    """What this client may do with the group; None: not asked for."""
