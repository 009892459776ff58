"""The ledger of a group: each promise broken once, and none where all is well."""

from __future__ import annotations

import pytest

from kafka_fast.types import TopicPartition
from tests.sim.worlds.groups.group_checker import Ledger, Reader, Wrong

A = TopicPartition("t", 0)


def ledger(offsets: range | list[int] = range(5), **resets: bool) -> Ledger:
    """Return a ledger of one partition with records at these offsets."""
    made = Ledger(**resets)
    made.add_partition(A)
    for offset in offsets:
        made.append(A, offset, b"%d" % offset)
    return made


def reader(book: Ledger, name: str = "r", *, is_member: bool = True) -> Reader:
    """Return a reader that owns the partition."""
    made = book.begin(name, lambda: is_member)
    book.assign(made, [A])
    return made


def read(book: Ledger, who: Reader, *offsets: int) -> None:
    for offset in offsets:
        book.hand_over(who, A, offset, b"%d" % offset)


def kinds(book: Ledger) -> list[Wrong]:
    return [fault.kind for fault in book.faults]


def test_a_group_without_fault() -> None:
    book = ledger([0, 1, 4, 5])
    first = reader(book)
    read(book, first, 0, 1)
    book.do(first)
    mark = book.mark(first)
    book.commit(A, 4)  # behind the gap
    book.confirm(first, {A: 4}, mark)
    book.revoke(first, [A])
    second = reader(book, "s")
    read(book, second, 4, 5)
    book.do(second, {A: 5})
    book.commit(A, 5)
    book.do(second)
    book.commit(A, 6)
    assert book.is_read
    assert book.is_balanced
    book.check_read()
    book.check_committed()
    assert kinds(book) == []


def test_records_that_are_left_out_or_come_twice() -> None:
    book = ledger()
    who = reader(book)
    read(book, who, 0, 2, 2)
    assert kinds(book) == [Wrong.SKIPPED, Wrong.REPEATED]
    assert not book.is_read
    book.check_read()
    assert kinds(book).count(Wrong.UNREAD) == 3


def test_a_seek_allows_to_read_again_from_there_only() -> None:
    book = ledger()
    who = reader(book)
    read(book, who, 0, 1, 2)
    book.seek(who, A, 1)
    read(book, who, 1, 2)
    assert kinds(book) == []
    book.seek(who, A, 0)
    read(book, who, 2)
    assert kinds(book) == [Wrong.FALSE_START]


def test_a_seek_in_a_topic_that_is_gone_may_be_reset() -> None:
    """By a client that hears of it later; any other one goes where it was told."""
    for is_behind, faults in ((True, []), (False, [Wrong.FALSE_START])):
        book = ledger()
        who = book.begin("r", lambda: True, is_behind=lambda _, is_behind=is_behind: is_behind)
        book.assign(who, [A])
        book.seek(who, A, 3)
        read(book, who, 0)
        assert kinds(book) == faults


def test_reading_begins_at_the_groups_offset() -> None:
    book = ledger()
    first = reader(book)
    read(book, first, 0, 1, 2)
    book.do(first)
    book.commit(A, 3)
    book.revoke(first, [A])
    read(book, reader(book, "s"), 0)
    assert kinds(book) == [Wrong.FALSE_START]


def test_what_is_committed_must_be_done() -> None:
    book = ledger()
    who = reader(book)
    read(book, who, 0, 1)
    book.commit(A, 1)
    book.do(who)
    book.commit(A, 2)
    assert kinds(book) == [Wrong.COMMIT_AHEAD]


def test_a_confirmed_commit_must_have_been_stored_since() -> None:
    book = ledger()
    who = reader(book)
    read(book, who, 0)
    book.do(who)
    book.commit(A, 1)
    book.confirm(who, {A: 1}, book.mark(who))
    assert kinds(book) == [Wrong.COMMIT_LOST]


@pytest.mark.parametrize("late_first", [True, False])
def test_an_owner_of_a_topic_that_is_gone_is_beside_the_new_ones(late_first: bool) -> None:
    """An assignment may be on its way when its topic is deleted, and be taken after that."""
    for is_behind, faults in ((True, []), (False, [Wrong.DOUBLE_OWNER])):
        book = ledger()
        book.recreate(A)
        late = book.begin("late", lambda: True, is_behind=lambda _, is_behind=is_behind: is_behind)
        owner = book.begin("owner", lambda: True)
        for who in (late, owner) if late_first else (owner, late):
            book.assign(who, [A])
        assert kinds(book) == faults


def test_a_commit_for_a_topic_that_is_gone_went_with_it() -> None:
    book = ledger()
    behind = {A}
    who = book.begin("r", lambda: True, is_behind=lambda partition: partition in behind)
    book.assign(who, [A])
    read(book, who, 0)
    book.do(who)
    book.recreate(A)
    late = book.mark(who)
    behind.clear()
    book.confirm(who, {A: 1}, late)
    assert kinds(book) == []
    book.append(A, 0, b"0")
    read(book, who, 0)
    book.do(who)
    book.confirm(who, {A: 1}, late)
    assert kinds(book) == []
    book.confirm(who, {A: 1}, book.mark(who))
    assert kinds(book) == [Wrong.COMMIT_LOST]


