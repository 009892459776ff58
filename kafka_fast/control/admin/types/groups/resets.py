"""Where groups are to go on to read, and plans that say so for each partition."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from kafka_fast.errors import KafkaError, UsageError, fresh_copy
from kafka_fast.times import query_ms
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value, field

if TYPE_CHECKING:
    from typing_extensions import Self

PLAN_VERSION = 1
"""Of the JSON of a plan."""

LAST_OFFSET = 2**63 - 1

_MILLISECOND = timedelta(milliseconds=1)


class ResetKind(enum.Enum):
    """How the place is chosen where a group goes on."""

    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"
    OFFSET = "offset"
    TIME = "time"
    DURATION = "duration"
    SHIFT = "shift"


class ResetTo(Value):
    """The place in each partition where a group is to go on.

    Examples:
        >>> ResetTo.shift_by(-100)
        ResetTo(kind=<ResetKind.SHIFT: 'shift'>, amount=-100)
    """

    kind: ResetKind
    amount: int = 0
    """An offset, a Unix time in ms, a duration in ms, or a number of records; 0 if it has none."""

    @classmethod
    def earliest(cls) -> Self:
        """Return the beginning of the log."""
        return cls(ResetKind.EARLIEST)

    @classmethod
    def latest(cls) -> Self:
        """Return the end of the log."""
        return cls(ResetKind.LATEST)

    @classmethod
    def current(cls) -> Self:
        """Return what is committed; the end of the log where nothing is.

        What is committed may be outside of the log: then it is moved into it.
        """
        return cls(ResetKind.CURRENT)

    @classmethod
    def to_offset(cls, offset: int) -> Self:
        """Return the same offset for all partitions.

        Raises:
            UsageError: the offset is negative.
        """
        if offset < 0:
            raise UsageError(f"a group cannot go on at offset {offset}, below 0")
        return cls(ResetKind.OFFSET, offset)

    @classmethod
    def to_time(cls, time: int | datetime) -> Self:
        """Return the first record that is not older than a time; the end of the log if none is.

        Args:
            time: Unix ms, or a datetime with a time zone.

        Raises:
            UsageError: it is no time, or most likely in another unit.
        """
        return cls(ResetKind.TIME, query_ms(time, "the time to go on at"))

    @classmethod
    def by_duration(cls, duration: timedelta) -> Self:
        """Return the first record that is not older than a duration, counted back from now.

        Raises:
            UsageError: the duration is negative.
        """
        if not isinstance(duration, timedelta):
            raise TypeError(f"a duration is a timedelta, not {duration!r}")
        if duration < timedelta(0):
            raise UsageError(f"a duration of {duration} would be in the future")
        return cls(ResetKind.DURATION, duration // _MILLISECOND)

    @classmethod
    def shift_by(cls, count: int) -> Self:
        """Return what is committed, moved by so many offsets; back if the number is negative."""
        return cls(ResetKind.SHIFT, count)


class PartitionReset(Value):
    """Where a group goes on in a partition."""

    partition: TopicPartition
    current: int | None
    """What was committed when the plan was made; None: nothing."""
    target: int
    """Where the group is to go on: within the log, as it was then."""
    requested: int
    """What was asked for, which may be outside of the log."""
    log_start: int
    """The first offset of the log."""
    log_end: int
    """The offset behind its last record."""

    @property
    def clamped(self) -> bool:
        """Whether the target is another offset than was asked for, to be within the log."""
        return self.target != self.requested


class ResetPlan(Value):
    """Where a group goes on, partition by partition; what a reset did, or would do."""

    group_id: str
    resets: tuple[PartitionReset, ...]
    """In the order of topics and numbers."""
    errors: Mapping[TopicPartition, KafkaError] = field(factory=dict)
    """The partitions that cannot be, or were not, reset."""
    is_applied: bool = False
    """Whether the offsets were committed, but for those in `errors`."""
    members: tuple[str, ...] = ()
    """The members of the group, for people: of a dry run. While there are any, nothing can be
    reset.
    """

    def raise_first(self) -> Self:
        """Raise the first error; return the plan if there is none."""
        for error in self.errors.values():
            raise fresh_copy(error)
        return self

    @property
    def targets(self) -> dict[TopicPartition, int]:
        """Where the group goes on, by partition."""
        return {one.partition: one.target for one in self.resets}

    def to_json(self) -> str:
        """Return the plan as text, for `from_json`, for people, and for their tools."""
        plan = {
            "version": PLAN_VERSION,
            "group": self.group_id,
            "is_applied": self.is_applied,
            "partitions": [
                {
                    "topic": one.partition.topic,
                    "partition": one.partition.partition,
                    "from": one.current,
                    "to": one.target,
                    "requested": one.requested,
                    "clamped": one.clamped,
                    "log_start": one.log_start,
                    "log_end": one.log_end,
                }
                for one in self.resets
            ],
            "errors": [
                {**partition._asdict(), "error": str(error)}
                for partition, error in self.errors.items()
            ],
        }
        return json.dumps(plan, indent=2)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return a plan from its text; somebody may have changed or removed partitions in it.

        "from", "requested", "log_start" and "log_end" may be left out. An error of another client
        comes back as a KafkaError with the same text.

        Raises:
            UsageError: the text is no plan.
        """
        try:
            plan = json.loads(text)
            if plan["version"] != PLAN_VERSION:
                raise UsageError(f"a plan of version {plan['version']!r}, not of {PLAN_VERSION}")
            return cls(
                _text(plan["group"]),
                _each_once([_reset(entry) for entry in plan["partitions"]]),
                {
                    _partition(entry): KafkaError(_text(entry["error"]))
                    for entry in plan.get("errors", ())
                },
                bool(plan.get("is_applied", False)),
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise UsageError(f"this is no plan of ResetPlan.to_json: {what}") from error


def _reset(entry: Mapping[str, Any]) -> PartitionReset:
    target = _offset(entry["to"])
    current = entry.get("from")
    return PartitionReset(
        _partition(entry),
        None if current is None else _offset(current),
        target,
        _integer(entry.get("requested", target)),
        _offset(entry.get("log_start", target)),
        _offset(entry.get("log_end", target)),
    )


def _each_once(resets: list[PartitionReset]) -> tuple[PartitionReset, ...]:
    """Return resets of different partitions: of two of the same only one could be carried out."""
    seen: set[TopicPartition] = set()
    for one in resets:
        if one.partition in seen:
            raise ValueError(f"{one.partition} is named twice")
        seen.add(one.partition)
    return tuple(resets)


def _partition(entry: Mapping[str, Any]) -> TopicPartition:
    return TopicPartition(_text(entry["topic"]), _offset(entry["partition"]))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _offset(value: object) -> int:
    offset = _integer(value)
    if not 0 <= offset <= LAST_OFFSET:
        raise ValueError(f"{value!r} is no number from 0 on")
    return offset


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is no number")
    return value
