"""Partitions that start at their group's committed offsets: asked for together, told to positions.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from kafka_fast.control.consumer.partition import (
    AWAITING_COMMITTED,
    AssignedPartition,
    AssignedPartitions,
    Position,
)
from kafka_fast.control.consumer.positions import Positions
from kafka_fast.control.group.committed import (
    PARTITIONS_PER_REQUEST,
    CommittedOffsets,
    Fetched,
)
from kafka_fast.control.item_splitting import split_items
from kafka_fast.errors import KafkaError


class _OffsetFetch(NamedTuple):
    """One request for committed offsets, and its partitions."""

    asked: Sequence[AssignedPartition]
    cancel: Callable[[], None]


class CommittedStarts:
    """Committed offsets as starts of one consumer's partitions. Control thread only."""

    def __init__(
        self,
        committed: CommittedOffsets,
        partitions: AssignedPartitions,
        positions: Positions,
        now: Callable[[], float],
    ) -> None:
        """Request nothing before `fetch_committed`.

        Args:
            committed: fetches the group's offsets.
            partitions: the assigned ones.
            positions: take the offsets.
            now: returns the time of the event that is being handled.
        """
        self._committed = committed
        self._partitions = partitions
        self._positions = positions
        self._now = now
        self._open: list[_OffsetFetch] = []

    def fetch_committed(self, assigned: Sequence[AssignedPartition]) -> None:
        """Fetch the committed offsets of these partitions, which wait for them."""
        for fetch in self._open:
            if not any(map(self._waits, fetch.asked)):
                fetch.cancel()
        self._open = [request for request in self._open if any(map(self._waits, request.asked))]
        for piece in split_items(assigned, PARTITIONS_PER_REQUEST):
            # Each starts with its own answer.
            names = [entry.partition for entry in piece]
            cancel = self._committed.fetch(names, partial(self._handle, piece))
            self._open.append(_OffsetFetch(piece, cancel))

    def handle_recreated(self, topic: str, now: float) -> None:
        """Keep partitions of a recreated topic from starting at offsets of the deleted topic.

        A coordinator that is asked by name may still answer for the deleted topic. From such an
        offset on, records of the new topic would be skipped. So only a coordinator that is known to
        support topic ids is waited for.
        """
        for assigned in self._partitions.of_topic(topic):
            if assigned.state not in AWAITING_COMMITTED:
                continue
            if self._committed.tells_topics_apart:
                self._positions.handle_recreated(assigned, now)
            else:
                self._positions.begin_again(assigned, now)

    def _waits(self, assigned: AssignedPartition) -> bool:
        """Tell whether a partition still waits for its committed offset.

        A partition that was given up meanwhile does not. If it was assigned again, there is
        another request for it, because others may have committed in between.
        """
        is_assigned = self._partitions.get(assigned.partition) is assigned
        return is_assigned and assigned.state in AWAITING_COMMITTED

    def _handle(self, asked: Sequence[AssignedPartition], fetched: Fetched | KafkaError) -> None:
        now = self._now()
        for assigned in filter(self._waits, asked):
            if isinstance(fetched, KafkaError):
                self._positions.fail_partition(assigned, fetched, now)
                continue
            offset = fetched[assigned.partition]
            position = None if offset is None else Position(offset.offset, offset.leader_epoch)
            self._positions.set_committed(assigned, position, now)
