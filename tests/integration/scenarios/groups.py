"""Steps of scenarios about groups: members with connections of their own, and commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from kafka_fast import errors
from kafka_fast.protocol.apis.cluster.find_coordinator import FindCoordinatorRequest
from kafka_fast.protocol.apis.groups.heartbeat import HeartbeatRequest
from kafka_fast.protocol.apis.groups.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kafka_fast.protocol.apis.groups.leave_group import LeaveGroupRequest, MemberIdentity
from kafka_fast.protocol.apis.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_fast.protocol.apis.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafka_fast.protocol.apis.groups.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tests.integration.scenarios.wire import WireClient
from tests.waiting import TIMEOUT, eventually

JOIN, SYNC, HEARTBEAT, LEAVE = 9, 5, 4, 5  # newest versions
COMMIT, FETCH = 9, 9  # newest versions with topic names
NO_COORDINATOR_YET = {
    errors.CoordinatorNotAvailable.code,
    errors.CoordinatorLoadInProgress.code,
    errors.NotCoordinator.code,
}

T = TypeVar("T")


def until(step: Callable[[], T], done: Callable[[T], bool], timeout: float = TIMEOUT) -> T:
    """Repeat a step until its result is the wanted one, and return that."""
    results: list[T] = []

    def probe() -> bool:
        results[:] = [step()]
        return done(results[0])

    eventually(probe, "the wanted result", timeout=timeout)
    return results[0]


def find_coordinator(client: WireClient, group: str) -> int:
    """Return the node that coordinates a group, when there is one that answers for it."""
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    coordinator = until(
        lambda: client.ask(request, 6).coordinators[0],
        lambda one: one.error_code not in NO_COORDINATOR_YET,
    )
    assert coordinator.error_code == 0
    return int(coordinator.node_id)


def ready(client: WireClient, group: str) -> None:
    """Wait until the only broker coordinates the group."""
    find_coordinator(client, group)
    until(lambda: fetch_offsets(client, group, None)[0], lambda code: code == 0)


class Member:
    """One member of a classic group."""

    def __init__(
        self,
        client: WireClient,
        group: str,
        *,
        protocols: Sequence[tuple[str, bytes]] = (("range", b"topics"),),
        protocol_type: str = "consumer",
        instance_id: str | None = None,
        session_timeout_ms: int = 30_000,
        rebalance_timeout_ms: int = 30_000,
    ) -> None:
        self.client = client
        self.group = group
        self.member_id = ""
        self.generation = -1
        self.leader = ""
        self.members: list[tuple[str, bytes]] = []
        self.protocols = list(protocols)
        self.protocol_type = protocol_type
        self.instance_id = instance_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms

    @property
    def leads(self) -> bool:
        return self.leader == self.member_id

    def join_request(self) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=data) for name, data in self.protocols
            ],
        )

    def get_id(self) -> None:
        """Get a member id, without joining with it."""
        answer = self.client.ask(self.join_request(), JOIN)
        assert answer.error_code == errors.MemberIdRequired.code
        assert answer.member_id
        self.member_id = answer.member_id

    def send_join(self) -> None:
        """Join with the member id; `joined` takes the answer."""
        if not self.member_id and self.instance_id is None:
            self.get_id()
        self.client.send(self.join_request(), JOIN)

    def joined(self) -> JoinGroupResponse:
        """Return the answer to the join, which must not be an error."""
        answer: JoinGroupResponse = self.client.answer(self.join_request(), JOIN)
        assert answer.error_code == 0, answer
        self.member_id = answer.member_id
        self.generation = answer.generation_id
        self.leader = answer.leader
        self.members = [(one.member_id, bytes(one.metadata)) for one in answer.members]
        return answer

    def join(self) -> JoinGroupResponse:
        self.send_join()
        return self.joined()

    def sync_request(self, assignments: Mapping[str, bytes] | None = None) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocols[0][0],
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=data)
                for member_id, data in (assignments or {}).items()
            ],
        )

    def send_sync(self, assignments: Mapping[str, bytes] | None = None) -> None:
        self.client.send(self.sync_request(assignments), SYNC)

    def synced(self) -> SyncGroupResponse:
        answer: SyncGroupResponse = self.client.answer(self.sync_request(), SYNC)
        return answer

    def sync(self, assignments: Mapping[str, bytes] | None = None) -> SyncGroupResponse:
        self.send_sync(assignments)
        return self.synced()

    def heartbeat(self, generation: int | None = None) -> int:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation if generation is None else generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        return int(self.client.ask(request, HEARTBEAT).error_code)

    def leave(self) -> int:
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        return leave(self.client, self.group, identity)[0]

    def commit(self, topic: str, offset: int, **options: int) -> int:
        return commit(
            self.client,
            self.group,
            topic,
            offset,
            member_id=self.member_id,
            generation=self.generation,
            instance_id=self.instance_id,
            **options,
        )


def stable(*members: Member) -> None:
    """Let members join one after the other; in the end each is assigned its place in the list."""
    for count, newest in enumerate(members, start=1):
        present = members[:count]
        newest.send_join()
        for member in present[:-1]:
            until(member.heartbeat, lambda code: code == errors.RebalanceInProgress.code)
        for member in present[:-1]:
            member.send_join()
        for member in present:
            member.joined()
        assignments = {member.member_id: b"%d" % place for place, member in enumerate(present)}
        for member in present:
            member.send_sync(assignments if member.leads else None)
        for place, member in enumerate(present):
            answer = member.synced()
            assert (answer.error_code, answer.assignment) == (0, b"%d" % place)


def together(leader: Member, other: Member) -> None:
    """Bring two members into a generation in which nobody has asked for an assignment yet."""
    leader.join()
    other.send_join()
    until(leader.heartbeat, lambda code: code == errors.RebalanceInProgress.code)
    leader.send_join()
    leader.joined()
    other.joined()


def leave(client: WireClient, group: str, *members: MemberIdentity) -> list[int]:
    """Leave a group; return the error code of each member."""
    answer = client.ask(LeaveGroupRequest(group_id=group, members=list(members)), LEAVE)
    assert answer.error_code == 0
    return [one.error_code for one in answer.members]


def commit(
    client: WireClient,
    group: str,
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    member_id: str = "",
    generation: int = -1,
    instance_id: str | None = None,
    metadata: str | None = "",
    leader_epoch: int = -1,
    version: int = COMMIT,
    topic_id: bytes = bytes(16),
) -> int:
    """Commit one position; return the partition's error code."""
    one = OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=offset,
        committed_leader_epoch=leader_epoch,
        committed_metadata=metadata,
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=[OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[one])],
    )
    return int(client.ask(request, version).topics[0].partitions[0].error_code)


Offsets = dict[tuple[str, int], tuple[int, int, str, int]]


def fetch_offsets(
    client: WireClient,
    group: str,
    asked: Mapping[str, Sequence[int]] | None,
    *,
    member_id: str | None = None,
    member_epoch: int = -1,
    require_stable: bool = False,
) -> tuple[int, Offsets]:
    """Return the group's error code, and of each partition offset, epoch, metadata and code."""
    topics = None
    if asked is not None:
        topics = [
            OffsetFetchRequestTopics(name=name, partition_indexes=list(indexes))
            for name, indexes in asked.items()
        ]
    of_group = OffsetFetchRequestGroup(
        group_id=group, member_id=member_id, member_epoch=member_epoch, topics=topics
    )
    request = OffsetFetchRequest(groups=[of_group], require_stable=require_stable)
    answer = client.ask(request, FETCH).groups[0]
    assert answer.group_id == group
    offsets = {
        (topic.name, one.partition_index): (
            one.committed_offset,
            one.committed_leader_epoch,
            one.metadata,
            one.error_code,
        )
        for topic in answer.topics
        for one in topic.partitions
    }
    return answer.error_code, offsets
