"""What a group has committed: an offset for each partition, until its topic is deleted.

Offsets that a transaction commits are kept by producer id, and take effect when it commits. Of two
commits of a partition the one that was asked for last counts, whenever its transaction ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

NO_ID = bytes(16)


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The position that a group stored for one partition."""

    offset: int
    leader_epoch: int
    """Of the record before it, -1: not told."""
    metadata: str
    topic_id: bytes
    """Zeros: committed by name."""


class _Pending(NamedTuple):
    """A position that a transaction has committed."""

    committed: CommittedOffset
    place: int
    """In the order of all commits."""


class GroupOffsets:
    """The committed offsets of one group."""

    def __init__(self) -> None:
        self._offsets: dict[str, dict[int, CommittedOffset]] = {}
        self._places: dict[tuple[str, int], int] = {}  # of each in the order of all commits
        self._commits = 0
        self._pending: dict[int, dict[tuple[str, int], _Pending]] = {}  # by producer id
        self._unstable: set[tuple[str, int]] = set()  # as tests say

    def commit(self, topic: str, partition: int, committed: CommittedOffset) -> None:
        """Store a position."""
        self._commits += 1
        self._store(topic, partition, committed, self._commits)

    def _store(self, topic: str, partition: int, committed: CommittedOffset, place: int) -> None:
        self._offsets.setdefault(topic, {})[partition] = committed
        self._places[topic, partition] = place

    def get(self, topic: str, partition: int, topic_id: bytes = NO_ID) -> CommittedOffset | None:
        """Return the position of a partition; one of a topic with another id is none."""
        committed = self._offsets.get(topic, {}).get(partition)
        if committed is None or (
            NO_ID not in (topic_id, committed.topic_id) and topic_id != committed.topic_id
        ):
            return None
        return committed

    def __iter__(self) -> Iterator[tuple[str, dict[int, CommittedOffset]]]:
        """Iterate over topics and their positions."""
        return iter(self._offsets.items())

    def forget_topic(self, topic: str) -> None:
        """Drop the positions of a topic that was deleted."""
        for partition in self._offsets.pop(topic, ()):
            del self._places[topic, partition]
        for pending in self._pending.values():
            for one in [one for one in pending if one[0] == topic]:
                del pending[one]

    def forget_partition(self, topic: str, partition: int) -> None:
        """Drop the position of a partition, if there is one."""
        if self._offsets.get(topic, {}).pop(partition, None) is not None:
            del self._places[topic, partition]

    # ---- transactions ----

    def commit_later(
        self, producer_id: int, topic: str, partition: int, committed: CommittedOffset
    ) -> None:
        """Keep a position that counts when the producer's transaction commits."""
        self._commits += 1
        pending = self._pending.setdefault(producer_id, {})
        pending[topic, partition] = _Pending(committed, self._commits)

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        """Let the positions of a producer's transaction count, or forget them."""
        pending = self._pending.pop(producer_id, {})
        if not commit:
            return
        for (topic, partition), (committed, place) in pending.items():
            if self._places.get((topic, partition), 0) < place:
                self._store(topic, partition, committed, place)

    def set_unstable(self, topic: str, partition: int, unstable: bool) -> None:
        """Let it look as if an open transaction had committed an offset of the partition."""
        if unstable:
            self._unstable.add((topic, partition))
        else:
            self._unstable.discard((topic, partition))

    def is_unstable(self, topic: str, partition: int) -> bool:
        """Tell whether an open transaction may still change the position."""
        place = (topic, partition)
        return place in self._unstable or any(place in one for one in self._pending.values())
