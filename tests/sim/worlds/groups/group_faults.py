"""The faults of a world with a group: what its APIs may answer, coordinators and sessions."""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.errors import (
    BrokerError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    FencedMemberEpoch,
    IllegalGeneration,
    KafkaStorageError,
    NetworkException,
    NotCoordinator,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    RebalanceInProgress,
    RequestTimedOut,
    UnknownLeaderEpoch,
    UnknownMemberId,
    UnknownServerError,
    UnknownTopicOrPartition,
    UnstableOffsetCommit,
)
from kafka_fast.testing.broker.versions import (
    CONSUMER_GROUP_HEARTBEAT,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
)
from tests.sim.worlds.faults import FaultScript

GROUP = "group"

COORDINATOR: tuple[type[BrokerError], ...] = (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
)
FETCH_REFUSED: tuple[type[BrokerError], ...] = (
    FencedLeaderEpoch,
    KafkaStorageError,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    UnknownLeaderEpoch,
    UnknownServerError,
    UnknownTopicOrPartition,
)
MEMBER: tuple[type[BrokerError], ...] = (IllegalGeneration, RebalanceInProgress, UnknownMemberId)
COMMIT: tuple[type[BrokerError], ...] = (
    *COORDINATOR,
    *MEMBER,
    RequestTimedOut,
    UnknownTopicOrPartition,
    NetworkException,
)


class GroupFaults(FaultScript):
    """See `FaultScript`."""

    apis = (
        FETCH,
        JOIN_GROUP,
        SYNC_GROUP,
        HEARTBEAT,
        CONSUMER_GROUP_HEARTBEAT,
        OFFSET_COMMIT,
        OFFSET_FETCH,
        FIND_COORDINATOR,
        LIST_OFFSETS,
        METADATA,
    )

    def _strikes(self) -> list[Callable[[], str]]:
        own = [
            self._fail_fetch,
            self._fail_member,
            self._fail_epoch,
            self._fail_coordinator,
            self._fail_commit,
            self._fail_offsets,
            self._forget_sessions,
            self._move_coordinator,
            self._move_coordinator,
            self._kill_coordinator,
        ]
        return [*super()._strikes(), *own]

    # ---- what brokers answer ----

    def _fail_fetch(self) -> str:
        error = self._source.choice(FETCH_REFUSED)
        self._cluster.faults.error(FETCH, error, **self._partition())
        return f"Fetch refused with {error.__name__}"

    def _fail_member(self) -> str:
        api = self._source.choice((JOIN_GROUP, SYNC_GROUP, HEARTBEAT))
        error = self._source.choice(MEMBER)
        self._cluster.faults.error(api, error, **self._where())
        return f"API {api} refused with {error.__name__}"

    def _fail_epoch(self) -> str:
        error = self._source.choice((FencedMemberEpoch, UnknownMemberId))
        self._cluster.faults.error(CONSUMER_GROUP_HEARTBEAT, error, **self._where())
        return f"ConsumerGroupHeartbeat refused with {error.__name__}"

    def _fail_coordinator(self) -> str:
        api = self._source.choice(
            (
                JOIN_GROUP,
                SYNC_GROUP,
                HEARTBEAT,
                CONSUMER_GROUP_HEARTBEAT,
                OFFSET_FETCH,
                OFFSET_COMMIT,
                FIND_COORDINATOR,
            )
        )
        error = self._source.choice(COORDINATOR)
        self._cluster.faults.error(api, error, **self._where())
        return f"API {api} refused with {error.__name__}"

    def _fail_commit(self) -> str:
        error = self._source.choice(COMMIT)
        applied = self._source.random() < 0.5
        self._cluster.faults.error(OFFSET_COMMIT, error, applied=applied, **self._partition())
        return f"OffsetCommit refused with {error.__name__}, applied: {applied}"

    def _fail_offsets(self) -> str:
        self._cluster.faults.error(OFFSET_FETCH, UnstableOffsetCommit, **self._partition())
        return "OffsetFetch refused with UnstableOffsetCommit"

    def _storm(self) -> str:
        """Two or three kinds of failure that go on until all is healed."""
        faults, often = self._cluster.faults, self._plan.storm
        kinds: list[Callable[[], object]] = [
            lambda: faults.error(FETCH, NotLeaderOrFollower, probability=often),
            lambda: faults.error(HEARTBEAT, NotCoordinator, probability=often),
            lambda: faults.error(CONSUMER_GROUP_HEARTBEAT, NotCoordinator, probability=often),
            lambda: faults.drop(api=CONSUMER_GROUP_HEARTBEAT, applied=True, probability=often / 2),
            lambda: faults.error(JOIN_GROUP, CoordinatorNotAvailable, probability=often),
            lambda: faults.error(SYNC_GROUP, RebalanceInProgress, probability=often),
            lambda: faults.error(OFFSET_COMMIT, RequestTimedOut, probability=often),
            lambda: faults.drop(api=JOIN_GROUP, applied=True, close=True, probability=often),
            lambda: faults.drop(api=SYNC_GROUP, applied=True, close=True, probability=often),
            lambda: faults.drop(api=FETCH, applied=True, close=True, probability=often),
            lambda: faults.drop(api=OFFSET_COMMIT, applied=True, probability=often / 2),
            lambda: faults.delay(self._span(), api=FETCH, probability=often),
            lambda: faults.cut(self._source.randrange(60), probability=often / 2),
        ]
        return f"storm of {self._unleash(kinds)}"

    # ---- what happens to nodes ----

    def _forget_sessions(self) -> str:
        node = self._node()
        self._cluster.forget_fetch_sessions(node)
        return f"node {node} forgets its fetch sessions"

    def _move_coordinator(self) -> str:
        live = [node.node_id for node in self._cluster.state.live_nodes]
        if not live or self._cluster.coordinator(GROUP) < 0:
            return "no group to move"
        node = self._source.choice(live)
        self._cluster.move_coordinator(GROUP, node)
        return f"node {node} coordinates the group"

    def _kill_coordinator(self) -> str:
        node = self._cluster.coordinator(GROUP)
        if node < 0:
            return "no coordinator to kill"
        self._cluster.kill(node)
        self._clock.after(self._span(), lambda: self._restart(node))
        return f"node {node}, the coordinator, killed"
