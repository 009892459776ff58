"""Classic groups in virtual time: what waits for a clock, and what a new coordinator knows."""

from __future__ import annotations

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.cluster.find_coordinator import FindCoordinatorRequest
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest
from kafka_fast.protocol.apis.groups.heartbeat import HeartbeatRequest
from kafka_fast.protocol.apis.groups.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kafka_fast.protocol.apis.groups.leave_group import LeaveGroupRequest, MemberIdentity
from kafka_fast.protocol.apis.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafka_fast.protocol.apis.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafka_fast.testing.broker.groups.settings import GroupSettings
from kafka_fast.testing.broker.partitions.coordinating import partition_for
from tests.unit.testing.broker.memory import Client, World, batch

JOIN, SYNC, HEARTBEAT, LEAVE = 9, 5, 4, 5
REBALANCE = errors.RebalanceInProgress.code
NOT_HERE = errors.NotCoordinator.code


def world(nodes: int = 1, **groups: int) -> World:
    made = World(nodes=nodes, replication_factor=nodes, groups=GroupSettings(**groups))
    client = made.connect()
    find = FindCoordinatorRequest(coordinator_keys=["g"])
    refused = client.ask(find, 6).coordinators[0]
    assert refused.error_code == errors.CoordinatorNotAvailable.code
    coordinator = client.ask(find, 6).coordinators[0]
    assert (coordinator.error_code, coordinator.node_id) == (0, made.cluster.coordinator("g"))
    return made


class Member:
    """One member, with a connection to the coordinator."""

    def __init__(self, here: World, **options: object) -> None:
        self.here = here
        self.options = options
        self.member_id = ""
        self.generation = -1
        self.client: Client
        self.reconnect()

    def reconnect(self) -> None:
        self.client = self.here.connect(self.here.cluster.coordinator("g"))

    def request(self) -> JoinGroupRequest:
        values: dict[str, object] = {
            "group_id": "g",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"")],
            "member_id": self.member_id,
            **self.options,
        }
        return JoinGroupRequest(**values)

    def get_id(self) -> None:
        answer = self.client.ask(self.request(), JOIN)
        assert answer.error_code == errors.MemberIdRequired.code
        self.member_id = answer.member_id

    def send_join(self) -> None:
        if not self.member_id:
            self.get_id()
        self.client.send(self.request(), JOIN)

    def joined(self) -> JoinGroupResponse | None:
        self.here.settle()
        answer: JoinGroupResponse | None = self.client.take(self.request(), JOIN)
        if answer is not None and answer.error_code == 0:
            self.generation = answer.generation_id
        return answer

    def join(self) -> None:
        self.send_join()
        answer = self.joined()
        assert answer is not None
        assert answer.error_code == 0

    def sync_request(self) -> SyncGroupRequest:
        mine = SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"mine")
        return SyncGroupRequest(
            group_id="g",
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[mine],
        )

    def sync(self) -> bytes:
        answer = self.client.ask(self.sync_request(), SYNC)
        assert answer.error_code == 0
        return bytes(answer.assignment)

    def heartbeat(self) -> int:
        request = HeartbeatRequest(
            group_id="g", generation_id=self.generation, member_id=self.member_id
        )
        return int(self.client.ask(request, HEARTBEAT).error_code)


def test_the_first_rebalance_waits_for_more_members() -> None:
    here = world(initial_rebalance_delay_ms=3000)
    first, second = Member(here), Member(here)
    first.send_join()
    here.run_until(2.0)
    second.send_join()
    here.run_until(5.9)
    assert first.joined() is None
    here.run_until(6.0)
    answer = first.joined()
    assert answer is not None
    assert len(answer.members) == 2


def test_the_wait_for_more_members_ends_with_the_rebalance_timeout() -> None:
    here = world(initial_rebalance_delay_ms=3000)
    members = [Member(here, rebalance_timeout_ms=7000) for _ in range(4)]
    for number, member in enumerate(members):
        here.run_until(2.5 * number)
        if here.now < 7.0:
            member.send_join()
    here.run_until(7.0)
    assert members[0].joined() is not None


def test_sessions_end_unless_there_is_a_sign_of_life() -> None:
    here = world()
    member = Member(here)
    member.join()
    member.sync()
    for second in (9.9, 19.8):
        here.run_until(second)
        assert member.heartbeat() == 0
    here.run_until(29.7)
    assert member.heartbeat() == 0
    here.run_until(39.8)
    assert member.heartbeat() == errors.UnknownMemberId.code


def test_who_waits_for_others_does_not_expire() -> None:
    here = world()
    first, second = Member(here), Member(here, session_timeout_ms=6000)
    first.join()
    first.sync()
    second.send_join()
    here.run_until(5.0)
    assert first.heartbeat() == REBALANCE
    here.run_until(14.0)
    assert first.heartbeat() == REBALANCE
    first.send_join()
    assert first.joined() is not None
    assert second.joined() is not None
    assert second.generation == 2


def test_a_promised_id_ends_with_the_session_timeout() -> None:
    here = world()
    first, ghost = Member(here), Member(here)
    first.join()
    first.sync()
    ghost.get_id()
    first.send_join()
    here.run_until(9.9)
    assert first.joined() is None
    here.run_until(10.0)
    assert first.joined() is not None


