"""Why is this partition not being read? What the control plane knows, for errors, log and dump.

    state of the partition ─┐
    its open request ───────┤
    the group's coordinator ┼─► Diagnosis ─► position() and read_range(): timeouts
    cluster, links ─────────┤                the log: what a poll waits for
    troubles ───────────────┘                debug_dump()

What the user's thread knows of it (paused, an error that nobody has seen yet, read to the end) is
`BufferedPartition`'s, which puts both into one line of the dump.

Thread: any. State is read without a lock: the text is a diagnosis for people, and may be out of
date by an event.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.consumer.partition import (
    AWAITING_COMMITTED,
    AWAITING_WAY,
    AssignedPartition,
    AssignedPartitions,
    FetchState,
)
from kafka_fast.control.consumer.positions import Positions
from kafka_fast.control.context import Context
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.control.diagnosis.waiting_reasons import (
    why_leader_throttles,
    why_waiting_for_leader,
    why_waiting_for_node,
)
from kafka_fast.control.group.group import Group
from kafka_fast.logs import in_seconds
from kafka_fast.types import TopicPartition

RECENT = 10.0
"""Seconds for which an error in a Fetch answer explains why nothing comes.

The control plane does not hear of later answers without an error.
"""

ANSWER_GRACE = 1.0
"""How many seconds after fetch.max.wait.ms the answer to a Fetch may come."""


class FetchStatus(NamedTuple):
    """What the control plane says of one partition."""

    where: str
    """Its state, since when, and where it is fetched."""
    is_fetched: bool = False
    """Whether it is FETCHING."""
    obstacle: Reason | None = None
    """What is in the way; None: nothing that is known."""

    @property
    def is_undisturbed(self) -> bool:
        """Whether it is fetched, and nothing known is in the way."""
        return self.is_fetched and self.obstacle is None

    def __str__(self) -> str:
        return self.where if self.obstacle is None else f"{self.where}; {self.obstacle.text}"


class Diagnosis:
    """Says why one consumer's partitions are not read. Any thread."""

    def __init__(
        self,
        context: Context[ConsumerSettings],
        partitions: AssignedPartitions,
        positions: Positions,
        group: Group | None,
    ) -> None:
        """Take everything that knows a reason.

        Args:
            context: the client's.
            partitions: the assigned ones.
            positions: know which requests for positions are open.
            group: knows its coordinator; None: there is no group.
        """
        settings = context.settings
        self._cluster = context.cluster
        self._connections = context.connections
        self._troubles = context.troubles
        self._partitions = partitions
        self._positions = positions
        self._group = group
        # Seconds within which the next Fetch answer comes: an older error is not the reason.
        self._answer_time = settings.fetch_max_wait + ANSWER_GRACE
        self._next_answer = settings.retry_backoff_max + settings.fetch_max_wait + ANSWER_GRACE

    def why_waiting(self, partition: TopicPartition, now: float) -> Reason:
        """Return why no records of a partition come, after a wait for them timed out."""
        assigned = self._partitions.get(partition)
        if assigned is None:  # the control thread has not heard of it yet
            return Reason(f"it {FetchState.ASSIGNED.value}")
        return self._obstacle(assigned, now, RECENT) or self._silent_node(assigned, now)

    def is_fetched(self, partition: TopicPartition, now: float) -> bool:
        """Tell whether a partition is fetched and nothing known is in the way."""
        assigned = self._partitions.get(partition)
        return assigned is not None and self._obstacle(assigned, now, self._next_answer) is None

    def is_well(self, partition: TopicPartition, now: float) -> bool:
        """Tell whether what was wrong with a partition is over, as far as that can be seen.

        A Fetch that fails stops the partition. So one that has been fetched for longer than an
        answer takes has had a good answer. If its broker hangs instead, the error comes again with
        the next answer.
        """
        assigned = self._partitions.get(partition)
        if assigned is None or assigned.state is not FetchState.FETCHING:
            return False
        if now - assigned.since < self._answer_time or self._cluster.error(partition.topic):
            return False
        node = assigned.node  # one that has this client wait for a quota answers later
        since = now - self._answer_time
        return node is None or why_leader_throttles(self._connections, node, since, now) is None

    def status(self, partition: TopicPartition, now: float) -> FetchStatus:
        """Return a partition's state, for people."""
        assigned = self._partitions.get(partition)
        if assigned is None:  # the control thread has not heard of it yet
            return FetchStatus(FetchState.ASSIGNED.name)
        at = assigned.position
        where = "no position" if at is None else f"position {at.offset}"
        if at is not None and assigned.is_running:
            where = f"from offset {at.offset} over link {assigned.link_id} to {assigned.node}"
        since = in_seconds(max(0.0, now - assigned.since))
        state = assigned.state
        return FetchStatus(
            f"{state.name} for {since}, {where}",
            state is FetchState.FETCHING,
            self._obstacle(assigned, now, RECENT),
        )

    def _obstacle(self, assigned: AssignedPartition, now: float, recent: float) -> Reason | None:
        """Return what is in the way, as far as is known; None: the partition is fetched.

        Args:
            assigned: the partition.
            now: the time.
            recent: seconds for which an error in a Fetch answer counts as in the way.
        """
        state = assigned.state
        if state in AWAITING_COMMITTED:
            why = None if self._group is None else self._group.why_waiting_for_coordinator()
            return _waits(state, why)
        if state in (FetchState.AWAITS_OFFSET, FetchState.AWAITS_VALIDATION):
            return _waits(state, self._positions.why_waiting(assigned.partition))
        if state is FetchState.FETCHING or state in AWAITING_WAY:
            trouble = self._troubles.now(assigned.partition, now - recent)
            if trouble is not None:
                return Reason(str(trouble), trouble.error)
            return None if state is FetchState.FETCHING else self._missing_way(assigned)
        if assigned.error is not None:
            return Reason(f"{assigned.error}; it {state.value}", assigned.error)
        return _waits(state, None)

    def _missing_way(self, assigned: AssignedPartition) -> Reason:
        """Return why there is no connection to fetch a partition over."""
        node = assigned.node
        if node is not None and node != self._cluster.leader(*assigned.partition):
            return why_waiting_for_node(
                self._connections, node, "the replica that its leader prefers"
            )
        return why_waiting_for_leader(self._cluster, self._connections, assigned.partition)

    def _silent_node(self, assigned: AssignedPartition, now: float) -> Reason:
        """Return why no records of a partition come although it is fetched."""
        node = assigned.node
        quota = None if node is None else why_leader_throttles(self._connections, node, now, now)
        return quota or self._missing_way(assigned)


def _waits(state: FetchState, why: Reason | None) -> Reason:
    """Return what a partition waits for, and why that has not come."""
    if why is None:
        return Reason(f"it {state.value}")
    return Reason(f"it {state.value}, but {why.text}", why.cause)
