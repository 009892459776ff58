"""Says what is wrong with a consumer group, while it reads and at the end.

    appended ─┐                                   ┌─► anomalies, none if all promises were kept
    users ────┼─► Ledger ── looks at every step ──┤
    broker ───┘   (assigned, handed over, done,   └─► what nobody has read yet
                   revoked, committed)

A *reader* is one life of one consumer. A record is *done* once its reader has come back for more,
or has named it in a commit; nothing that is not done may be committed by whoever reads the
partition. A record is *excused* when nobody has to read it: retention has deleted it, or a position
was reset past it, as auto.offset.reset=latest does. Knows nothing of clients and brokers, and is
itself tested with planted anomalies.
"""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kafka_fast.types import TopicPartition

Partitions = Iterable[TopicPartition]
Mark = Mapping[TopicPartition, tuple["Log", int]]
"""Of each partition: its log, and how many commits it had seen."""


class Wrong(enum.Enum):
    """What can go wrong."""

    DOUBLE_OWNER = "two members of the group own a partition at the same time"
    NOT_OWNED = "handed over by a member that does not own the partition"
    OUSTED = "handed over by a client that knew that it is no member any more"
    PAUSED = "handed over although the partition is paused"
    UNTOLD = "left the group, and the listener did not hear that the partition is given up"
    SKIPPED = "handed over, and a record before it was not"
    REPEATED = "handed over again, though nobody asked for that"
    FALSE_START = "reading began elsewhere than where the group's offset was"
    GARBLED = "handed over with another value than the log has there"
    COMMIT_AHEAD = "committed, and records before that were not done"
    COMMIT_LOST = "a commit that was confirmed is not what the group's offset is"
    UNREAD = "in the log, and handed over to nobody"
    UNCOMMITTED = "the last member left without committing what it had done"
    EXPELLED = "a member that was none any more although its user polled often enough"
    STUCK = "a member, or the group, made no progress although nothing was broken any more"
    MISJUDGED = "said to be fetched although it is not, or held up although it is fetched"
    BUSY = "a client turned more often than there was work"
    LOGIN = "a request was written against the rules of logins"
    CRASHED = "a call failed as no call may"


@dataclass(frozen=True, slots=True)
class Fault:
    """One broken promise."""

    kind: Wrong
    detail: str

    def __str__(self) -> str:
        """Return both in one line."""
        return f"{self.kind.name}: {self.detail} ({self.kind.value})"


@dataclass(slots=True, eq=False)
class Reader:
    """One life of one consumer, as its user knows it."""

    name: str
    is_member: Callable[[], bool]
    """Whether the coordinator counts it among the members of the group."""
    is_ousted: Callable[[], bool]
    """Whether the client knows that it is no member any more."""
    is_behind: Callable[[TopicPartition], bool]
    """Whether the client takes a partition for that of a topic that is gone."""
    owned: dict[TopicPartition, Reading] = field(default_factory=dict)
    not_done: list[tuple[TopicPartition, int]] = field(default_factory=list)
    """Handed over, and not done."""


@dataclass(slots=True)
class Reading:
    """A partition in the hands of one reader."""

    commits_before: int
    """How many commits the group had stored when the partition was assigned."""
    position: int | None = None
    """The offset behind the last record; None: nothing was handed over since the last start."""
    sought: int | None = None
    """The offset that the user moved to."""
    sought_blindly: bool = False
    """In a topic that was gone by then, which the client had not heard of."""
    is_paused: bool = False
    is_former: bool = False
    """Of a topic that was deleted; the one that was made anew may be another's."""