def test_who_was_promised_an_id_may_join_when_all_others_have_left() -> None:
    """Regression: no member was left that speaks its protocol."""
    here = world()
    members, late = [Member(here), Member(here)], Member(here)
    members[0].join()
    members[0].sync()
    members[1].send_join()
    members[0].join()
    assert members[1].joined() is not None
    late.get_id()
    for member in members:
        leaving = [MemberIdentity(member_id=member.member_id)]
        answer = member.client.ask(LeaveGroupRequest(group_id="g", members=leaving), LEAVE)
        assert answer.error_code == 0
    late.join()


def test_a_group_can_be_full() -> None:
    here = world(max_size=1)
    member, late = Member(here), Member(here)
    member.join()
    member.sync()
    refused = late.client.ask(late.request(), JOIN)
    assert refused.error_code == errors.GroupMaxSizeReached.code
    assert member.heartbeat() == 0


# ---- another coordinator ----


def test_a_stable_group_moves_as_it_is() -> None:
    here = world(nodes=2)
    member = Member(here)
    member.join()
    assert member.sync() == b"mine"
    here.run_until(9.0)
    here.cluster.move_coordinator("g", 3 - here.cluster.coordinator("g"))
    assert member.heartbeat() == NOT_HERE
    member.reconnect()
    here.run_until(18.0)
    assert member.heartbeat() == 0
    assert member.sync() == b"mine"
    here.run_until(40.0)
    assert member.heartbeat() == errors.UnknownMemberId.code


def test_who_waits_hears_that_the_coordinator_has_gone() -> None:
    here = world(nodes=2)
    first, second, third = Member(here), Member(here), Member(here)
    first.join()
    first.sync()
    second.send_join()
    here.cluster.move_coordinator("g", 3 - here.cluster.coordinator("g"))
    answer = second.joined()
    assert answer is not None
    assert answer.error_code == NOT_HERE
    first.reconnect()
    assert first.heartbeat() == 0
    third.reconnect()
    third.send_join()
    assert first.heartbeat() == REBALANCE
    second.reconnect()
    second.client.send(second.request(), JOIN)
    lost = second.joined()
    assert lost is not None
    assert lost.error_code == errors.UnknownMemberId.code


def test_a_rebalance_under_way_is_forgotten_with_its_coordinator() -> None:
    here = world(nodes=2)
    first, second = Member(here), Member(here)
    first.join()
    first.sync()
    second.send_join()
    first.join()
    assert first.generation == 2
    second.joined()
    second.client.send(second.sync_request(), SYNC)
    here.cluster.kill(here.cluster.coordinator("g"))
    here.settle()
    for member in (first, second):
        member.reconnect()
    assert first.heartbeat() == errors.IllegalGeneration.code
    assert second.heartbeat() == errors.UnknownMemberId.code
    first.generation = 1
    assert first.heartbeat() == 0


def test_nobody_coordinates_without_live_replicas() -> None:
    here = world(nodes=2)
    member = Member(here)
    member.join()
    first = here.cluster.coordinator("g")
    for node_id in (first, 3 - first):
        here.cluster.kill(node_id)
    here.settle()
    assert here.cluster.coordinator("g") == -1
    here.cluster.restart(3 - first)
    here.settle()
    member.reconnect()
    assert member.heartbeat() == errors.UnknownMemberId.code  # its assignment was never written


def test_a_restarted_broker_has_its_groups() -> None:
    here = world()
    member = Member(here)
    member.join()
    member.sync()
    here.cluster.kill(1)
    here.settle()
    here.cluster.restart(1)
    member.reconnect()
    assert member.heartbeat() == 0


# ---- what tests order ----


def test_errors_on_order() -> None:
    here = world()
    member = Member(here)
    member.join()
    here.cluster.faults.error(HeartbeatRequest.api_key, errors.CoordinatorLoadInProgress, count=1)
    assert member.heartbeat() == errors.CoordinatorLoadInProgress.code
    assert member.heartbeat() == 0


def test_positions_of_an_open_transaction() -> None:
    here = world()
    here.cluster.create_topic("t")
    here.cluster.set_unstable("g", "t", 0)
    client = here.connect()

    def code(stable: bool) -> int:
        topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)], require_stable=stable
        )
        return int(client.ask(request, 8).groups[0].topics[0].partitions[0].error_code)

    assert code(False) == 0
    assert code(True) == errors.UnstableOffsetCommit.code
    here.cluster.set_unstable("g", "t", 0, False)
    assert code(True) == 0
    assert here.cluster.committed("g") == {}


def test_the_offsets_topic_is_the_brokers_own() -> None:
    client = world().connect()
    topics = client.ask(MetadataRequest(topics=None), 12).topics
    assert [(one.name, one.is_internal, len(one.partitions)) for one in topics] == [
        ("__consumer_offsets", True, 50)
    ]
    refused = client.produce("__consumer_offsets", batch())
    assert refused.error_code == errors.InvalidTopicException.code


@pytest.mark.parametrize(
    ("group", "partition"),
    [("", 0), ("a", 47), ("my-group", 12), ("ä😀", 7), ("polygenelubricants", 0)],
)
def test_the_partition_of_a_group_is_javas(group: str, partition: int) -> None:
    assert partition_for(group, 50) == partition
