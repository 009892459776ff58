"""Groups, as the brokers list them: their types and states."""

from __future__ import annotations

import enum

from kafka_fast.values import Value


class GroupType(enum.Enum):
    """Which protocol the members of a group speak; the values are Kafka's names."""

    UNKNOWN = "Unknown"
    """Of a newer broker, or not told: brokers tell it since Kafka 3.8."""
    CLASSIC = "Classic"
    """JoinGroup and SyncGroup: consumers, workers of Connect, and others."""
    CONSUMER = "Consumer"
    """Consumers with group.protocol=consumer (KIP-848)."""
    SHARE = "Share"
    """Consumers that share partitions (KIP-932)."""
    STREAMS = "Streams"
    """Kafka Streams with group.protocol=streams (KIP-1071)."""

    @classmethod
    def _missing_(cls, value: object) -> GroupType:
        """Return the type of another spelling, or UNKNOWN."""
        return next((one for one in cls if one.value.lower() == str(value).lower()), cls.UNKNOWN)


class GroupState(enum.Enum):
    """What a group is doing; the values are Kafka's names."""

    UNKNOWN = "Unknown"
    """Of a newer broker, or not told: listings have it since Kafka 2.6."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Classic: members are to join again."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """Classic: members wait for their assignment."""
    STABLE = "Stable"
    """Each member has what was assigned to it."""
    DEAD = "Dead"
    """It has no members, and is being deleted."""
    EMPTY = "Empty"
    """It has no members, but offsets."""
    ASSIGNING = "Assigning"
    """A new assignment is due."""
    RECONCILING = "Reconciling"
    """Members give up, or take, what was assigned anew."""
    NOT_READY = "NotReady"
    """Streams: topics are missing that the topology needs."""

    @classmethod
    def _missing_(cls, value: object) -> GroupState:
        """Return the state of another spelling, or UNKNOWN."""
        return next((one for one in cls if one.value.lower() == str(value).lower()), cls.UNKNOWN)


class GroupListing(Value):
    """A group in the list of all groups."""

    group_id: str
    type: GroupType
    """UNKNOWN if the brokers are older than 3.8."""
    state: GroupState
    """UNKNOWN if the brokers are older than 2.6."""
    protocol_type: str
    """What its members are: "consumer", "connect", "share"; "" if it has offsets only, because
    nobody has ever joined it.
    """

    @property
    def is_simple(self) -> bool:
        """Whether nobody has ever joined the group: it only has offsets."""
        return self.protocol_type == "" and self.type in (GroupType.CLASSIC, GroupType.UNKNOWN)
