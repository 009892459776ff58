"""Calls: sent where they belong, tried again at the right pace, ended once and in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.control.metadata.metadata import Node
from kafka_fast.control.requests.call import ONLY, AnswerSource, Call
from kafka_fast.control.requests.meanings import Done, FindAgain, Meaning, meaning_of
from kafka_fast.control.requests.targets import (
    AllNodes,
    AnyNode,
    Controller,
    Leaders,
    OneNode,
    Target,
)
from kafka_fast.errors import (
    ErrorCode,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NotLeaderOrFollower,
    ProtocolError,
    UnsupportedVersionError,
)
from kafka_fast.instants import NEVER
from kafka_fast.protocol.apis.groups.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafka_fast.types import TopicPartition
from tests.unit.control.requests.rig import BACKOFF, RequesterRig, request_of

NODES = [Node(1, "one", 9092), Node(2, "two", 9092), Node(3, "three", 9092)]


class Ask(Call[Any, str]):
    """A call whose items are named in DescribeGroups, whatever they are."""

    request_class = DescribeGroupsRequest
    response_class = DescribeGroupsResponse

    def __init__(self, target: Target[Any], **attributes: Any) -> None:
        super().__init__(target, timeout=30.0)
        self.done: dict[Any, str] = {}
        self.failed: dict[Any, KafkaError] = {}
        self.held: set[Any] = set()
        self.needless: set[Any] = set()
        self.read_count = 0
        for name, value in attributes.items():
            setattr(self, name, value)

    def may_send(self, item: Any) -> bool:
        return item not in self.held

    def settle_unsent(self, item: Any, now: float) -> Meaning[str] | None:
        return Done("without asking") if item in self.needless else None

    def build(self, items: Sequence[Any], version: int) -> DescribeGroupsRequest:
        return DescribeGroupsRequest(groups=[str(item) for item in items])

    def read(self, answer: Any, items: Sequence[Any], source: AnswerSource) -> Any:
        names = {str(item): item for item in items}
        for group in answer.groups:
            item = names.get(group.group_id, group.group_id)
            if group.error_code:
                topic = item.topic if isinstance(item, TopicPartition) else None
                yield item, meaning_of(group.error_code, self.describe(item), topic=topic)
            else:
                yield item, Done(group.group_state)

    def handle_read(self, now: float) -> None:
        self.read_count += 1

    def handle_done(self, item: Any, value: str, now: float) -> None:
        assert item not in self.done
        self.done[item] = value

    def handle_failed(self, item: Any, error: KafkaError, now: float) -> None:
        assert item not in self.failed
        self.failed[item] = error


def answer(**codes: int) -> DescribeGroupsResponse:
    """Return an answer about items; 0: "stable"."""
    return DescribeGroupsResponse(
        groups=[
            DescribedGroup(group_id=item, error_code=code, group_state="stable")
            for item, code in codes.items()
        ]
    )


@pytest.fixture
def rig() -> RequesterRig:
    rig = RequesterRig()
    rig.nodes = NODES
    return rig


# ---- one item ----


def test_no_item_of_a_user_is_taken_for_the_only_one() -> None:
    """Regression: errors about a topic called ONLY did not name it."""
    assert ONLY != "ONLY"
    assert "ONLY" != ONLY  # noqa: SIM300  either side decides
    assert ONLY == ONLY
    assert {ONLY: 1, "ONLY": 2}[ONLY] == 1
    assert Ask(AnyNode()).describe("ONLY") == "DescribeGroups of ONLY"
    assert Ask(AnyNode()).describe(ONLY) == "DescribeGroups"


def test_an_answer_ends_an_item(rig: RequesterRig) -> None:
    rig.open(1)
    call = Ask(AnyNode())
    opened = rig.requester.open_call(call, ["a"])
    (sent,) = rig.tick()
    assert request_of(sent).groups == ["a"]
    assert rig.tick(2.0) == [], "it is in flight"
    assert rig.requester.next_deadline() == NEVER
    rig.answer(sent, answer(a=0))
    assert (call.done, call.failed, call.read_count) == ({"a": "stable"}, {}, 1)
    assert not opened.is_open


def test_what_will_pass_is_asked_again_after_a_growing_pause(rig: RequesterRig) -> None:
    rig.open(1)
    call = Ask(AnyNode())
    rig.requester.open_call(call, ["a"])
    waits = []
    for _ in range(4):
        (sent,) = rig.tick()
        rig.answer(sent, answer(a=ErrorCode.REQUEST_TIMED_OUT))
        again_at = rig.requester.next_deadline()
        waits.append(round(again_at - rig.now, 2))
        assert rig.tick(again_at - 0.001) == []
        rig.now = again_at
    assert waits == [BACKOFF, 2 * BACKOFF, 4 * BACKOFF, 8 * BACKOFF]
    assert call.failed == {}


def test_what_will_not_pass_fails(rig: RequesterRig) -> None:
    rig.open(1)
    call = Ask(AnyNode())
    rig.requester.open_call(call, ["a"])
    rig.answer(*rig.tick(), answer(a=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    assert "DescribeGroups of a" in str(call.failed["a"])
    assert rig.requester.next_deadline() == NEVER


def test_what_an_answer_leaves_out_is_asked_again(rig: RequesterRig) -> None:
    rig.open(1)
    call = Ask(AnyNode())
    opened = rig.requester.open_call(call, ["a", "b"])
    rig.answer(*rig.tick(), answer(a=0, c=0))
    assert list(opened) == ["b"]
    why = opened.why_waiting("b")
    assert why is not None
    assert "leaves b out" in why.text
    assert isinstance(why.cause, ProtocolError)
    (sent,) = rig.tick(2.0)
    assert request_of(sent).groups == ["b"]


def test_a_broken_connection_is_followed_by_another_try(rig: RequesterRig) -> None:
    rig.open(1)
    call = Ask(AnyNode())
    rig.requester.open_call(call, ["a"])
    rig.lose(*rig.tick())
    assert rig.tick(1.0 + 2 * BACKOFF) == [], "there is no link"
    rig.open(2)
    (sent,) = rig.tick()
    rig.answer(sent, answer(a=0))
    assert call.done == {"a": "stable"}


def test_an_order_is_not_repeated_when_nobody_knows_whether_it_was_carried_out(
    rig: RequesterRig,
) -> None:
    rig.open(1)
    call = Ask(AnyNode(), is_repeatable=False)
    rig.requester.open_call(call, ["a"])
    rig.lose(*rig.tick())
    assert isinstance(call.failed["a"], KafkaConnectionError)
    assert "may or may not have been done" in str(call.failed["a"])


def test_an_order_that_was_refused_for_now_is_repeated(rig: RequesterRig) -> None:
    rig.open(1)
    call = Ask(AnyNode(), is_repeatable=False)
    rig.requester.open_call(call, ["a"])
    rig.answer(*rig.tick(), answer(a=ErrorCode.REQUEST_TIMED_OUT))
    assert len(rig.tick(2.0)) == 1


def test_tries_can_be_counted(rig: RequesterRig) -> None:
    rig.open(1)
    call = Ask(AnyNode(), max_tries=2)
    rig.requester.open_call(call, ["a"])
    rig.answer(*rig.tick(), answer(a=ErrorCode.REQUEST_TIMED_OUT))
    assert call.failed == {}
    rig.answer(*rig.tick(2.0), answer(a=ErrorCode.REQUEST_TIMED_OUT))
    assert "a" in call.failed


def test_a_node_without_the_api_fails_it_at_once(rig: RequesterRig) -> None:
    rig.open(1, DescribeGroups=-1)
    call = Ask(AnyNode())
    rig.requester.open_call(call, ["a"])
    assert rig.tick() == []
    assert isinstance(call.failed["a"], UnsupportedVersionError)


def test_what_need_not_be_sent_is_not(rig: RequesterRig) -> None:
    rig.open(1)
    call = Ask(AnyNode(), needless={"a", "b"})
    rig.requester.open_call(call, ["a", "b"])
    assert rig.tick() == []
    assert call.done == dict.fromkeys("ab", "without asking")


def test_what_is_held_back_waits_without_a_deadline_of_its_own(rig: RequesterRig) -> None:
    rig.open(1)
    call = Ask(AnyNode(), held={"a"})
    rig.requester.open_call(call, ["a"], deadline=9.0)
    assert rig.tick() == []
    assert rig.requester.next_deadline() == 9.0
    call.held.clear()
    assert len(rig.tick(2.0)) == 1


# ---- deadlines ----


def test_an_item_that_was_never_sent_fails_at_the_deadline(rig: RequesterRig) -> None:
    call = Ask(Leaders())
    partition = TopicPartition("t", 0)
    rig.requester.open_call(call, [partition], deadline=3.0)
    rig.tick()
    assert rig.requester.next_deadline() == 3.0
    rig.tick(3.0)
    error = call.failed[partition]
    assert isinstance(error, KafkaTimeoutError)
    assert str(error).startswith("DescribeGroups of t-0 was not sent in time; ")


def test_an_error_at_the_deadline_names_the_last_trouble_and_the_attempts(
    rig: RequesterRig,
) -> None:
    rig.open(1)
    call = Ask(AnyNode())
    rig.requester.open_call(call, ["a"], deadline=1.5)
    rig.answer(*rig.tick(), answer(a=ErrorCode.REQUEST_TIMED_OUT))
    rig.answer(*rig.tick(1.2), answer(a=ErrorCode.REQUEST_TIMED_OUT))
    rig.tick(1.5)
    error = call.failed["a"]
    assert "no answer in time (2 attempts)" in str(error)
    assert "REQUEST_TIMED_OUT" in repr(error.__cause__) or error.__cause__ is not None


def test_an_answer_after_the_deadline_is_dropped(rig: RequesterRig) -> None:
    rig.open(1)
    call = Ask(AnyNode())
    rig.requester.open_call(call, ["a"], deadline=2.0)
    (sent,) = rig.tick()
    rig.tick(2.0)
    assert "a" in call.failed
    rig.answer(sent, answer(a=0))
    assert call.done == {}


def test_what_must_not_end_unknown_waits_for_its_answer(rig: RequesterRig) -> None:
    rig.open(1)
    call = Ask(AnyNode(), waits_for_answer=True)
    rig.requester.open_call(call, ["a"], deadline=2.0)
    (sent,) = rig.tick()
    rig.tick(5.0)
    assert rig.requester.next_deadline() == NEVER, "or the control thread would spin"
    rig.answer(sent, answer(a=0))
    assert call.done == {"a": "stable"}


def test_it_is_not_tried_again_after_the_deadline(rig: RequesterRig) -> None:
    rig.open(1)
    call = Ask(AnyNode(), waits_for_answer=True)
    rig.requester.open_call(call, ["a"], deadline=2.0)
    (sent,) = rig.tick()
    rig.now = 5.0
    rig.answer(sent, answer(a=ErrorCode.REQUEST_TIMED_OUT))
    assert rig.tick(9.0) == []
    assert isinstance(call.failed["a"], KafkaTimeoutError)


# ---- minds that change ----


def test_nothing_is_heard_of_a_call_that_was_cancelled(rig: RequesterRig) -> None:
    rig.open(1)
    call = Ask(AnyNode())
    opened = rig.requester.open_call(call, ["a", "b"], deadline=9.0)
    (sent,) = rig.tick()
    opened.cancel()
    rig.answer(sent, answer(a=0, b=0))
    assert (call.done, call.failed) == ({}, {})
    rig.tick(2.0)
    assert rig.requester.next_deadline() == NEVER


def test_an_item_that_is_asked_about_anew_does_not_take_the_former_answer(
    rig: RequesterRig,
) -> None:
    rig.open(1)
    call = Ask(AnyNode())
    opened = rig.requester.open_call(call, ["a"])
    (former,) = rig.tick()
    opened.add_item("a")
    (sent,) = rig.tick()
    rig.answer(former, answer(a=0))
    assert call.done == {}
    rig.answer(sent, answer(a=0))
    assert call.done == {"a": "stable"}


def test_what_ends_while_an_answer_is_read_is_not_ended_again(rig: RequesterRig) -> None:
    rig.open(1)
    call = Ask(AnyNode())
    opened = rig.requester.open_call(call, ["a", "b"])
    handle = call.handle_done

    def handle_and_cancel(item: Any, value: str, now: float) -> None:
        handle(item, value, now)
        opened.cancel()

    call.handle_done = handle_and_cancel  # type: ignore[method-assign]
    rig.answer(*rig.tick(), answer(a=0, b=0))
    assert call.done == {"a": "stable"}


# ---- beside ----


def test_another_node_is_asked_beside_a_silent_one_and_the_first_answer_counts(
    rig: RequesterRig,
) -> None:
    rig.open(1)
    rig.open(2)
    call = Ask(AnyNode(), beside_after=0.5)
    rig.requester.open_call(call, ["a"])
    (first,) = rig.tick()
    assert rig.requester.next_deadline() == 1.5
    (second,) = rig.tick(1.5)
    assert first.link_id != second.link_id
    rig.answer(second, answer(a=0))
    rig.answer(first, answer(a=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    assert (call.done, call.failed) == ({"a": "stable"}, {})


def test_it_has_failed_only_when_all_that_were_asked_have(rig: RequesterRig) -> None:
    rig.open(1)
    rig.open(2)
    call = Ask(AnyNode(), beside_after=0.5, max_tries=1)
    rig.requester.open_call(call, ["a"])
    (first,) = rig.tick()
    (second,) = rig.tick(1.5)
    rig.lose(first)
    assert call.failed == {}
    rig.lose(second)
    assert "a" in call.failed


# ---- targets ----


def test_items_of_one_leader_go_in_one_request(rig: RequesterRig) -> None:
    rig.open(1)
    rig.open(2)
    partitions = [TopicPartition("t", i) for i in range(4)]
    rig.leaders = {partition: 1 + partition.partition % 2 for partition in partitions}
    call = Ask(Leaders())
    rig.requester.open_call(call, partitions)
    assert [request_of(command).groups for command in rig.tick()] == [
        ["t-0", "t-2"],
        ["t-1", "t-3"],
    ]


def test_items_of_one_leader_are_told_why_they_are_late_by_one_look(
    rig: RequesterRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: a look for each of 100,000 partitions kept the control thread for seconds."""
    partitions = [TopicPartition("t", i) for i in range(100)]
    rig.leaders = {partition: 1 + partition.partition % 2 for partition in partitions}
    looks: list[object] = []
    why_waiting = Leaders.why_waiting

    def counted(target: Leaders, cluster: Any, connections: Any, key: TopicPartition) -> Reason:
        looks.append(key)
        return why_waiting(target, cluster, connections, key)

    monkeypatch.setattr(Leaders, "why_waiting", counted)
    call = Ask(Leaders())
    rig.requester.open_call(call, partitions, deadline=3.0)
    rig.tick()
    rig.tick(3.0)
    assert len(call.failed) == 100
    assert len(looks) == 2


