"""Says what is wrong with a history of sends, given the log that the brokers have in the end.

    sends and completions ─► History ─┐
    partitions' logs ─────────────────┼─► check() ─► anomalies, none if all promises were kept
    what was promised ─► Promises ────┘

Every record has a number, in the order of the sends, which its value repeats together with the
topic: a record that landed elsewhere, twice, never or in the wrong order is recognised by its
value alone. Knows nothing of clients and brokers, and is itself tested with planted anomalies.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kafka_fast.errors import Outcome

NO_OFFSET = -1
TopicPartition = tuple[str, int]
Logs = Mapping[TopicPartition, Sequence[bytes | None]]
"""The values of a partition's records; a record's place in the sequence is its offset."""


class Kind(enum.Enum):
    """What can go wrong."""

    LOST = "acknowledged, and not in the log"
    DUPLICATE = "in the log more than once"
    MISORDERED = "in the log behind a record that was sent later"
    MISROUTED = "in a topic or partition that it was not sent to"
    FOREIGN = "in the log, and never sent"
    WRONG_OFFSET = "acknowledged with an offset at which the log has something else"
    FALSE_FAILURE = "reported as not written, and in the log"
    COMPLETED_TWICE = "completed more than once"
    NEVER_COMPLETED = "never completed"
    LATE = "completed after its delivery timeout"
    STRANDED = "expired although nothing was broken any more"
    LOST_COUNT = "failures that nobody could observe were not all counted, or too many were"
    FLUSH = "flush returned a wrong number of pending records"
    MEMORY = "memory was not given back"
    LOGIN = "a request was written against the rules of logins"
    STUCK = "the client made no progress although nothing was broken any more"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One broken promise."""

    kind: Kind
    detail: str

    def __str__(self) -> str:
        """Return both in one line."""
        return f"{self.kind.name}: {self.detail} ({self.kind.value})"


@dataclass(frozen=True, slots=True)
class Completion:
    """What a record's sender was told."""

    at: float
    partition: int
    offset: int
    """NO_OFFSET: not known, or failed."""
    outcome: Outcome | None
    """None: delivered."""
    expired: bool = False
    """delivery.timeout.ms had passed."""


@dataclass(slots=True)
class Sent:
    """One record that the client accepted."""

    number: int
    topic: str
    at: float
    partition: int | None
    """Where it must land; None: the partitioner chose."""
    observed: bool
    """Somebody hears what becomes of it."""
    completions: list[Completion] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Promises:
    """What holds in this world, by its configuration."""

    acknowledged_is_written: bool = True
    """acks=all, and no topic was deleted."""
    once: bool = True
    """Idempotence, and no partition forgot its producers."""
    ordered: bool = True
    """Idempotence, or one request in flight."""
    refused_is_absent: bool = True
    """A record that is reported as not written is not in the log."""
    lost_exactly: bool = True
    """No batch was split: of its pieces some may fail, and then too many failures are counted as
    observed by nobody rather than too few."""
    delivery_timeout: float = float("inf")
    """Seconds from the send to the completion, slack included."""
    recovered_by: float = float("inf")
    """When the client must have recovered from all that was broken: nothing expires after that."""


@dataclass(slots=True)
class History:
    """What the users of one client did and were told."""

    sent: list[Sent] = field(default_factory=list)
    failed: int = 0
    """Records that failed, by the client's own count."""
    lost_counted: int = 0
    """Failures that the client reported as observed by nobody."""
    flushes: list[tuple[int, int]] = field(default_factory=list)
    """Pending records that a flush returned, and how many there were."""
    reserved_bytes: int = 0
    """Memory that is taken when everything has ended."""
    stuck: str = ""
    """Who made no progress."""

    def send(self, topic: str, at: float, partition: int | None, *, observed: bool = True) -> Sent:
        """Note a record that was accepted; its number is `len(sent)` before."""
        sent = Sent(len(self.sent), topic, at, partition, observed)
        self.sent.append(sent)
        return sent


def value_of(number: int, topic: str, padding: int = 0) -> bytes:
    """Return the value that identifies a record."""
    return b"%d|%s|" % (number, topic.encode()) + b"." * padding


def read_value(value: bytes | None) -> tuple[int, str] | None:
    """Return number and topic of a value; None if `value_of` did not make it."""
    number, first, rest = (value or b"").partition(b"|")
    topic, second, _ = rest.partition(b"|")
    if not (first and second and number.isdigit()):
        return None
    return int(number), topic.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class _Place:
    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset}"


def check(history: History, logs: Logs, promises: Promises) -> list[Anomaly]:
    """Return every broken promise.

    Args:
        history: of one client; its records are the only ones in the logs.
        logs: of all partitions.
        promises: what holds in this world.
    """
    places, anomalies = _read_logs(history, logs)
    if promises.once:
        anomalies += _duplicates(places)
    if promises.ordered:
        anomalies += _misordered(logs)
    for sent in history.sent:
        anomalies += _completion(sent, promises)
        anomalies += _place(sent, places.get(sent.number, []), promises)
    if promises.acknowledged_is_written:
        anomalies += _vanished(history, places)
    anomalies += _lost_count(history, promises)
    anomalies += _totals(history)
    return anomalies


