"""Says what is wrong with transactions, given the logs that the brokers have in the end.

    attempts (what was sent, what was asked, what was answered) ─► Story ─┐
    partitions' logs, with markers ──────────────────────────────► Logs ──┼─► check() ─► anomalies
    what readers of committed records got, groups' offsets ──────► View ──┘

An *attempt* is one transaction of one life of one producer. The log alone tells its fate: a record
is committed, aborted, open or absent, by the marker that follows in its partition. Whatever an
attempt's user was told, all of its records and offsets share one fate. Knows nothing of clients and
brokers, and is itself tested with planted anomalies.
"""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kafka_fast.record import ControlType, RecordBatch

TopicPartition = tuple[str, int]
GroupPartition = tuple[str, TopicPartition]
"""A group, and a partition that it reads."""


class Kind(enum.Enum):
    """What can go wrong."""

    TORN = "part of the transaction is committed, and part is not"
    LOST = "committed, as its producer was told, and not committed in the log"
    UNASKED = "committed in the log, although its producer did not ask for that"
    UNDONE = "committed in the log, although its producer was told that it is aborted"
    DUPLICATE = "committed more than once"
    FOREIGN = "committed, and never sent"
    FENCED_WROTE = "written in an epoch that was over in this partition"
    LATE_END = "ended by a marker of an epoch before its own"
    DIRTY_READ = "read as committed, and not committed"
    UNREAD = "committed before the last stable offset, and not read"
    REREAD = "read as committed more than once"
    OFFSETS_AHEAD = "the group's offset is behind a record whose result is not committed"
    RECORDS_AHEAD = "the result is committed, and the group's offset is not behind its record"
    OFFSETS_LOST = "the transaction is committed, and the group's offset is before the one it sent"
    OFFSETS_UNASKED = "the group's offset is one that no committed transaction has sent"
    STUCK_LSO = "the last stable offset stands still although nothing was broken any more"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One broken promise."""

    kind: Kind
    detail: str

    def __str__(self) -> str:
        """Return both in one line."""
        return f"{self.kind.name}: {self.detail} ({self.kind.value})"


class Told(enum.Enum):
    """What the user of an attempt was told in the end, or has asked for."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "commit was asked for, and the answer is not known"
    OPEN = "no commit was asked for"


class Fate(enum.Enum):
    """What the log says of a record."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Written:
    """One record that a producer accepted."""

    value: bytes
    """Nobody else's."""
    partition: TopicPartition | None = None
    """Where it must land; None: anywhere."""
    source: tuple[TopicPartition, int] | None = None
    """The record that it is the result of: its partition and offset."""


@dataclass(slots=True)
class Attempt:
    """One transaction of one life of one producer."""

    name: str
    records: list[Written] = field(default_factory=list)
    offsets: dict[GroupPartition, int] = field(default_factory=dict)
    """Of groups, as they were sent to the transaction."""
    told: Told = Told.OPEN


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a log, or one marker."""

    base_offset: int
    producer_id: int
    epoch: int
    values: tuple[bytes | None, ...] = ()
    """Of a marker none."""
    commit: bool | None = None
    """What a marker decides; None: it is none."""
    is_transactional: bool = True


Logs = Mapping[TopicPartition, Sequence[Batch]]


@dataclass(frozen=True, slots=True)
class View:
    """What others see in the end."""

    read: Mapping[TopicPartition, Sequence[bytes]] = field(default_factory=dict)
    """By a reader of committed records, of the partitions that it has read to the end."""
    stable: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Last stable offsets."""
    offsets: Mapping[GroupPartition, int] = field(default_factory=dict)
    """Committed by groups; nothing before 0."""
    recovered: bool = True
    """Every transaction had the time to end."""


@dataclass(slots=True)
class _Place:
    """Where a record is in the logs."""

    value: bytes
    partition: TopicPartition
    offset: int
    fate: Fate

    def __str__(self) -> str:
        topic, index = self.partition
        return f"{self.value!r} at {topic}-{index}@{self.offset}"


def batches_of(batches: Iterable[RecordBatch]) -> list[Batch]:
    """Return the batches of a log as the checker reads them."""
    entries = []
    for one in batches:
        if not one.is_control:
            values = tuple(record.value for record in one.records())
            commit = None
        else:
            kind = one.control_record().type
            if kind not in (ControlType.COMMIT, ControlType.ABORT):
                continue
            values, commit = (), kind == ControlType.COMMIT
        entries.append(
            Batch(
                one.base_offset,
                one.producer_id,
                one.producer_epoch,
                values,
                commit,
                one.is_transactional,
            )
        )
    return entries


