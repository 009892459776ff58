"""What the members of a group wrote down, and the verdict on it.

    member ── journal (a file of its own) ─┐
    member ── journal ─────────────────────┼─► check ─► what is wrong, by kind of wrong
    log, as librdkafka reads it ───────────┤
    committed offsets, asked again and again ┘

A journal has one line for each record that its member was handed and is done with, written before
the member comes back for more, and one for whatever its listener heard. Times are those of the
machine's one monotonic clock, so that lines of different processes compare. What a member wrote
before it was killed stays; a line it did not finish does not count.

Knows no client; is itself tested with planted anomalies.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Log = Sequence[bytes]
"""The values of a partition, by offset."""

ASSIGNED, REVOKED, LOST, DONE = "assigned", "revoked", "lost", "done"
KILLED = "killed"


def journal_lines(records: Iterable[tuple[int, int, bytes]], now: float) -> bytes:
    """Return the lines of records that are done: partition, offset, value without white space."""
    return b"".join(
        b"%s %r %d %d %s\n" % (DONE.encode(), now, partition, offset, value)
        for partition, offset, value in records
    )


def listener_line(kind: str, partitions: Iterable[int], now: float) -> bytes:
    """Return the line of a call of the listener."""
    return " ".join([kind, repr(now), *map(str, sorted(partitions))]).encode() + b"\n"


@dataclass(slots=True, eq=False)
class Tenure:
    """A partition in the hands of one member, from an assignment on."""

    member: str
    partition: int
    begin: float
    end: float = math.inf
    ending: str = ""
    """REVOKED, LOST or KILLED; empty while it goes on."""
    done: list[tuple[float, int, bytes]] = field(default_factory=list)
    """Time, offset and value of each record."""


class Life:
    """One process that is a member, as its journal tells."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.tenures: list[Tenure] = []
        self.not_owned: list[tuple[int, int]] = []
        """Partition and offset of records that it was given without owning the partition."""
        self.heard: list[str] = []
        """What the listener was called for, in order."""
        self._path = path
        self._pos = 0
        self._open: dict[int, Tenure] = {}

    @property
    def owned(self) -> set[int]:
        """The partitions that it has now."""
        return set(self._open)

    @property
    def done(self) -> int:
        """How many records it is done with."""
        return sum(len(tenure.done) for tenure in self.tenures)

    def read(self) -> None:
        """Take in what was written since the last call."""
        if not self._path.exists():
            return
        with self._path.open("rb") as journal:
            journal.seek(self._pos)
            written = journal.read()
        whole = written[: written.rfind(b"\n") + 1]
        self._pos += len(whole)
        for line in whole.splitlines():
            self._take(line.split())

    def kill(self, now: float) -> None:
        """It was killed, and says nothing more."""
        self.read()
        self._close(list(self._open), now, KILLED)

    def _take(self, words: list[bytes]) -> None:
        kind, now = words[0].decode(), float(words[1])
        if kind == DONE:
            partition, offset = int(words[2]), int(words[3])
            tenure = self._open.get(partition)
            if tenure is None:
                self.not_owned.append((partition, offset))
            else:
                tenure.done.append((now, offset, words[4]))
            return
        self.heard.append(kind)
        partitions = [int(word) for word in words[2:]]
        if kind == ASSIGNED:
            for partition in partitions:
                self._open[partition] = Tenure(self.name, partition, now)
                self.tenures.append(self._open[partition])
        else:
            self._close(partitions, now, kind)

    def _close(self, partitions: Iterable[int], now: float, ending: str) -> None:
        for partition in partitions:
            tenure = self._open.pop(partition)
            tenure.end, tenure.ending = now, ending


@dataclass(frozen=True, slots=True)
class Commits:
    """The group's offsets as somebody else was told of them, at some time before `now`."""

    now: float
    offsets: Mapping[int, int]


def delivered(lives: Iterable[Life]) -> set[tuple[int, int]]:
    """Return partition and offset of everything that somebody is done with."""
    return {
        (tenure.partition, offset)
        for life in lives
        for tenure in life.tenures
        for _, offset, _ in tenure.done
    }


def repetitions(lives: Sequence[Life]) -> int:
    """Return how many records were done again, which is what at least once allows."""
    return sum(life.done for life in lives) - len(delivered(lives))


def check(
    logs: Mapping[int, Log], lives: Sequence[Life], commits: Sequence[Commits]
) -> Counter[str]:
    """Return how much is wrong, by kind of wrong; the last of the commits are the final ones."""
    faults: Counter[str] = Counter()
    faults["not owned"] = sum(len(life.not_owned) for life in lives)
    tenures = [tenure for life in lives for tenure in life.tenures]
    for tenure in tenures:
        _check_tenure(tenure, logs[tenure.partition], faults)
    for partition, log in logs.items():
        own = sorted(
            (tenure for tenure in tenures if tenure.partition == partition),
            key=lambda tenure: tenure.begin,
        )
        _check_owners(own, faults)
        _check_offsets(partition, log, own, commits, faults)
    return +faults


def _check_tenure(tenure: Tenure, log: Log, faults: Counter[str]) -> None:
    """Who owns a partition is given its records one after the other, as they are in the log."""
    before: int | None = None
    for _, offset, value in tenure.done:
        if offset >= len(log) or log[offset] != value:
            faults["garbled"] += 1
        if before is not None and offset > before + 1:
            faults["skipped"] += offset - before - 1
        elif before is not None and offset <= before:
            faults["repeated"] += 1
        before = offset


def _check_owners(tenures: Sequence[Tenure], faults: Counter[str]) -> None:
    """At most one member has a partition; only who has lost it hears of that too late."""
    held_until = -math.inf
    for tenure in tenures:
        if tenure.begin < held_until:
            faults["two owners"] += 1
        if tenure.ending != LOST:
            held_until = max(held_until, tenure.end)


def _check_offsets(
    partition: int,
    log: Log,
    tenures: Iterable[Tenure],
    commits: Sequence[Commits],
    faults: Counter[str],
) -> None:
    """All is read, and nothing is committed before all that comes before it is done."""
    first_done = [math.inf] * len(log)
    for tenure in tenures:
        for now, offset, _ in tenure.done:
            if offset < len(log):
                first_done[offset] = min(first_done[offset], now)
    faults["unread"] += sum(time == math.inf for time in first_done)
    # The time from which on a commit may name the offset behind each record.
    frontier = list(first_done)
    for offset in range(1, len(frontier)):
        frontier[offset] = max(frontier[offset], frontier[offset - 1])
    for sample in commits:
        committed = sample.offsets.get(partition, 0)
        done = bisect.bisect_right(frontier, sample.now)
        faults["committed ahead"] += max(0, committed - done)
    if commits and commits[-1].offsets.get(partition, 0) < len(log):
        faults["not committed"] += 1