def test_a_leader_that_moved_is_asked_once_the_metadata_name_it(rig: RequesterRig) -> None:
    rig.open(1)
    rig.open(2)
    partition = TopicPartition("t", 0)
    rig.leaders = {partition: 1}
    call = Ask(Leaders())
    opened = rig.requester.open_call(call, [partition])
    (sent,) = rig.tick()
    rig.answer(sent, answer(**{"t-0": ErrorCode.NOT_LEADER_OR_FOLLOWER}))
    assert rig.refreshed == ["t"]
    why = opened.why_waiting(partition)
    assert why is not None
    assert why.text.startswith("its leader answers ")
    assert isinstance(why.cause, NotLeaderOrFollower)
    rig.leaders = {partition: 2}
    (sent,) = rig.tick(2.0)
    assert sent.link_id == 20


def test_a_partition_without_a_leader_is_waited_for(rig: RequesterRig) -> None:
    rig.open(1)
    call = Ask(Leaders())
    rig.requester.open_call(call, [TopicPartition("t", 0)])
    assert rig.tick() == []
    assert rig.refreshed == ["t"]
    assert rig.requester.next_deadline() == NEVER


def test_a_node_without_a_link_is_connected_to(rig: RequesterRig) -> None:
    call = Ask(OneNode(2))
    rig.requester.open_call(call, [ONLY])
    assert rig.tick() == []
    assert rig.wanted == [ConnectionKey(Role.DATA, 2)]
    rig.open(2)
    assert [command.link_id for command in rig.tick()] == [20]