def check(attempts: Sequence[Attempt], logs: Logs, view: View) -> list[Anomaly]:
    """Return every broken promise.

    Args:
        attempts: of all producers; their records are the only ones in the logs.
        logs: of all partitions that they write to.
        view: what readers and groups have in the end.
    """
    anomalies: list[Anomaly] = []
    places: dict[bytes, list[_Place]] = defaultdict(list)
    for partition, log in logs.items():
        for place in _walk(partition, log, anomalies):
            places[place.value].append(place)
    anomalies += _strangers(attempts, places)
    for attempt in attempts:
        anomalies += _attempt(attempt, places)
    anomalies += _duplicates(places)
    anomalies += _readings(places, view)
    anomalies += _offsets(attempts, places, view)
    if view.recovered:
        anomalies += _stability(logs, view)
    return anomalies


def _walk(
    partition: TopicPartition, log: Sequence[Batch], anomalies: list[Anomaly]
) -> Iterator[_Place]:
    """Return the records of a log with their fates; note what is wrong with their epochs."""
    open_places: dict[int, list[_Place]] = defaultdict(list)  # by producer id
    open_epochs: dict[int, int] = {}
    epochs: dict[int, int] = {}  # the highest of each producer
    for batch in log:
        producer, where = batch.producer_id, f"{partition[0]}-{partition[1]}@{batch.base_offset}"
        if batch.epoch < epochs.get(producer, -1):
            detail = f"producer {producer} epoch {batch.epoch} at {where}, after {epochs[producer]}"
            anomalies.append(Anomaly(Kind.FENCED_WROTE, detail))
        epochs[producer] = max(batch.epoch, epochs.get(producer, -1))
        if batch.commit is not None:
            if batch.epoch < open_epochs.pop(producer, -1):
                detail = f"producer {producer}, marker of epoch {batch.epoch} at {where}"
                anomalies.append(Anomaly(Kind.LATE_END, detail))
            for place in open_places.pop(producer, ()):
                place.fate = Fate.COMMITTED if batch.commit else Fate.ABORTED
                yield place
            continue
        for number, value in enumerate(batch.values):
            place = _Place(value or b"", partition, batch.base_offset + number, Fate.COMMITTED)
            if batch.is_transactional:
                place.fate = Fate.OPEN
                open_places[producer].append(place)
                open_epochs[producer] = batch.epoch
            else:
                yield place
    for left in open_places.values():
        yield from left


def _strangers(
    attempts: Sequence[Attempt], places: Mapping[bytes, list[_Place]]
) -> Iterator[Anomaly]:
    """Check that what is in the logs was sent, and sent there."""
    sent = {record.value: record for attempt in attempts for record in attempt.records}
    for value, where in places.items():
        for place in where:
            record = sent.get(value)
            if record is None or record.partition not in (None, place.partition):
                yield Anomaly(Kind.FOREIGN, str(place))


def _fate(record: Written, places: Mapping[bytes, list[_Place]]) -> Fate:
    """Return the best that became of a record, which may be in a log more than once."""
    fates = {place.fate for place in places.get(record.value, ())}
    return next((fate for fate in Fate if fate in fates), Fate.ABSENT)


def _attempt(attempt: Attempt, places: Mapping[bytes, list[_Place]]) -> Iterator[Anomaly]:
    """Check that all of an attempt has one fate, and the one that its user was told."""
    fates = {record.value: _fate(record, places) for record in attempt.records}
    committed = [value for value, fate in fates.items() if fate is Fate.COMMITTED]
    others = {value: fate for value, fate in fates.items() if fate is not Fate.COMMITTED}
    if committed and others:
        value, fate = next(iter(others.items()))
        detail = f"{attempt.name}: {committed[0]!r} is committed, {value!r} is {fate.value}"
        yield Anomaly(Kind.TORN, detail)
    if attempt.told is Told.COMMITTED and others:
        value, fate = next(iter(others.items()))
        yield Anomaly(Kind.LOST, f"{attempt.name}: {value!r} is {fate.value}")
    if committed and attempt.told in (Told.ABORTED, Told.OPEN):
        kind = Kind.UNDONE if attempt.told is Told.ABORTED else Kind.UNASKED
        yield Anomaly(kind, f"{attempt.name}: {committed[0]!r}")


