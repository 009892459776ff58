"""The judge of groups under chaos is judged: what is planted in the journals must be found."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.integration.consumer.group_journal import (
    ASSIGNED,
    LOST,
    REVOKED,
    Commits,
    Life,
    check,
    delivered,
    journal_lines,
    listener_line,
    repetitions,
)

PARTITIONS = 2
RECORDS = 10
LOGS = {
    partition: [b"%d:%d" % (partition, offset) for offset in range(RECORDS)]
    for partition in range(PARTITIONS)
}
ALL_COMMITTED = Commits(99.0, dict.fromkeys(range(PARTITIONS), RECORDS))


class Writer:
    """A member whose journal is written line by line."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name
        self.life = Life(name, self.path)

    def write(self, lines: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(lines)
        self.life.read()

    def hear(self, now: float, kind: str, *partitions: int) -> None:
        self.write(listener_line(kind, partitions, now))

    def do(self, now: float, partition: int, *offsets: int) -> None:
        rows = [(partition, offset, LOGS[partition][offset]) for offset in offsets]
        self.write(journal_lines(rows, now))


@pytest.fixture
def one(tmp_path: Path) -> Writer:
    return Writer(tmp_path, "one")


@pytest.fixture
def two(tmp_path: Path) -> Writer:
    return Writer(tmp_path, "two")


@pytest.fixture
def lives(one: Writer, two: Writer) -> list[Life]:
    """One reads both partitions, and gives the second one to the other half-way."""
    one.hear(1.0, ASSIGNED, 0, 1)
    one.do(2.0, 0, *range(RECORDS))
    one.do(3.0, 1, *range(5))
    one.hear(4.0, REVOKED, 1)
    two.hear(5.0, ASSIGNED, 1)
    two.do(6.0, 1, *range(5, RECORDS))
    return [one.life, two.life]


def verdict(lives: list[Life], *commits: Commits) -> Counter[str]:
    return check(LOGS, lives, [*commits, ALL_COMMITTED])


def test_nothing_is_found_where_nothing_is_wrong(lives: list[Life]) -> None:
    halfway = Commits(3.5, {0: RECORDS, 1: 5})
    assert verdict(lives, Commits(0.5, {}), halfway) == {}
    assert repetitions(lives) == 0
    assert len(delivered(lives)) == RECORDS * PARTITIONS


def test_a_record_that_nobody_was_given(one: Writer) -> None:
    one.hear(1.0, ASSIGNED, 0, 1)
    one.do(2.0, 0, *range(RECORDS))
    one.do(2.0, 1, *range(RECORDS - 2))
    assert check(LOGS, [one.life], [Commits(9.0, {0: RECORDS, 1: RECORDS - 2})]) == {
        "unread": 2,
        "not committed": 1,
    }


def test_a_gap_that_somebody_else_has_filled(lives: list[Life], one: Writer, two: Writer) -> None:
    one.hear(7.0, REVOKED, 0)
    two.hear(8.0, ASSIGNED, 0)
    two.do(8.0, 0, 3, 5)
    assert verdict(lives) == {"skipped": 1}
    assert repetitions(lives) == 2


def test_a_record_that_comes_twice(lives: list[Life], one: Writer) -> None:
    one.do(7.0, 0, RECORDS - 1)
    assert verdict(lives) == {"repeated": 1}


def test_records_of_a_partition_that_was_given_up(lives: list[Life], one: Writer) -> None:
    one.do(7.0, 1, 5, 6)
    assert verdict(lives) == {"not owned": 2}


def test_a_value_that_belongs_elsewhere(lives: list[Life], one: Writer) -> None:
    one.hear(7.0, REVOKED, 0)
    one.hear(7.0, ASSIGNED, 0)
    one.write(journal_lines([(0, 0, LOGS[1][0]), (0, 1, LOGS[0][1])], 7.0))
    assert verdict(lives) == {"garbled": 1}


def test_an_offset_that_the_log_has_not(lives: list[Life], one: Writer) -> None:
    one.write(journal_lines([(0, RECORDS, b"more")], 7.0))
    assert verdict(lives) == {"garbled": 1}


@pytest.mark.parametrize(("now", "committed", "ahead"), [(2.5, 5, 5), (5.5, 6, 1), (5.5, 5, 0)])
def test_a_commit_of_what_is_not_done(
    lives: list[Life], now: float, committed: int, ahead: int
) -> None:
    faults = verdict(lives, Commits(now, {1: committed}))
    assert faults == ({"committed ahead": ahead} if ahead else {})


def test_a_commit_beyond_a_gap(one: Writer) -> None:
    one.hear(1.0, ASSIGNED, 0, 1)
    one.do(2.0, 1, *range(RECORDS))
    one.do(2.0, 0, *range(3))
    one.hear(3.0, REVOKED, 0)
    one.hear(3.0, ASSIGNED, 0)
    one.do(4.0, 0, *range(4, RECORDS))
    assert verdict([one.life]) == {"unread": 1, "committed ahead": RECORDS - 3}


def test_two_owners(lives: list[Life], two: Writer) -> None:
    two.hear(7.0, ASSIGNED, 0)
    assert verdict(lives) == {"two owners": 1}


def test_who_has_lost_a_partition_may_hear_of_it_late(
    lives: list[Life], one: Writer, two: Writer
) -> None:
    two.hear(7.0, ASSIGNED, 0)
    one.hear(8.0, LOST, 0)
    assert verdict(lives) == {}


def test_who_is_killed_owns_nothing_any_more(lives: list[Life], one: Writer, two: Writer) -> None:
    one.life.kill(6.5)
    two.hear(7.0, ASSIGNED, 0)
    assert verdict(lives) == {}


def test_a_killed_member_that_was_not_dead(lives: list[Life], one: Writer, two: Writer) -> None:
    two.hear(7.0, ASSIGNED, 0)
    one.life.kill(7.5)
    assert verdict(lives) == {"two owners": 1}


def test_a_line_that_was_not_finished_does_not_count(lives: list[Life], one: Writer) -> None:
    before = one.life.done
    one.write(b"done 7.0 0 1")
    one.life.read()
    assert one.life.done == before
    assert one.life.owned == {0}
    assert one.life.heard == [ASSIGNED, REVOKED]