def test_a_slow_call_has_a_connection_that_nobody_else_waits_for(rig: RequesterRig) -> None:
    rig.open(1)
    rig.requester.open_call(Ask(OneNode(1), is_slow=True), ["slow"])
    assert rig.tick() == []
    assert rig.wanted == [ConnectionKey(Role.SLOW, 1)]
    slow = rig.open(1, Role.SLOW)
    (sent,) = rig.tick()
    assert sent.link_id == slow.id
    rig.requester.open_call(Ask(OneNode(1)), ["quick"])
    assert [command.link_id for command in rig.tick()] == [10]


def test_all_nodes_are_asked_each_once(rig: RequesterRig) -> None:
    rig.needs_bootstrap = True
    call = Ask(AllNodes())
    opened = rig.requester.open_call(call)
    assert rig.tick() == []
    assert opened.is_open
    rig.needs_bootstrap = False
    for node in NODES:
        rig.open(node.id)
    sent = rig.tick()
    assert [(command.link_id, request_of(command).groups) for command in sent] == [
        (10, ["1"]),
        (20, ["2"]),
        (30, ["3"]),
    ]
    for request, node in zip(sent, NODES, strict=True):
        rig.answer(request, answer(**{str(node.id): 0}))
    assert call.done == {1: "stable", 2: "stable", 3: "stable"}