def test_only_members_can_own_at_the_same_time() -> None:
    book = ledger()
    reader(book, "expired", is_member=False)
    reader(book, "one")
    assert kinds(book) == []
    assert not book.is_balanced
    reader(book, "two")
    assert kinds(book) == [Wrong.DOUBLE_OWNER]


def test_what_is_not_owned_or_paused_is_not_handed_over() -> None:
    book = ledger()
    who = reader(book)
    book.pause(who, A, paused=True)
    read(book, who, 0)
    book.pause(who, A, paused=False)
    read(book, who, 1)
    book.revoke(who, [A])
    read(book, who, 2)
    book.hand_over(who, A, 3, b"another value")
    assert kinds(book) == [Wrong.PAUSED, Wrong.NOT_OWNED, Wrong.GARBLED]


def test_who_knows_that_it_is_no_member_hands_nothing_over() -> None:
    book = ledger()
    who = book.begin("r", lambda: False, lambda: True)
    book.assign(who, [A])
    read(book, who, 0)
    assert kinds(book) == [Wrong.OUSTED]


def test_who_leaves_has_heard_of_everything_and_committed_it() -> None:
    book = ledger()
    who = reader(book)
    read(book, who, 0, 1, 2, 3, 4)
    book.leave(who)
    book.end(who)
    book.check_committed()
    assert kinds(book) == [Wrong.UNTOLD, Wrong.UNCOMMITTED]


def test_what_retention_has_deleted_need_not_be_read() -> None:
    book = ledger()
    who = reader(book)
    read(book, who, 0)
    book.delete(A, 3)
    read(book, who, 3, 4)
    book.do(who)
    book.commit(A, 5)
    book.check_read()
    book.check_committed()
    assert kinds(book) == []


def test_what_retention_has_left_must_be_read() -> None:
    book = ledger()
    who = reader(book)
    read(book, who, 0)
    book.delete(A, 3)
    read(book, who, 4)
    assert kinds(book) == [Wrong.SKIPPED]
    book.check_read()
    assert kinds(book)[1:] == [Wrong.UNREAD]


def test_a_deletion_behind_the_reader_allows_nothing() -> None:
    for jumps in (False, True):
        book = ledger(resets_jump=jumps)
        book.tell(A, 0)
        who = reader(book)
        read(book, who, 0, 1)
        book.delete(A, 2)
        book.tell(A, 4)
        read(book, who, 4)
        assert kinds(book) == [Wrong.SKIPPED]


def test_a_reset_may_jump_to_where_a_broker_says() -> None:
    book = ledger(resets_jump=True)
    book.tell(A, 1)
    who = reader(book)
    read(book, who, 1)
    book.do(who)
    book.commit(A, 2)
    book.delete(A, 3)
    book.tell(A, 5)
    book.append(A, 5, b"5")
    read(book, who, 5)
    book.do(who)
    book.commit(A, 6)
    book.check_read()
    book.check_committed()
    assert kinds(book) == []


def test_a_reset_may_jump_nowhere_else() -> None:
    book = ledger(resets_jump=True)
    book.tell(A, 0)
    who = reader(book)
    read(book, who, 0)
    book.delete(A, 2)
    book.tell(A, 3)
    read(book, who, 4)
    assert kinds(book) == [Wrong.SKIPPED]
    read(book, reader(book, "s", is_member=False), 2)
    assert kinds(book)[1:] == [Wrong.FALSE_START]


def commit_beside_the_owner(*, before_it_was_assigned: bool) -> list[Wrong]:
    """Let the former topic's owner commit for the new one; the new one's then jumps to offset 2."""
    book = ledger(range(0), resets_jump=True)
    reader(book, "former")
    book.recreate(A)
    if before_it_was_assigned:
        book.commit(A, 0)
    owner = reader(book, "owner")
    if not before_it_was_assigned:
        book.commit(A, 0)
    for offset in range(3):
        book.append(A, offset, b"%d" % offset)
    book.tell(A, 2)
    read(book, owner, 2)
    book.do(owner)
    book.commit(A, 3)
    return kinds(book)


def test_a_commit_that_came_after_the_owner_had_asked_binds_nobody() -> None:
    assert commit_beside_the_owner(before_it_was_assigned=False) == []
    assert commit_beside_the_owner(before_it_was_assigned=True) == [
        Wrong.FALSE_START,
        Wrong.COMMIT_AHEAD,
    ]


def test_who_has_to_say_where_to_go_on_is_moved_by_nobody_else() -> None:
    book = ledger(resets_fail=True)
    who = reader(book)
    read(book, who, 0)
    assert kinds(book) == [Wrong.FALSE_START]
    book.seek(who, A, 0)
    read(book, who, 0)
    book.delete(A, 3)
    read(book, who, 3)
    assert kinds(book)[1:] == [Wrong.SKIPPED]