@dataclass(slots=True)
class Log:
    """A partition as its writer and the group's offset describe it."""

    offsets: list[int] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    handed_over: list[bool] = field(default_factory=list)
    done: list[bool] = field(default_factory=list)
    excused: list[bool] = field(default_factory=list)
    first_not_done: int = 0
    """Place in the log, not an offset; what is excused counts as done."""
    start: int = 0
    """The offset before which retention has deleted everything."""
    former: list[Log] = field(default_factory=list)
    """Of topics of this name that were deleted: who has their records may hand them over."""
    told: list[int] = field(default_factory=list)
    """Offsets that brokers have answered to who asked where to begin."""
    commits: list[int] = field(default_factory=list)
    """Every offset that the group has stored, in order."""

    def place(self, offset: int) -> int:
        """Return where the first record at or behind an offset is."""
        return bisect_left(self.offsets, offset)

    def holds(self, offset: int, value: bytes) -> bool:
        """Tell whether this is one of the log's records."""
        place = self.place(offset)
        is_there = place < len(self.offsets) and self.offsets[place] == offset
        return is_there and self.values[place] == value

    def excuse(self, offset: int) -> None:
        """Nobody has to read what is before an offset."""
        place = self.place(offset)
        self.excused[:place] = [True] * place
        self.find_first_not_done()

    def find_first_not_done(self) -> None:
        """Look further for the first record that is not done."""
        while self.first_not_done < len(self.done) and (
            self.done[self.first_not_done] or self.excused[self.first_not_done]
        ):
            self.first_not_done += 1


