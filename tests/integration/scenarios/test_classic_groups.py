"""Classic groups: joins, syncs, heartbeats, static members, and who is refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.cluster.find_coordinator import FindCoordinatorRequest
from kafka_fast.protocol.apis.groups.heartbeat import HeartbeatRequest
from kafka_fast.protocol.apis.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_fast.protocol.apis.groups.leave_group import LeaveGroupRequest, MemberIdentity
from kafka_fast.protocol.apis.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.integration.scenarios.groups import (
    JOIN,
    SYNC,
    Member,
    leave,
    ready,
    stable,
    together,
    until,
)
from tests.integration.scenarios.steps import unique_name
from tests.integration.scenarios.wire import WireClient, connected

NewMember = Callable[..., Member]

UNKNOWN = errors.UnknownMemberId.code
ILLEGAL = errors.IllegalGeneration.code
REBALANCE = errors.RebalanceInProgress.code
FENCED = errors.FencedInstanceId.code
PROTOCOL = errors.InconsistentGroupProtocol.code


@pytest.fixture
def group(client: WireClient) -> str:
    """A group id that the broker coordinates."""
    name = unique_name()
    ready(client, name)
    return name


@pytest.fixture
def member(address: str, group: str) -> Iterator[NewMember]:
    """Makes members with connections of their own."""
    with ExitStack() as stack:
        yield lambda **options: Member(stack.enter_context(connected(address)), group, **options)


def test_the_first_member_leads_and_sees_the_members(group: str, member: NewMember) -> None:
    first, second = member(), member(protocols=[("range", b"mine")])
    joined = first.join()
    assert (joined.generation_id, joined.protocol_name, joined.leader) == (
        1,
        "range",
        first.member_id,
    )
    assert (joined.protocol_type, joined.skip_assignment) == ("consumer", False)
    assert first.members == [(first.member_id, b"topics")]
    assert first.sync({first.member_id: b"all"}).assignment == b"all"
    second.send_join()
    until(first.heartbeat, lambda code: code == REBALANCE)
    first.send_join()
    assert first.joined().generation_id == 2
    assert second.joined().members == []
    assert second.leader == first.member_id
    assert sorted(first.members) == sorted(
        [(first.member_id, b"topics"), (second.member_id, b"mine")]
    )
    second.send_sync()
    answer = first.sync({first.member_id: b"a", second.member_id: b"b"})
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert (answer.assignment, second.synced().assignment) == (b"a", b"b")
    assert first.heartbeat() == second.heartbeat() == 0


def test_a_member_without_an_assignment_gets_an_empty_one(member: NewMember) -> None:
    alone = member()
    alone.join()
    answer = alone.sync({})
    assert (answer.error_code, answer.assignment) == (0, b"")
    assert alone.sync().assignment == b""


def test_the_protocol_that_all_speak_and_most_prefer(member: NewMember) -> None:
    first = member(protocols=[("sticky", b"s1"), ("range", b"r1")])
    second = member(protocols=[("range", b"r2"), ("other", b"")])
    assert first.join().protocol_name == "sticky"
    second.send_join()
    until(first.heartbeat, lambda code: code == REBALANCE)
    first.send_join()
    assert first.joined().protocol_name == second.joined().protocol_name == "range"
    assert sorted(data for _, data in first.members) == [b"r1", b"r2"]


def test_protocols_that_do_not_fit(group: str, member: NewMember) -> None:
    stable(member())

    def code(version: int = JOIN, **options: object) -> int:
        other = member(**options)
        return int(other.client.ask(other.join_request(), version).error_code)

    assert code(protocols=[("other", b"")]) == PROTOCOL
    assert code(protocol_type="connect") == PROTOCOL
    assert code(protocols=[]) == PROTOCOL
    assert code(protocols=[("range", b"")], version=3, protocol_type="connect") == PROTOCOL


@pytest.mark.parametrize("options", [{"protocols": []}, {"protocol_type": ""}])
def test_a_new_group_needs_protocols(member: NewMember, options: dict[str, object]) -> None:
    first = member(**options)
    assert first.client.ask(first.join_request(), JOIN).error_code == PROTOCOL


def test_session_timeouts_have_limits(member: NewMember) -> None:
    for timeout in (5_999, 1_800_001):
        first = member(session_timeout_ms=timeout)
        answer = first.client.ask(first.join_request(), JOIN)
        assert answer.error_code == errors.InvalidSessionTimeout.code


def test_without_a_group_id(client: WireClient) -> None:
    code = errors.InvalidGroupId.code
    nobody = Member(client, "")
    assert client.ask(nobody.join_request(), JOIN).error_code == code
    assert nobody.sync().error_code == code
    assert nobody.heartbeat() == code
    request = LeaveGroupRequest(group_id="", members=[MemberIdentity(member_id="x")])
    assert client.ask(request, 5).error_code == code


def test_who_is_not_a_member(client: WireClient, group: str, member: NewMember) -> None:
    stranger = Member(client, group)
    stranger.member_id = "stranger"
    stranger.generation = 1
    for known in (None, member()):
        if known is not None:
            stable(known)
        stranger.send_join()
        assert client.answer(stranger.join_request(), JOIN).error_code == UNKNOWN
        assert stranger.sync().error_code == UNKNOWN
        assert stranger.heartbeat() == UNKNOWN
        assert leave(client, group, MemberIdentity(member_id="stranger")) == [UNKNOWN]


def test_other_generations(member: NewMember) -> None:
    alone = member()
    stable(alone)
    assert alone.heartbeat(0) == alone.heartbeat(2) == ILLEGAL
    alone.generation = 2
    assert alone.sync().error_code == ILLEGAL


def test_a_sync_that_names_another_protocol(member: NewMember) -> None:
    alone = member()
    stable(alone)
    request = alone.sync_request()
    request.protocol_name = "other"
    assert alone.client.ask(request, SYNC).error_code == PROTOCOL
    request.protocol_name = None
    assert alone.client.ask(request, SYNC).error_code == PROTOCOL
    assert alone.client.ask(request, 4).error_code == 0


def test_a_sync_waits_for_the_leader(member: NewMember) -> None:
    leader, other = member(), member()
    together(leader, other)
    other.send_sync()
    assert leader.heartbeat() == 0
    leader.sync({other.member_id: b"x"})
    assert other.synced().assignment == b"x"


def test_a_rebalance_ends_the_waiting_syncs(member: NewMember) -> None:
    first, second, third = member(), member(), member()
    together(first, second)
    generation = first.generation + 1
    second.send_sync()
    third.send_join()
    assert second.synced().error_code == REBALANCE
    assert first.heartbeat() == REBALANCE
    first.send_join()
    second.send_join()
    assert first.joined().generation_id == second.joined().generation_id == generation
    assert third.joined().generation_id == generation


def test_who_joins_again_without_a_change_is_answered_at_once(member: NewMember) -> None:
    first, second = member(), member()
    stable(first, second)
    again = second.join()
    assert (again.generation_id, again.members) == (2, [])
    assert first.heartbeat() == 0
    second.protocols = [("range", b"other topics")]
    second.send_join()
    until(first.heartbeat, lambda code: code == REBALANCE)
    first.join()
    assert second.joined().generation_id == 3


def test_a_leader_that_joins_again_rebalances(member: NewMember) -> None:
    alone = member()
    stable(alone)
    assert alone.join().generation_id == 2
    assert alone.members == [(alone.member_id, b"topics")]
    assert alone.join().generation_id == 2


def test_leaving_hands_over(member: NewMember) -> None:
    leader, other = member(), member()
    stable(leader, other)
    assert leader.leave() == 0
    assert leader.leave() == UNKNOWN
    assert other.heartbeat() == REBALANCE
    assert other.join().generation_id == 3
    assert other.leads
    assert other.sync({other.member_id: b"all"}).assignment == b"all"
    assert other.leave() == 0
    assert other.heartbeat() == UNKNOWN
    assert other.leave() == UNKNOWN


def test_a_member_that_is_waited_for_leaves(member: NewMember) -> None:
    waiting, gone = member(), member()
    stable(waiting, gone)
    waiting.send_join()
    until(gone.heartbeat, lambda code: code == REBALANCE)
    assert gone.leave() == 0
    assert waiting.joined().generation_id == 3
    assert len(waiting.members) == 1


def test_an_id_that_never_joined_is_waited_for(member: NewMember) -> None:
    first, pending = member(), member()
    stable(first)
    pending.get_id()
    first.send_join()
    assert pending.leave() == 0
    assert first.joined().generation_id == 2


def test_members_without_known_ids_join_at_once(client: WireClient, group: str) -> None:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30000,
        rebalance_timeout_ms=30000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    answer = client.ask(request, 3)
    assert (answer.error_code, answer.generation_id) == (0, 1)
    assert answer.leader == answer.member_id
    assert answer.member_id.startswith("scenario-")
    sync = SyncGroupRequest(group_id=group, generation_id=1, member_id=answer.member_id)
    assert client.ask(sync, 2).error_code == 0
    beat = HeartbeatRequest(group_id=group, generation_id=1, member_id=answer.member_id)
    assert client.ask(beat, 2).error_code == 0
    gone = LeaveGroupRequest(group_id=group, member_id=answer.member_id)
    assert client.ask(gone, 2).error_code == 0
    assert client.ask(gone, 2).error_code == UNKNOWN


# ---- static members ----


def test_a_static_member_comes_back_without_a_rebalance(member: NewMember) -> None:
    first = member()
    second = member(instance_id="two")
    stable(first, second)
    back = member(instance_id="two")
    answer = back.join()
    assert (answer.generation_id, answer.skip_assignment) == (2, False)
    assert back.member_id not in ("", second.member_id)
    assert back.member_id.startswith("two-")
    assert back.sync().assignment == b"1"
    assert first.heartbeat() == back.heartbeat() == 0
    assert second.heartbeat() == FENCED
    assert second.sync().error_code == FENCED
    assert second.leave() == FENCED
    second.send_join()
    assert second.client.answer(second.join_request(), JOIN).error_code == FENCED


@pytest.mark.parametrize("version", [8, 9])
def test_a_static_leader_comes_back(member: NewMember, version: int) -> None:
    first = member(instance_id="one")
    stable(first)
    back = member(instance_id="one")
    answer = back.client.ask(back.join_request(), version)
    assert (answer.error_code, answer.generation_id) == (0, 1)
    if version == 9:
        assert answer.skip_assignment
        assert answer.leader == answer.member_id
        assert [one.group_instance_id for one in answer.members] == ["one"]
    else:
        assert answer.leader == first.member_id
        assert answer.members == []
    back.member_id, back.generation = answer.member_id, 1
    assert back.sync().assignment == b"0"


def test_a_static_member_that_changes_its_mind_rebalances(member: NewMember) -> None:
    both = [("range", b"r"), ("sticky", b"s")]
    first, second = member(protocols=both), member(protocols=both, instance_id="two")
    stable(first, second)
    back = member(protocols=[("sticky", b"s")], instance_id="two")
    back.send_join()
    until(first.heartbeat, lambda code: code == REBALANCE)
    first.send_join()
    assert first.joined().protocol_name == back.joined().protocol_name == "sticky"


def test_static_members_that_nobody_knows(client: WireClient, member: NewMember) -> None:
    first = member(instance_id="one")
    stable(first)
    other = member(instance_id="other")
    other.member_id, other.generation = first.member_id, 1
    assert other.heartbeat() == UNKNOWN
    assert other.sync().error_code == UNKNOWN
    assert other.leave() == UNKNOWN


def test_a_static_member_that_comes_too_late_is_kept_but_not_in_the_generation(
    client: WireClient, member: NewMember, topic: str
) -> None:
    first = member(rebalance_timeout_ms=3_000)
    late = member(rebalance_timeout_ms=3_000, instance_id="late")
    stable(first, late)
    third = member(rebalance_timeout_ms=3_000)
    third.send_join()
    until(first.heartbeat, lambda code: code == REBALANCE)
    first.send_join()
    assert first.joined().generation_id == third.joined().generation_id == 3
    assert late.member_id in [member_id for member_id, _ in first.members]
    assert late.heartbeat() == ILLEGAL
    assert late.commit(topic, 5) == ILLEGAL
    assert late.join().generation_id == 3  # as long as the leader has not assigned
    assert late.heartbeat() == 0


def test_a_static_member_is_let_go_by_its_instance_id(
    client: WireClient, group: str, member: NewMember
) -> None:
    first, second = member(), member(instance_id="two")
    stable(first, second)
    codes = leave(
        client,
        group,
        MemberIdentity(member_id="", group_instance_id="two"),
        MemberIdentity(member_id="", group_instance_id="three"),
        MemberIdentity(member_id=""),
        MemberIdentity(member_id=first.member_id),
    )
    assert codes == [0, UNKNOWN, UNKNOWN, 0]


# ---- time ----


def test_who_is_silent_is_removed(member: NewMember) -> None:
    silent, alive = member(session_timeout_ms=6000), member()
    before = time.monotonic()
    stable(silent, alive)
    since = time.monotonic()  # the silent one's last word lies between the two
    until(alive.heartbeat, lambda code: code == REBALANCE, 20)
    assert time.monotonic() - before > 5.9
    assert time.monotonic() - since < 9
    assert silent.heartbeat() == UNKNOWN
    assert alive.join().generation_id == 3
    assert len(alive.members) == 1


def test_a_rebalance_goes_on_without_who_does_not_come(member: NewMember) -> None:
    late, first = member(rebalance_timeout_ms=3000), member(rebalance_timeout_ms=3000)
    stable(late, first)
    first.protocols = [("range", b"other")]
    start = time.monotonic()
    first.send_join()
    assert first.joined().generation_id == 3
    assert 2.9 < time.monotonic() - start < 7
    assert first.leads
    assert late.heartbeat() == UNKNOWN


def test_a_member_that_never_syncs_is_removed(member: NewMember) -> None:
    leader, other = member(rebalance_timeout_ms=3000), member(rebalance_timeout_ms=3000)
    together(leader, other)
    leader.sync({})
    until(leader.heartbeat, lambda code: code == REBALANCE)
    assert other.heartbeat() == UNKNOWN
    assert leader.join().generation_id == other.generation + 1


# ---- finding the coordinator ----


def test_coordinators_of_several_groups(client: WireClient, group: str) -> None:
    node_id = client.metadata().brokers[0].node_id
    for version in range(7):
        request = FindCoordinatorRequest()
        if version < 4:
            request.key = group
            coordinator = client.ask(request, version)
            assert (coordinator.error_code, coordinator.node_id) == (0, node_id)
        else:
            request.coordinator_keys = [group, "other", ""]
            answer = client.ask(request, version).coordinators
            assert [(one.key, one.error_code) for one in answer] == [
                (group, 0),
                ("other", 0),
                ("", 0),
            ]
            assert {one.node_id for one in answer} == {node_id}


# ---- older clients ----


@pytest.mark.parametrize("version", range(10))
def test_every_version_joins_syncs_beats_and_leaves(
    client: WireClient, group: str, version: int
) -> None:
    join = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30000,
        rebalance_timeout_ms=30000 if version else -1,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m")],
    )
    answer = client.ask(join, version)
    if version >= 4:
        assert answer.error_code == errors.MemberIdRequired.code
        join.member_id = answer.member_id
        answer = client.ask(join, version)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 1, "range")
    assert answer.protocol_type == ("consumer" if version >= 7 else None)
    assert [one.metadata for one in answer.members] == [b"m"]
    identity = {"group_id": group, "generation_id": 1, "member_id": answer.member_id}
    assignments = [SyncGroupRequestAssignment(member_id=answer.member_id, assignment=b"all of it")]
    sync = SyncGroupRequest(
        **identity, protocol_type="consumer", protocol_name="range", assignments=assignments
    )
    synced = client.ask(sync, min(version, 5))
    assert (synced.error_code, synced.assignment) == (0, b"all of it")
    assert client.ask(HeartbeatRequest(**identity), min(version, 4)).error_code == 0
    leave_version = min(version, 5)
    gone = LeaveGroupRequest(group_id=group)
    if leave_version < 3:
        gone.member_id = answer.member_id
    else:
        gone.members = [MemberIdentity(member_id=answer.member_id)]
    for code in (0, UNKNOWN):
        left = client.ask(gone, leave_version)
        codes = [one.error_code for one in left.members] if left.members else [left.error_code]
        assert codes == [code]
    assert client.ask(HeartbeatRequest(**identity), min(version, 4)).error_code == UNKNOWN