def _duplicates(places: Mapping[bytes, list[_Place]]) -> Iterator[Anomaly]:
    for where in places.values():
        committed = [place for place in where if place.fate is Fate.COMMITTED]
        if len(committed) > 1:
            yield Anomaly(Kind.DUPLICATE, ", ".join(map(str, committed)))


def _readings(places: Mapping[bytes, list[_Place]], view: View) -> Iterator[Anomaly]:
    """Check that a reader got what is committed and stable, each record once."""
    committed: dict[TopicPartition, Counter[bytes]] = defaultdict(Counter)
    held_back: dict[TopicPartition, Counter[bytes]] = defaultdict(Counter)
    for place in (one for where in places.values() for one in where):
        if place.fate is Fate.COMMITTED:
            stable = place.offset < view.stable.get(place.partition, place.offset + 1)
            (committed if stable else held_back)[place.partition][place.value] += 1
    for partition, values in view.read.items():
        got = Counter(values)
        name = f"{partition[0]}-{partition[1]}"
        known = committed[partition] + held_back[partition]
        for value, count in got.items():
            if not known[value]:
                yield Anomaly(Kind.DIRTY_READ, f"{value!r} of {name}")
            elif count > known[value]:
                yield Anomaly(Kind.REREAD, f"{value!r} of {name}, {count} times")
        for value in committed[partition] - got:
            yield Anomaly(Kind.UNREAD, f"{value!r} of {name}")


def _offsets(
    attempts: Sequence[Attempt], places: Mapping[bytes, list[_Place]], view: View
) -> Iterator[Anomaly]:
    """Check that offsets and results have gone together.

    A record's result is any record whose source it is. Partitions of which nothing has a result are
    checked by what was sent alone.
    """
    results: dict[GroupPartition, set[int]] = defaultdict(set)
    may_be: dict[GroupPartition, set[int]] = defaultdict(set)
    for attempt in attempts:
        fates = {_fate(record, places) for record in attempt.records}
        is_committed = fates == {Fate.COMMITTED} or (not fates and attempt.told is Told.COMMITTED)
        for place, offset in attempt.offsets.items():
            if is_committed or (not fates and attempt.told is Told.UNKNOWN):
                may_be[place].add(offset)
            if is_committed and view.offsets.get(place, 0) < offset:
                detail = f"{attempt.name}: {_of(place)} is {view.offsets.get(place, 0)}"
                yield Anomaly(Kind.OFFSETS_LOST, f"{detail}, not {offset}")
            for record in attempt.records:
                if record.source is not None and record.source[0] == place[1]:
                    if _fate(record, places) is Fate.COMMITTED:
                        results[place].add(record.source[1])
                    results.setdefault(place, set())
    for place, offset in view.offsets.items():
        if offset not in may_be[place] and offset:
            yield Anomaly(Kind.OFFSETS_UNASKED, f"{_of(place)} is {offset}")
        if place not in results:
            continue
        missing = set(range(offset)) - results[place]
        if missing:
            detail = f"{_of(place)} is {offset}, no result of record {min(missing)}"
            yield Anomaly(Kind.OFFSETS_AHEAD, detail)
    for place, done in results.items():
        ahead = {one for one in done if one >= view.offsets.get(place, 0)}
        if ahead:
            detail = f"{_of(place)} is {view.offsets.get(place, 0)}, result of record {min(ahead)}"
            yield Anomaly(Kind.RECORDS_AHEAD, detail)


def _stability(logs: Logs, view: View) -> Iterator[Anomaly]:
    """Check that no transaction is open when all of them had time to end."""
    for partition, log in logs.items():
        end = max((one.base_offset + max(len(one.values), 1) for one in log), default=0)
        stable = view.stable.get(partition, end)
        if stable < end:
            name = f"{partition[0]}-{partition[1]}"
            yield Anomaly(Kind.STUCK_LSO, f"{name}: {stable}, the log ends at {end}")


def _of(place: GroupPartition) -> str:
    group, (topic, index) = place
    return f"the offset of {group!r} for {topic}-{index}"
