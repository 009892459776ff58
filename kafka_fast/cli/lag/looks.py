"""A look at how far groups are.

A look has every partition of a topic for which a group has committed an offset, to which a member
subscribes, or which the command line names. A partition without a commit counts as unread from its
log's beginning, unless the group's consumers begin at the end (`--reset latest`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafka_fast import TopicPartition
from kafka_fast.errors import (
    GroupIdNotFound,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from kafka_fast.values import Value

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import GroupLag, PartitionLag

REBALANCE_WAIT = 5.0
"""Seconds for which a rebalancing group is asked again: its subscriptions are not known then."""

_ASK_AGAIN = 0.1
_REBALANCING = ("PREPARING_REBALANCE", "COMPLETING_REBALANCE")


class Row(NamedTuple):
    """One partition and the group's place in it; None: not known, because the topic is gone."""

    partition: TopicPartition
    beginning: int | None
    committed: int | None
    end: int | None
    lag: int | None


class GroupLook(Value):
    """A group, and its place in each of its partitions."""

    group: str
    state: str | None
    """Kafka's word; None: not known."""
    rows: tuple[Row, ...]

    @property
    def total(self) -> int:
        """The sum over the partitions whose lag is known."""
        return sum(row.lag or 0 for row in self.rows)

    @property
    def uncommitted(self) -> int:
        """Number of partitions of which the group has committed nothing."""
        return sum(row.committed is None for row in self.rows)


class Look(Value):
    """What was seen at one time."""

    time_ms: int
    groups: tuple[GroupLook, ...]
    is_of_all: bool
    """Whether all groups were asked for, not one."""
    reset: str
    """Where groups begin to read what they have committed nothing of."""
    notes: tuple[str, ...] = ()
    """What is not known of the group that was asked for, and why."""
    errors: Mapping[str, KafkaError] = {}
    """Why nothing is known of groups."""

    @property
    def is_empty(self) -> bool:
        """Whether a group was asked for of which there is nothing to show."""
        return not self.is_of_all and not any(group.rows for group in self.groups)


def look_at(
    admin: Admin,
    group: str | None,
    topics: Sequence[str],
    reset: str,
    *,
    rebalance_wait: float | None = None,
) -> Look:
    """Return how far a group is, or all groups.

    Args:
        admin: the client.
        group: its id; None: all groups.
        topics: these only; none: all of the group's.
        reset: earliest or latest.
        rebalance_wait: seconds for which a rebalancing group is asked again; None: as usual.

    Raises:
        KafkaError: something could have been known, had a node answered in time.
    """
    if group is None:
        return _look_at_all(admin, reset)
    wait = REBALANCE_WAIT if rebalance_wait is None else rebalance_wait
    lag = _group_lag(admin, group, topics, 0.0 if topics else wait)
    seen = GroupLook(group, None, ())
    notes: tuple[str, ...] = ()
    if lag is not None:
        notes = tuple(_notes(lag, are_named=bool(topics)))
        seen = _group_look(lag, reset)
    return Look(_now_ms(), (seen,), is_of_all=False, reset=reset, notes=notes)


def _look_at_all(admin: Admin, reset: str) -> Look:
    result = admin.consumer_group_lag()
    groups = []
    errors: dict[str, KafkaError] = {
        name: error
        for name, error in result.errors.items()
        if not isinstance(error, GroupIdNotFound)  # it was deleted after it was listed
    }
    for name, lag in sorted(result.succeeded.items()):
        error = _trouble(lag)
        if error is None:
            groups.append(_group_look(lag, reset))
        else:
            errors[name] = error
    return Look(_now_ms(), tuple(groups), is_of_all=True, reset=reset, errors=errors)


def _trouble(lag: GroupLag) -> KafkaError | None:
    """Return why too little is known of a group; None: enough is."""
    try:
        for _ in _notes(lag, are_named=False):
            pass
    except KafkaError as error:
        return error
    return None


def _now_ms() -> int:
    return int(time.time() * 1000)


def _group_lag(admin: Admin, group: str, topics: Sequence[str], wait: float) -> GroupLag | None:
    """Return the group's lag; None: it neither exists nor has committed anything.

    A group that rebalances is asked again.
    """
    deadline = time.monotonic() + wait
    while True:
        try:
            lag = admin.consumer_group_lag([group], topics=topics or None)[group]
        except GroupIdNotFound:
            return None
        if lag.state.name not in _REBALANCING or time.monotonic() >= deadline:
            return lag
        time.sleep(_ASK_AGAIN)


def _notes(lag: GroupLag, *, are_named: bool) -> Iterator[str]:
    """Yield what is missing, and why.

    Raises:
        KafkaError: it could have been known, had a node answered in time.
    """
    error = lag.members_error
    if isinstance(error, KafkaTimeoutError):
        raise error
    if isinstance(error, GroupIdNotFound):
        if are_named:
            yield f"there is no group {lag.group_id} (yet)"
    elif error is not None:
        yield f"what the members of group {lag.group_id} subscribe to is not known: {error}"
    elif lag.state.name in _REBALANCING and not are_named:
        yield (
            f"group {lag.group_id} is rebalancing: what its members subscribe to is not known now, "
            "and topics of which it has committed nothing may be missing here"
        )
    committed = {one.partition.topic for one in lag.partitions if one.committed is not None}
    for topic, topic_error in lag.topic_errors.items():
        _raise_unless_absent(topic_error)
        when = "any more, or it may not be seen" if topic in committed else None
        yield f"there is no topic {topic!r} {when or '(yet), or it may not be seen'}"
    for partition_error in lag.errors.values():
        _raise_unless_absent(partition_error)


def _raise_unless_absent(error: KafkaError) -> None:
    if not isinstance(error, (UnknownTopicOrPartition, TopicAuthorizationFailed)):
        raise error


def _group_look(lag: GroupLag, reset: str) -> GroupLook:
    return GroupLook(lag.group_id, _state(lag), tuple(_row(one, reset) for one in lag.partitions))


def _state(lag: GroupLag) -> str | None:
    """Return Kafka's word; None: not known."""
    if isinstance(lag.members_error, GroupIdNotFound):
        return "Dead"
    return None if lag.state.name == "UNKNOWN" else lag.state.value


def _row(one: PartitionLag, reset: str) -> Row:
    at = None if one.committed is None else one.committed.offset
    lag = one.lag
    if at is None and one.end is not None:
        start = one.log_start if reset == "earliest" else one.end
        lag = None if start is None else max(0, one.end - start)
    return Row(one.partition, one.log_start, at, one.end, lag)
