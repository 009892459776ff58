"""`kafka-fast lag`: how far a group is behind the ends of its partitions.

The command lists every partition of a topic for which the group has committed an offset, to which a
member subscribes, or which the command line names. A partition without a commit counts as unread
from its log's beginning, unless the group's consumers begin at the end (`--reset latest`).
"""

from __future__ import annotations

import argparse
import json
import time
from typing import TYPE_CHECKING, NamedTuple

from kafka_fast import TopicPartition
from kafka_fast.cli.connection import add_connection, configuration, group_id
from kafka_fast.cli.showing.standard_error import say
from kafka_fast.errors import (
    GroupIdNotFound,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
    UsageError,
)

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import GroupLag, PartitionLag

REBALANCE_WAIT = 5.0
"""Seconds for which a rebalancing group is asked again: its subscriptions are not known then."""

EXAMPLES = """examples:
  kafka-fast lag audit                          all topics of the group
  kafka-fast lag audit events -o json | jq .total_lag
"""

_ASK_AGAIN = 0.1
_REBALANCING = ("PREPARING_REBALANCE", "COMPLETING_REBALANCE")
_FAILED = 1
_HEAD = ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "lag",
        help="print how far a group is behind",
        description="Print the committed offset, the end and the distance between them for every "
        "partition of the topics that a group has committed offsets of or that its members "
        "subscribe to. Joins nothing, changes nothing.",
        epilog=EXAMPLES,
    )
    parser.add_argument("group", help="its id")
    parser.add_argument(
        "topic",
        nargs="*",
        help="only these, whether the group has read of them or not; default: all of the group's",
    )
    parser.add_argument(
        "--reset",
        choices=("earliest", "latest"),
        default="earliest",
        help="where the group begins to read a partition of which it has committed nothing "
        "(auto.offset.reset of its consumers): the lag counts from there (default %(default)s)",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="json: one object, for programs (default %(default)s)",
    )
    add_connection(parser, "consumer")
    parser.set_defaults(run=run)


class Row(NamedTuple):
    """One partition and the group's place in it; None: not known, because the topic is gone."""

    partition: TopicPartition
    beginning: int | None
    committed: int | None
    end: int | None
    lag: int | None


def run(args: argparse.Namespace) -> int:
    """Print a line for each partition and one for all; return 1 if there is nothing to print."""
    from kafka_fast import Admin

    if not args.group:
        raise UsageError("the group has no name")
    config = configuration(args, "consumer")
    group_id(config, args.group)
    with Admin(config) as admin:
        lag = _group_lag(admin, args.group, args.topic)
    if lag is None:
        _say_nothing(args.group)
        return _FAILED
    _say_what_is_not_known(lag, are_named=bool(args.topic))
    rows = [_row(one, args.reset) for one in lag.partitions]
    if not rows:
        if not lag.topic_errors:
            _say_nothing(args.group)
        return _FAILED
    if args.output == "json":
        _print_json(args.group, _state(lag), rows)
    else:
        _print_table(rows, args.reset)
    return 0


def _group_lag(admin: Admin, group: str, topics: list[str]) -> GroupLag | None:
    """Return the group's lag; None: it neither exists nor has committed anything.

    A group that rebalances is asked again, unless topics are named.
    """
    deadline = time.monotonic() + (0.0 if topics else REBALANCE_WAIT)
    while True:
        try:
            lag = admin.consumer_group_lag([group], topics=topics or None)[group]
        except GroupIdNotFound:
            return None
        if lag.state.name not in _REBALANCING or time.monotonic() >= deadline:
            return lag
        time.sleep(_ASK_AGAIN)


def _say_nothing(group: str) -> None:
    say(f"group {group} has committed nothing, and has no members that subscribe")


def _say_what_is_not_known(lag: GroupLag, *, are_named: bool) -> None:
    """Say what is missing, and why.

    Raises:
        KafkaError: it could have been known, had a node answered in time.
    """
    error = lag.members_error
    if isinstance(error, KafkaTimeoutError):
        raise error
    if isinstance(error, GroupIdNotFound):
        if are_named:
            say(f"there is no group {lag.group_id} (yet)")
    elif error is not None:
        say(f"what the members of group {lag.group_id} subscribe to is not known: {error}")
    elif lag.state.name in _REBALANCING and not are_named:
        say(
            f"group {lag.group_id} is rebalancing: what its members subscribe to is not known now, "
            "and topics of which it has committed nothing may be missing here"
        )
    committed = {one.partition.topic for one in lag.partitions if one.committed is not None}
    for topic, topic_error in lag.topic_errors.items():
        _raise_unless_absent(topic_error)
        when = "any more, or it may not be seen" if topic in committed else None
        say(f"there is no topic {topic!r} {when or '(yet), or it may not be seen'}")
    for partition_error in lag.errors.values():
        _raise_unless_absent(partition_error)


def _raise_unless_absent(error: KafkaError) -> None:
    if not isinstance(error, (UnknownTopicOrPartition, TopicAuthorizationFailed)):
        raise error


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


def _print_table(rows: list[Row], reset: str) -> None:
    cells: list[tuple[str, ...]] = [_HEAD]
    for row in rows:
        committed = "none" if row.committed is None else str(row.committed)
        numbers = ("-" if number is None else str(number) for number in (row.end, row.lag))
        cells.append((*map(str, row.partition), committed, *numbers))
    total = str(sum(row.lag or 0 for row in rows))
    cells.append(("TOTAL", "", "", "", total))
    width = max(len(topic) for topic, *_ in cells)
    for topic, *others in cells:
        print(f"{topic:<{width}}" + "".join(f"{cell:>14}" for cell in others))
    count = sum(row.committed is None for row in rows)
    if count:
        start = "beginning of the log (--reset latest: from its end)"
        if reset == "latest":
            start = "end of the log (--reset earliest: from its beginning)"
        noun = "partition has" if count == 1 else "partitions have"
        say(f"{count} {noun} no committed offset: the lag counts from the {start}")


def _print_json(group: str, state: str | None, rows: list[Row]) -> None:
    report = {
        "group": group,
        "state": state,
        "total_lag": sum(row.lag or 0 for row in rows),
        "partitions": [
            {
                "topic": row.partition.topic,
                "partition": row.partition.partition,
                "beginning": row.beginning,
                "committed": row.committed,
                "end": row.end,
                "lag": row.lag,
            }
            for row in rows
        ],
    }
    print(json.dumps(report))  # in ASCII, which every encoding of standard output can write