class Ledger:
    """All that happens to one group."""

    def __init__(self, *, resets_jump: bool = False, resets_fail: bool = False) -> None:
        """Store what happens to a reader without a valid position.

        Args:
            resets_jump: who has no valid position goes on where brokers tell, whatever is before
                that; else at the beginning of the log.
            resets_fail: who has none is told so, and has to move.
        """
        self._resets_jump = resets_jump
        self._resets_fail = resets_fail
        self.logs: dict[TopicPartition, Log] = {}
        self.faults: list[Fault] = []
        self._readers: list[Reader] = []

    # ---- getters ----

    @property
    def readers(self) -> list[Reader]:
        """Those that are not gone."""
        return list(self._readers)

    @property
    def is_balanced(self) -> bool:
        """Whether every partition is owned, by one reader."""
        owned = [partition for reader in self._readers for partition in reader.owned]
        return sorted(owned) == sorted(self.logs)

    @property
    def unread(self) -> list[str]:
        """What nobody has been given, as text."""
        return [
            f"{partition} at {log.offsets[place]}"
            for partition, log in self.logs.items()
            for place, was in enumerate(log.handed_over)
            if not was and not log.excused[place]
        ]

    @property
    def is_read(self) -> bool:
        """Whether every record was handed over at least once, or is excused."""
        return not self.unread

    # ---- the log ----

    def add_partition(self, partition: TopicPartition) -> None:
        """A partition has come into being."""
        self.logs.setdefault(partition, Log())

    def append(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        """A record was written."""
        log = self.logs[partition]
        log.offsets.append(offset)
        log.values.append(value)
        log.handed_over.append(False)
        log.done.append(False)
        log.excused.append(False)

    def delete(self, partition: TopicPartition, before: int) -> None:
        """Retention deletes what is before an offset; who has it already may still hand it over."""
        log = self.logs[partition]
        log.start = max(log.start, before)
        log.excuse(log.start)

    def recreate(self, partition: TopicPartition) -> None:
        """The topic was deleted and made anew: nothing of the old one holds, all is to be read."""
        old = self.logs[partition]
        self.logs[partition] = Log(former=[*old.former, old])
        for reader in self._readers:
            reader.not_done = [record for record in reader.not_done if record[0] != partition]
            reading = reader.owned.get(partition)
            if reading is not None:
                reading.commits_before = 0
                reading.position = reading.sought = None
                reading.is_former = True

    def tell(self, partition: TopicPartition, offset: int) -> None:
        """A broker says where to begin: a reader without a valid position may go on there."""
        log = self.logs[partition]
        log.told.append(offset)
        if not self._resets_jump:
            return
        positions = [log.commits[-1]] if log.commits else []
        owned = [reader.owned.get(partition) for reader in self._readers]
        readings = [reading for reading in owned if reading is not None]
        positions += [reading.position for reading in readings if reading.position is not None]
        # Whoever has the topic that is gone may commit for the new one after its owner has asked.
        asked_before = log.former and any(
            reading.commits_before == 0 and reading.position is None and not reading.is_former
            for reading in readings
        )
        if not log.commits or asked_before or min(positions) < log.start:
            log.excuse(offset)

    # ---- the group's offsets ----

    def commit(self, partition: TopicPartition, offset: int) -> None:
        """The coordinator stores an offset."""
        log = self.logs[partition]
        log.commits.append(offset)
        if log.place(offset) > log.first_not_done:
            first = log.offsets[log.first_not_done]
            self.note(Wrong.COMMIT_AHEAD, f"{partition} up to {offset}, but {first} is not done")

    def confirm(self, reader: Reader, offsets: Mapping[TopicPartition, int], since: Mark) -> None:
        """A commit call has returned without an error; `since` is what `mark` returned before."""
        for partition, offset in offsets.items():
            log, count = since[partition]
            commits = log.commits
            if log is self.logs[partition] and offset not in commits[count:]:
                self.note(
                    Wrong.COMMIT_LOST, f"{partition} at {offset}, of {reader.name}: {commits[-3:]}"
                )

    def mark(self, reader: Reader) -> Mark:
        """Return how many commits each partition has seen by now, for `confirm`.

        Who does not know yet that a topic was made anew commits for the old one, whose offsets went
        with it.
        """
        marks = {}
        for partition, log in self.logs.items():
            its = log.former[-1] if log.former and reader.is_behind(partition) else log
            marks[partition] = (its, len(its.commits))
        return marks

    # ---- readers ----

    def begin(
        self,
        name: str,
        is_member: Callable[[], bool],
        is_ousted: Callable[[], bool] = lambda: False,
        is_behind: Callable[[TopicPartition], bool] = lambda partition: False,
    ) -> Reader:
        """A consumer has been made; see `Reader`."""
        reader = Reader(name, is_member, is_ousted, is_behind)
        self._readers.append(reader)
        return reader

    def end(self, reader: Reader) -> None:
        """It is gone."""
        self._readers.remove(reader)

    def leave(self, reader: Reader) -> None:
        """It is not a member any more, by its own will: the listener has heard of everything."""
        for partition in reader.owned:
            self.note(Wrong.UNTOLD, f"{partition} of {reader.name}")
        reader.owned.clear()

    def assign(self, reader: Reader, partitions: Partitions) -> None:
        """The listener was told that these were added.

        Of a topic that is gone, if the client has not heard of its end: the one that was made anew
        has an owner of its own.
        """
        for partition in partitions:
            log = self.logs[partition]
            is_former = bool(log.former) and reader.is_behind(partition)
            for other in self._readers:
                theirs = other.owned.get(partition)
                both = other is not reader and theirs is not None and not theirs.is_former
                if both and not is_former and reader.is_member() and other.is_member():
                    self.note(Wrong.DOUBLE_OWNER, f"{partition}: {other.name} and {reader.name}")
            commits = 0 if is_former else len(log.commits)
            reader.owned[partition] = Reading(commits, is_former=is_former)

    def revoke(self, reader: Reader, partitions: Partitions) -> None:
        """The listener was told that these are given up, or lost."""
        for partition in partitions:
            reader.owned.pop(partition, None)

    def seek(self, reader: Reader, partition: TopicPartition, offset: int) -> None:
        """The user has moved the position."""
        reading = reader.owned.get(partition)
        if reading is not None:
            reading.sought = offset
            reading.sought_blindly = reader.is_behind(partition)
            reading.position = None

    def pause(self, reader: Reader, partition: TopicPartition, *, paused: bool) -> None:
        """The user wants nothing of a partition for a while, or something again."""
        reading = reader.owned.get(partition)
        if reading is not None:
            reading.is_paused = paused

    def hand_over(
        self, reader: Reader, partition: TopicPartition, offset: int, value: bytes
    ) -> None:
        """The user was given a record."""
        log = self.logs[partition]
        place = log.place(offset)
        if not log.holds(offset, value):
            if any(former.holds(offset, value) for former in log.former):
                return
            self.note(Wrong.GARBLED, f"{partition} at {offset}: {value!r}, to {reader.name}")
            return
        reading = reader.owned.get(partition)
        if reading is None:
            self.note(Wrong.NOT_OWNED, f"{partition} at {offset}, to {reader.name}")
        else:
            if reader.is_ousted():
                self.note(Wrong.OUSTED, f"{partition} at {offset}, to {reader.name}")
            if reading.is_paused:
                self.note(Wrong.PAUSED, f"{partition} at {offset}, to {reader.name}")
            self._check_place(reader, reading, partition, place)
            reading.position = offset + 1
        log.handed_over[place] = True
        reader.not_done.append((partition, place))

    def _check_place(
        self, reader: Reader, reading: Reading, partition: TopicPartition, place: int
    ) -> None:
        log = self.logs[partition]
        where = f"{partition} at {log.offsets[place]}, to {reader.name}"
        if reading.position is not None:
            if place < log.place(reading.position):
                self.note(Wrong.REPEATED, where)
            elif not self._may_go_on(log, reading.position, place):
                self.note(Wrong.SKIPPED, f"{where}, after nothing from {reading.position} on")
        elif reading.sought is not None:
            is_reset = reading.sought_blindly and self._may_go_on(log, 0, place)
            if not is_reset and not self._may_go_on(log, reading.sought, place):
                self.note(Wrong.FALSE_START, f"{where}, after a seek to {reading.sought}")
        else:
            known = log.commits[max(0, reading.commits_before - 1) :]
            # Who hears late that a topic was made anew reads all of it, whatever others have done.
            may = self._is_anew(partition.topic) and self._may_go_on(log, 0, place)
            may = may or any(self._may_go_on(log, offset, place) for offset in known)
            if not may and not (reading.commits_before == 0 and self._may_begin(log, place)):
                self.note(Wrong.FALSE_START, f"{where}, when {known or 'nothing'} was committed")

    def _is_anew(self, topic: str) -> bool:
        """Whether the topic was made anew; partitions may have been added to it since."""
        return any(log.former for partition, log in self.logs.items() if partition.topic == topic)

    def _may_begin(self, log: Log, place: int) -> bool:
        """Whether who has no committed offset may begin at a place in the log."""
        if self._resets_jump:
            is_anew = place == 0 and bool(log.former)  # all of it was written after what was read
            return is_anew or place in map(log.place, log.told)
        return not self._resets_fail and self._may_go_on(log, 0, place)

    def _may_go_on(self, log: Log, position: int, place: int) -> bool:
        """Whether who stands at an offset may come to a place in the log next."""
        first = log.place(position)
        if place <= first or position >= log.start:
            return place == first
        if self._resets_jump:
            return place in map(log.place, log.told)
        return not self._resets_fail and log.offsets[place - 1] < log.start

    def do(self, reader: Reader, upto: Mapping[TopicPartition, int] | None = None) -> None:
        """What the reader was given is done, or with `upto` what is before these offsets."""
        left = []
        for partition, place in reader.not_done:
            log = self.logs[partition]
            if upto is not None and not log.offsets[place] < upto.get(partition, -1):
                left.append((partition, place))
                continue
            log.done[place] = True
            log.find_first_not_done()
        reader.not_done = left

    # ---- the end ----

    def note(self, kind: Wrong, detail: str) -> None:
        """Something is wrong."""
        self.faults.append(Fault(kind, detail))

    def check_read(self) -> None:
        """All that was written must have been read by now."""
        for what in self.unread[:5]:
            self.note(Wrong.UNREAD, what)

    def check_committed(self) -> None:
        """All members have left in peace: the group's offsets are where the logs end."""
        for partition, log in self.logs.items():
            committed = log.commits[-1] if log.commits else 0
            if not all(log.excused[log.place(committed) :]):
                self.note(Wrong.UNCOMMITTED, f"{partition}: {committed} of {log.offsets[-1] + 1}")