def _read_logs(history: History, logs: Logs) -> tuple[dict[int, list[_Place]], list[Anomaly]]:
    """Return where each record is, and what does not belong where it is."""
    places: dict[int, list[_Place]] = defaultdict(list)
    anomalies = []
    for (topic, partition), values in logs.items():
        for offset, value in enumerate(values):
            place = _Place(topic, partition, offset)
            read = read_value(value)
            if read is None or read[0] >= len(history.sent):
                anomalies.append(Anomaly(Kind.FOREIGN, f"{value!r} at {place}"))
                continue
            number, said = read
            sent = history.sent[number]
            places[number].append(place)
            if sent.topic != topic or said != topic or sent.partition not in (None, partition):
                anomalies.append(Anomaly(Kind.MISROUTED, f"{_name(sent)} at {place}"))
    return places, anomalies


def _duplicates(places: Mapping[int, list[_Place]]) -> Iterator[Anomaly]:
    for number, where in places.items():
        if len(where) > 1:
            yield Anomaly(Kind.DUPLICATE, f"record {number} at {', '.join(map(str, where))}")


def _misordered(logs: Logs) -> Iterator[Anomaly]:
    for (topic, partition), values in logs.items():
        highest = -1
        for offset, value in enumerate(values):
            read = read_value(value)
            if read is None:
                continue
            if read[0] < highest:
                place = _Place(topic, partition, offset)
                yield Anomaly(Kind.MISORDERED, f"record {read[0]} at {place} after {highest}")
            highest = max(highest, read[0])


def _completion(sent: Sent, promises: Promises) -> Iterator[Anomaly]:
    """Check that the sender was told once, and in time."""
    if not sent.observed:
        return
    if not sent.completions:
        yield Anomaly(Kind.NEVER_COMPLETED, _name(sent))
        return
    if len(sent.completions) > 1:
        yield Anomaly(Kind.COMPLETED_TWICE, f"{_name(sent)}: {sent.completions}")
    told = sent.completions[0]
    if told.expired and told.at > promises.recovered_by:
        yield Anomaly(Kind.STRANDED, f"{_name(sent)} at {told.at:.3f} s")
    took = told.at - sent.at
    if took > promises.delivery_timeout:
        yield Anomaly(Kind.LATE, f"{_name(sent)} after {took:.3f} s")


def _place(sent: Sent, where: Sequence[_Place], promises: Promises) -> Iterator[Anomaly]:
    """Check that the log has what the sender was told."""
    for told in sent.completions[:1]:
        if told.outcome is None and sent.partition not in (None, told.partition):
            yield Anomaly(Kind.MISROUTED, f"{_name(sent)} completed for {told.partition}")
        if told.outcome is None and promises.acknowledged_is_written:
            said = _Place(sent.topic, told.partition, told.offset)
            if not where:
                yield Anomaly(Kind.LOST, f"{_name(sent)}, acknowledged at {said}")
            elif told.offset != NO_OFFSET and said not in where:
                yield Anomaly(
                    Kind.WRONG_OFFSET, f"{_name(sent)}, acknowledged at {said}, is at {where[0]}"
                )
        refused = told.outcome in (Outcome.NOT_SENT, Outcome.REJECTED)
        if refused and where and promises.refused_is_absent:
            yield Anomaly(Kind.FALSE_FAILURE, f"{_name(sent)}: {told.outcome} and at {where[0]}")


def _vanished(history: History, places: Mapping[int, list[_Place]]) -> Iterator[Anomaly]:
    """Check that what nobody observes and is not in the log was at least counted as failed."""
    absent = [sent for sent in history.sent if not sent.observed and sent.number not in places]
    if len(absent) > history.lost_counted:
        detail = f"{len(absent)} unobserved ones, {history.lost_counted} counted as failed"
        yield Anomaly(Kind.LOST, f"{detail}, first {_name(absent[0])}")


def _lost_count(history: History, promises: Promises) -> Iterator[Anomaly]:
    """Check the count of the failures that nobody observes."""
    seen = sum(
        sent.observed and any(told.outcome is not None for told in sent.completions[:1])
        for sent in history.sent
    )
    unseen = history.failed - seen
    unobserved = sum(not sent.observed for sent in history.sent)
    limit = unseen if promises.lost_exactly else min(unobserved, history.failed)
    if not unseen <= history.lost_counted <= limit:
        detail = f"{history.failed} failed, {seen} of them seen, {history.lost_counted} counted"
        yield Anomaly(Kind.LOST_COUNT, detail)


def _totals(history: History) -> Iterator[Anomaly]:
    """Check what is counted over all records."""
    for returned, pending in history.flushes:
        if returned != pending:
            yield Anomaly(Kind.FLUSH, f"returned {returned}, {pending} were pending")
    if history.reserved_bytes:
        yield Anomaly(Kind.MEMORY, f"{history.reserved_bytes} bytes are still taken")
    if history.stuck:
        yield Anomaly(Kind.STUCK, history.stuck)


def _name(sent: Sent) -> str:
    where = sent.topic if sent.partition is None else f"{sent.topic}-{sent.partition}"
    return f"record {sent.number} for {where}"
