"""Partitions that start at their group's committed offsets: asked for together, told to positions.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.control.consumer.assigned import Phase, Position
from kafka_fast.control.consumer.positions import Positions
from kafka_fast.control.group.committed import CommittedOffsets, Fetched
from kafka_fast.errors import KafkaError
from kafka_fast.types import TopicPartition


class CommittedStarts:
    """What one consumer's partitions ask of their group. Control thread only."""

    def __init__(
        self, committed: CommittedOffsets, positions: Positions, now: Callable[[], float]
    ) -> None:
        """Begin with nothing asked.

        Args:
            committed: knows the group's offsets.
            positions: know which partitions wait for them.
            now: returns the time of the event that is being handled.
        """
        self._committed = committed
        self._positions = positions
        self._now = now
        self._asked: set[TopicPartition] = set()

    def tick(self, now: float) -> None:
        """Ask for the partitions that wait and were not asked for yet."""
        waiting = [it for it in self._positions.without_committed() if it not in self._asked]
        if waiting:
            self._asked.update(waiting)
            self._committed.fetch(waiting, lambda found: self._handle(waiting, found))

    def handle_recreated(self, topic: str, now: float) -> None:
        """The topic was deleted and made anew, perhaps after it had been asked for.

        A coordinator that is asked by name may still answer for the former one; to begin the new
        one where that was read to would skip what is in it.
        """
        for assigned in self._positions.of_topic(topic):
            if assigned.phase is not Phase.COMMITTED:
                continue
            if self._committed.tells_topics_apart:
                assigned.is_anew = True
            else:
                self._positions.begin_again(assigned, now)

    def _handle(self, waiting: list[TopicPartition], found: Fetched | KafkaError) -> None:
        self._asked.difference_update(waiting)
        for partition in waiting:
            assigned = self._positions.partitions.get(partition)
            if assigned is None or assigned.phase is not Phase.COMMITTED:
                continue
            if isinstance(found, KafkaError):
                self._positions.fail(assigned, found)
                continue
            offset = found[partition]
            position = None if offset is None else Position(offset.offset, offset.leader_epoch)
            self._positions.set_committed(partition, position, self._now())