def test_a_controller_that_has_moved_is_looked_for(rig: RequesterRig) -> None:
    rig.open(1)
    rig.open(2)
    call = Ask(Controller())
    rig.requester.open_call(call, ["a"])
    assert rig.tick() == []
    assert rig.refreshed == [None]
    rig.controller_id = 1
    (sent,) = rig.tick()
    rig.answer(sent, answer(a=ErrorCode.NOT_CONTROLLER))
    assert rig.refreshed == [None, None]
    rig.controller_id = 2
    assert [command.link_id for command in rig.tick(2.0)] == [20]


# ---- pauses ----


def test_a_node_that_asks_for_a_pause_gets_it_and_another_is_asked(rig: RequesterRig) -> None:
    rig.open(1)
    body = answer(a=0)
    body.throttle_time_ms = 2_000
    rig.requester.open_call(Ask(OneNode(1)), ["a"])
    rig.answer(*rig.tick(), body)
    assert rig.throttled == [(10, 2_000)]
    rig.requester.open_call(Ask(OneNode(1)), ["b"])
    assert rig.tick() == []
    assert rig.requester.next_deadline() == 3.0
    rig.open(2)
    rig.requester.open_call(Ask(AnyNode()), ["c"])
    assert [command.link_id for command in rig.tick()] == [20]
    assert [command.link_id for command in rig.tick(3.0)] == [10]


def test_a_link_whose_fetches_are_throttled_carries_no_call_meanwhile(rig: RequesterRig) -> None:
    """Regression: a broker reads nothing from it, so the call waited, and its time ran."""
    link = rig.open(1)
    rig.pauses[link.key] = 3.0
    rig.requester.open_call(Ask(OneNode(1)), ["a"])
    assert rig.tick() == []
    assert rig.requester.next_deadline() == 3.0
    rig.requester.open_call(Ask(OneNode(1), is_slow=True), ["b"])
    rig.open(1, Role.SLOW)
    assert [command.link_id for command in rig.tick()] == [11], "each connection for itself"
    assert [command.link_id for command in rig.tick(3.0)] == [10]


def test_meanings_that_are_the_usual_ones() -> None:
    assert isinstance(meaning_of(ErrorCode.NOT_COORDINATOR, "x"), FindAgain)
