"""Who leads partitions and who has their replicas, as an admin client changes both."""

from __future__ import annotations

import enum

from kafka_fast.values import Value


class ElectionType(enum.IntEnum):
    """Which replica becomes the leader of a partition."""

    PREFERRED = 0
    """The first one of the partition's list, if it is in sync."""
    UNCLEAN = 1
    """Any one that is alive, if none is in sync: records that it does not have are lost."""


class PartitionReassignment(Value):
    """A partition whose replicas are on their way to other brokers."""

    replicas: tuple[int, ...]
    """Ids of the brokers that have a replica now, with those that are added and removed."""
    adding_replicas: tuple[int, ...]
    """Ids of the brokers that get a replica."""
    removing_replicas: tuple[int, ...]
    """Ids of the brokers that lose theirs at the end."""
