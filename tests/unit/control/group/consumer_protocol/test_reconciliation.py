"""From what a member owns to what it shall own, step by step."""

from __future__ import annotations

from kafka_fast.control.group.consumer_protocol.reconciliation import Ids, Reconciliation
from kafka_fast.control.group.consumer_protocol.topic_names import TopicNames
from kafka_fast.control.group.member import AssignWanted, RevokeWanted
from kafka_fast.types import TopicPartition

A, B, NEW_A = b"a" * 16, b"b" * 16, b"n" * 16


class Names(TopicNames):
    """Names that are known or not, without anybody to ask."""

    def __init__(self) -> None:
        self.known = {A: "a", B: "b", NEW_A: "a"}
        self.wanted: frozenset[bytes] = frozenset()

    def name(self, topic_id: bytes) -> str | None:
        return self.known.get(topic_id)

    def want_names(self, topic_ids: object) -> None:
        self.wanted = frozenset(topic_ids)  # type: ignore[call-overload]

    def forget_others(self, topic_ids: object) -> None:
        pass


def ids(topic_id: bytes, *partitions: int) -> Ids:
    return frozenset((topic_id, partition) for partition in partitions)


def names(topic: str, *partitions: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, partition) for partition in partitions)


def carry_out(reconciliation: Reconciliation) -> list[RevokeWanted | AssignWanted]:
    """Do what is to be done, as a user who polls would."""
    steps = reconciliation.step(7)
    for step in steps:
        if isinstance(step, RevokeWanted):
            reconciliation.handle_revoked()
        else:
            reconciliation.handle_assigned()
    return steps


def member(*owned: int) -> tuple[Reconciliation, Names]:
    topic_names = Names()
    reconciliation = Reconciliation(topic_names, lambda: 0)
    reconciliation.reset_target()
    reconciliation.aim(ids(A, *owned))
    carry_out(reconciliation)
    return reconciliation, topic_names


def test_the_first_assignment_is_told_also_if_it_is_empty() -> None:
    reconciliation = Reconciliation(Names(), lambda: 0)
    reconciliation.reset_target()
    assert reconciliation.step(1) == []
    reconciliation.aim(frozenset())
    (step,) = carry_out(reconciliation)
    assert isinstance(step, AssignWanted)
    assert not step.partitions
    reconciliation.aim(frozenset())
    assert carry_out(reconciliation) == []


def test_what_goes_goes_first() -> None:
    reconciliation, _ = member(0, 1)
    reconciliation.aim(ids(A, 1, 2))
    revoke, assign = carry_out(reconciliation)
    assert isinstance(revoke, RevokeWanted)
    assert revoke.partitions == names("a", 0)
    assert not revoke.lost
    assert isinstance(assign, AssignWanted)
    assert assign.partitions == names("a", 1, 2)
    assert assign.generation == 7
    assert reconciliation.owned == reconciliation.held == ids(A, 1, 2)


def test_a_new_target_waits_until_the_last_step_is_done() -> None:
    reconciliation, _ = member(0, 1)
    reconciliation.aim(ids(A, 1, 2))
    assert len(reconciliation.step(7)) == 2
    reconciliation.aim(ids(A, 3))
    assert reconciliation.step(8) == []
    reconciliation.handle_revoked()
    assert reconciliation.owned == ids(A, 1)
    assert reconciliation.held == ids(A, 1, 2)  # 2 was promised: it is not free
    reconciliation.handle_assigned()
    carry_out(reconciliation)
    assert reconciliation.owned == ids(A, 3)


def test_a_topic_without_a_name_comes_later() -> None:
    reconciliation, topic_names = member(0)
    topic_names.known.pop(B)
    reconciliation.aim(ids(A, 0) | ids(B, 0))
    assert carry_out(reconciliation) == []
    assert topic_names.wanted == {B}
    topic_names.known[B] = "b"
    (step,) = carry_out(reconciliation)
    assert step.partitions == names("a", 0) | names("b", 0)
    assert topic_names.wanted == frozenset()


def test_a_first_assignment_of_which_nothing_has_a_name_is_told_once_it_has() -> None:
    topic_names = Names()
    topic_names.known.clear()
    reconciliation = Reconciliation(topic_names, lambda: 0)
    reconciliation.reset_target()
    reconciliation.aim(ids(A, 0, 1))
    assert carry_out(reconciliation) == []
    topic_names.known[A] = "a"
    (step,) = carry_out(reconciliation)
    assert step.partitions == names("a", 0, 1)


def test_a_topic_that_was_made_anew_is_given_up_and_taken() -> None:
    reconciliation, _ = member(0, 1)
    reconciliation.aim(ids(NEW_A, 0))
    revoke, assign = carry_out(reconciliation)
    assert revoke.partitions == names("a", 0, 1)
    assert assign.partitions == names("a", 0)
    assert reconciliation.owned == ids(NEW_A, 0)


def test_what_is_lost_includes_what_was_promised() -> None:
    reconciliation, _ = member(0)
    reconciliation.aim(ids(A, 0, 1))
    reconciliation.step(7)
    lost = reconciliation.lose("fenced")
    assert lost is not None
    assert lost.lost
    assert lost.partitions == names("a", 0, 1)
    assert reconciliation.is_busy
    reconciliation.handle_assigned()
    assert reconciliation.owned == ids(A, 0, 1)
    reconciliation.handle_revoked()
    assert reconciliation.owned == frozenset()
    assert not reconciliation.is_busy
    assert reconciliation.lose("again") is None


def test_answers_that_nobody_asked_for_change_nothing() -> None:
    reconciliation, _ = member(0)
    reconciliation.handle_revoked()
    reconciliation.handle_assigned()
    assert reconciliation.owned == ids(A, 0)
    reconciliation.forget_all()
    assert reconciliation.owned == reconciliation.held == frozenset()
    assert reconciliation.step(8) == []
