"""The checker of transactions must find what it is there for: each anomaly is planted by hand.

`healthy()` is a story with every way a transaction can end, the logs that fit it, and what readers
and a group have of it. Each test breaks one thing.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.state import Node, Settings
from tests.sim.worlds.transactions.transaction_checker import (
    Attempt,
    Batch,
    GroupPartition,
    Kind,
    Told,
    TopicPartition,
    View,
    Written,
    batches_of,
    check,
)

A, B, IN = ("out", 0), ("out", 1), ("in", 0)
GROUP: GroupPartition = ("g", IN)


@dataclass
class Plot:
    """What the checker is asked about."""

    attempts: list[Attempt]
    logs: dict[TopicPartition, list[Batch]]
    read: dict[TopicPartition, list[bytes]]
    stable: dict[TopicPartition, int]
    offsets: dict[GroupPartition, int]
    recovered: bool = True

    def kinds(self) -> set[Kind]:
        """Return the kinds of what is found."""
        view = View(self.read, self.stable, self.offsets, self.recovered)
        anomalies = check(self.attempts, self.logs, view)
        assert all(str(anomaly).startswith(anomaly.kind.name) for anomaly in anomalies)
        return {anomaly.kind for anomaly in anomalies}


def healthy() -> Plot:
    """One producer: a commit, an abort, a commit without an answer, an end by the next life."""
    attempts = [
        Attempt(
            "first",
            [Written(b"0", A, (IN, 0)), Written(b"1", B, (IN, 1))],
            {GROUP: 2},
            Told.COMMITTED,
        ),
        Attempt("second", [Written(b"2a", A, (IN, 2))], {GROUP: 3}, Told.ABORTED),
        Attempt("third", [Written(b"2", None, (IN, 2))], {GROUP: 3}, Told.UNKNOWN),
        Attempt("fourth", [Written(b"3", B, (IN, 3))], {GROUP: 4}, Told.OPEN),
        Attempt("fifth", [Written(b"4", A)], {}, Told.UNKNOWN),
    ]
    logs = {
        A: [
            Batch(0, 7, 0, (b"0",)),
            Batch(1, 7, 1, commit=True),
            Batch(2, 7, 1, (b"2a",)),
            Batch(3, 7, 2, commit=False),
            Batch(4, 7, 2, (b"2",)),
            Batch(5, 7, 3, commit=True),
        ],
        B: [
            Batch(0, 7, 0, (b"1",)),
            Batch(1, 7, 1, commit=True),
            Batch(2, 7, 3, (b"3",)),
            Batch(3, 7, 4, commit=False),
        ],
    }
    return Plot(attempts, logs, {A: [b"0", b"2"], B: [b"1"]}, {A: 6, B: 4}, {GROUP: 3})


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert healthy().kinds() == set()


def end_otherwise(plot: Plot, partition: TopicPartition, index: int) -> None:
    log = plot.logs[partition]
    log[index] = replace(log[index], commit=not log[index].commit)


def tear(plot: Plot) -> None:
    end_otherwise(plot, B, 1)


def tear_by_absence(plot: Plot) -> None:
    plot.logs[B][0] = replace(plot.logs[B][0], values=())


def lose(plot: Plot) -> None:
    end_otherwise(plot, A, 1)
    end_otherwise(plot, B, 1)
    plot.read[A].remove(b"0")
    plot.read[B].remove(b"1")


def undo(plot: Plot) -> None:
    end_otherwise(plot, A, 3)
    plot.read[A].append(b"2a")


def commit_unasked(plot: Plot) -> None:
    end_otherwise(plot, B, 3)
    plot.read[B].append(b"3")
    plot.offsets[GROUP] = 4


def repeat(plot: Plot) -> None:
    plot.logs[A][4] = replace(plot.logs[A][4], values=(b"2", b"2"))
    plot.logs[A][5] = replace(plot.logs[A][5], base_offset=6)
    plot.stable[A] = 7
    plot.read[A].append(b"2")


def repeat_in_a_later_transaction(plot: Plot) -> None:
    plot.logs[B] += [Batch(4, 8, 0, (b"0",)), Batch(5, 8, 1, commit=True)]
    plot.attempts[0].records[0] = replace(plot.attempts[0].records[0], partition=None)
    plot.stable[B] = 6
    plot.read[B].append(b"0")


def write_a_stranger(plot: Plot) -> None:
    plot.logs[B].append(Batch(4, -1, -1, (b"x",), is_transactional=False))
    plot.stable[B] = 5
    plot.read[B].append(b"x")


def write_elsewhere(plot: Plot) -> None:
    plot.attempts[0].records[1] = replace(plot.attempts[0].records[1], partition=A)


def write_when_fenced(plot: Plot) -> None:
    plot.logs[B] += [Batch(4, 7, 3, (b"4",)), Batch(5, 7, 5, commit=False)]
    plot.attempts[4].records[0] = replace(plot.attempts[4].records[0], partition=B)
    plot.stable[B] = 6


def end_late(plot: Plot) -> None:
    plot.logs[A][3] = replace(plot.logs[A][3], epoch=0)


def read_dirty(plot: Plot) -> None:
    plot.read[A].insert(1, b"2a")


def skip(plot: Plot) -> None:
    plot.read[A].remove(b"0")


def read_again(plot: Plot) -> None:
    plot.read[B].append(b"1")


def leave_open(plot: Plot) -> None:
    del plot.logs[B][3]
    plot.stable[B] = 2


def advance_offsets(plot: Plot) -> None:
    plot.offsets[GROUP] = 4


def forget_offsets(plot: Plot) -> None:
    plot.offsets[GROUP] = 2


def forget_all_offsets(plot: Plot) -> None:
    plot.offsets.clear()


def commit_offsets_alone(plot: Plot) -> None:
    other: GroupPartition = ("h", IN)
    plot.attempts.append(Attempt("sixth", [], {other: 9}, Told.COMMITTED))


def abort_offsets_alone(plot: Plot) -> None:
    other: GroupPartition = ("h", IN)
    plot.attempts.append(Attempt("sixth", [], {other: 9}, Told.ABORTED))
    plot.offsets[other] = 9


OFFSETS_BEHIND = {Kind.RECORDS_AHEAD, Kind.OFFSETS_LOST}


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (tear, {Kind.TORN, Kind.LOST, Kind.DIRTY_READ, Kind.OFFSETS_AHEAD}),
        (tear_by_absence, {Kind.TORN, Kind.LOST, Kind.DIRTY_READ, Kind.OFFSETS_AHEAD}),
        (lose, {Kind.LOST, Kind.OFFSETS_AHEAD}),
        (undo, {Kind.UNDONE}),
        (commit_unasked, {Kind.UNASKED}),
        (repeat, {Kind.DUPLICATE}),
        (repeat_in_a_later_transaction, {Kind.DUPLICATE}),
        (write_a_stranger, {Kind.FOREIGN}),
        (write_elsewhere, {Kind.FOREIGN}),
        (write_when_fenced, {Kind.FENCED_WROTE}),
        (end_late, {Kind.LATE_END, Kind.FENCED_WROTE}),
        (read_dirty, {Kind.DIRTY_READ}),
        (skip, {Kind.UNREAD}),
        (read_again, {Kind.REREAD}),
        (leave_open, {Kind.STUCK_LSO}),
        (advance_offsets, {Kind.OFFSETS_AHEAD, Kind.OFFSETS_UNASKED}),
        (forget_offsets, OFFSETS_BEHIND),
        (forget_all_offsets, OFFSETS_BEHIND),
        (commit_offsets_alone, {Kind.OFFSETS_LOST}),
        (abort_offsets_alone, {Kind.OFFSETS_UNASKED}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_planted_is_found(plant: Callable[[Plot], None], expected: set[Kind]) -> None:
    plot = healthy()
    plant(plot)
    assert plot.kinds() == expected


def test_every_kind_is_planted() -> None:
    marks = test_what_is_planted_is_found.pytestmark  # type: ignore[attr-defined]
    planted = {kind for _, kinds in marks[0].args[1] for kind in kinds}
    assert planted == set(Kind)


def test_what_is_allowed() -> None:
    plot = healthy()
    end_otherwise(plot, A, 5)  # nobody knows how the third one ends
    plot.read[A].remove(b"2")
    plot.offsets[GROUP] = 2
    assert plot.kinds() == set()
    plot = healthy()
    plot.attempts.append(Attempt("sixth", [], {("h", IN): 9}, Told.UNKNOWN))
    for offset in (0, 9):
        plot.offsets["h", IN] = offset
        assert plot.kinds() == set()
    plot = healthy()
    leave_open(plot)
    plot.recovered = False  # and what follows is not stable yet
    plot.logs[B].append(Batch(3, -1, -1, (b"5",), is_transactional=False))
    plot.attempts.append(Attempt("plain", [Written(b"5")], {}, Told.UNKNOWN))
    assert plot.kinds() == set()


def test_a_log_of_the_embedded_broker_is_read() -> None:
    cluster = Cluster([Node(1, "127.0.0.1", 9092)], Settings(), random.Random(1))
    cluster.create_topic("out", 1)
    cluster.plant_transaction("out", 0, 7, [b"0", b"1"], commit=True)
    cluster.plant_transaction("out", 0, 8, [b"2"], commit=False)
    assert batches_of(cluster.batches("out", 0)) == [
        Batch(0, 7, 0, (b"0", b"1")),
        Batch(2, 7, 0, (), True),
        Batch(3, 8, 0, (b"2",)),
        Batch(4, 8, 0, (), False),
    ]
