"""What a group has committed: an offset for each partition, until its topic is deleted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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


class GroupOffsets:
    """The committed offsets of one group."""

    def __init__(self) -> None:
        self._offsets: dict[str, dict[int, CommittedOffset]] = {}
        self._unstable: set[tuple[str, int]] = set()

    def commit(self, topic: str, partition: int, committed: CommittedOffset) -> None:
        """Store a position."""
        self._offsets.setdefault(topic, {})[partition] = committed

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
        self._offsets.pop(topic, None)

    def forget_partition(self, topic: str, partition: int) -> None:
        """Drop the position of a partition, if there is one."""
        self._offsets.get(topic, {}).pop(partition, None)

    # ---- transactional commits, which only tests make ----

    def set_unstable(self, topic: str, partition: int, unstable: bool) -> None:
        """Say whether an open transaction has committed an offset of the partition."""
        if unstable:
            self._unstable.add((topic, partition))
        else:
            self._unstable.discard((topic, partition))

    def is_unstable(self, topic: str, partition: int) -> bool:
        """Tell whether an open transaction may still change the position."""
        return (topic, partition) in self._unstable
