"""What a classic member owns while its user's thread takes its time."""

from __future__ import annotations

from kafka_fast.control.group.classic.ownership import Ownership
from kafka_fast.control.group.member import AssignWanted, GroupNews, MemberFailed, RevokeWanted
from kafka_fast.errors import KafkaError
from kafka_fast.types import TopicPartition

A, B, C = (frozenset({TopicPartition("t", number)}) for number in range(3))


def news_of(ownership: Ownership) -> list[GroupNews]:
    return list(iter(ownership.poll_news, None))


def owning(partitions: frozenset[TopicPartition]) -> Ownership:
    ownership = Ownership(lambda: 0)
    ownership.assign(partitions, 1)
    ownership.handle_assigned()
    news_of(ownership)
    return ownership


def test_what_was_assigned_is_owned_once_the_user_reads_it() -> None:
    ownership = Ownership(lambda: 0)
    assert ownership.assign(A, 1) == frozenset()
    assert news_of(ownership) == [AssignWanted(A, 1, "generation 1", 0)]
    assert ownership.is_busy
    assert not ownership.owned
    ownership.handle_assigned()
    assert not ownership.is_busy
    assert ownership.owned == A


def test_what_moved_is_given_up_before_the_rest_is_taken() -> None:
    ownership = owning(A | B)
    assert ownership.assign(B | C, 2) == A
    reason = "generation 2"
    assert news_of(ownership) == [
        RevokeWanted(A, False, reason, 0),
        AssignWanted(B | C, 2, reason, 0),
    ]
    ownership.handle_revoked(A)
    assert ownership.owned == B
    assert ownership.is_busy
    ownership.handle_assigned()
    assert ownership.owned == B | C
    assert not ownership.is_busy


def test_what_was_promised_is_lost_as_well() -> None:
    ownership = owning(A)
    ownership.assign(A | B, 2)
    news_of(ownership)
    ownership.lose("fenced")
    assert news_of(ownership) == [RevokeWanted(A | B, True, "fenced", 0)]
    ownership.handle_assigned()
    assert not ownership.owned, "what the user was told to read is others' already"
    ownership.handle_revoked(A | B)
    assert not ownership.is_busy


def test_nothing_can_be_lost_or_given_up_by_who_has_nothing() -> None:
    ownership = Ownership(lambda: 0)
    ownership.lose("fenced")
    ownership.give_up_all("a rebalance")
    assert news_of(ownership) == []
    assert not ownership.is_busy


def test_a_failure_comes_after_what_is_lost_by_it() -> None:
    ownership = owning(A)
    error = KafkaError("no")
    ownership.lose_all(error)
    assert news_of(ownership) == [RevokeWanted(A, True, "no", 0), MemberFailed(error)]


def test_after_leaving_nobody_answers() -> None:
    ownership = owning(A)
    ownership.give_up_all("a rebalance")
    ownership.forget_all()
    assert news_of(ownership) == []
    assert not ownership.is_busy
    assert not ownership.owned
