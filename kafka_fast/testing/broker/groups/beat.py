"""A heartbeat of a KIP-848 group as it is told, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from kafka_fast.testing.broker.groups.reconciliation import ConsumerMember, Epochs, Owned

T = TypeVar("T")

JOINING, LEFT, LEFT_FOR_A_WHILE = 0, -1, -2  # member epochs with a meaning


@dataclass(frozen=True, slots=True)
class Beat:
    """What a member tells; None: as before."""

    member_id: str
    epoch: int
    instance_id: str | None
    rack_id: str | None
    client_id: str
    rebalance_timeout_ms: int | None
    topic_names: frozenset[str] | None
    topic_regex: str | None
    assignor: str | None
    owned: Owned

    @property
    def is_full(self) -> bool:
        """Tell whether the member says everything, as after a lost answer."""
        subscribes = self.topic_names is not None or self.topic_regex is not None
        return self.rebalance_timeout_ms is not None and subscribes and self.owned is not None


@dataclass(frozen=True, slots=True)
class BeatAnswer:
    """What a member is told."""

    member_id: str
    epoch: int
    assigned: Epochs | None
    """None: as before."""


def updated(member: ConsumerMember, beat: Beat) -> ConsumerMember:
    """Return the member with what the heartbeat changes."""

    def told(new: T | None, old: T) -> T:
        return old if new is None else new

    return replace(
        member,
        instance_id=told(beat.instance_id, member.instance_id),
        rack_id=told(beat.rack_id, member.rack_id),
        client_id=beat.client_id,
        rebalance_timeout_ms=told(beat.rebalance_timeout_ms, member.rebalance_timeout_ms),
        assignor=told(beat.assignor, member.assignor),
        topic_names=told(beat.topic_names, member.topic_names),
        topic_regex=told(beat.topic_regex, member.topic_regex),
    )
