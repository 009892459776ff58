"""`kafka-fast lag`: how far a group is behind the ends of its partitions.

The command lists every partition of a topic for which the group has committed an offset, to which a
member subscribes, or which the command line names. A partition without a commit counts as unread
from its log's beginning, unless the group's consumers begin at the end (`--reset latest`).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafka_fast import TopicPartition
from kafka_fast.cli.connection import add_connection, group_id, reader_configuration
from kafka_fast.cli.showing.standard_error import say
from kafka_fast.errors import KafkaError, KafkaTimeoutError, UnknownTopicOrPartition, UsageError

if TYPE_CHECKING:
    from kafka_fast.consumer.group.observer import GroupObserver

REBALANCE_WAIT = 5.0
"""Seconds for which a rebalancing group is asked again: its subscriptions are not known then."""

EXAMPLES = """examples:
  kafka-fast lag audit                          all topics of the group
  kafka-fast lag audit events -o json | jq .total_lag
"""

_ASK_AGAIN = 0.1
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
    from kafka_fast.consumer.group.observer import GroupObserver

    if not args.group:
        raise UsageError("the group has no name")
    config = reader_configuration(args)
    config["group.id"] = group_id(config, args.group)
    observer = GroupObserver(config)
    with observer:
        state, subscribed = _subscriptions(observer, args.group, bool(args.topic))
        committed = {
            partition: at.offset for partition, at in observer.committed().items() if at is not None
        }
        if args.topic:
            committed = {
                partition: at
                for partition, at in committed.items()
                if partition.topic in args.topic
            }
        topics = set(args.topic) or {partition.topic for partition in committed} | subscribed
        if not topics:
            say(f"group {args.group} has committed nothing, and has no members that subscribe")
            return _FAILED
        rows = _rows(observer, sorted(topics), committed, args.reset)
    if not rows:
        return _FAILED  # the reason was printed before
    if args.output == "json":
        _print_json(args.group, state, rows)
    else:
        _print_table(rows, args.reset)
    return 0


def _subscriptions(
    observer: GroupObserver, group: str, are_named: bool
) -> tuple[str | None, frozenset[str]]:
    """Return the group's state, and its members' topics as far as they are known."""
    deadline = time.monotonic() + (0.0 if are_named else REBALANCE_WAIT)
    try:
        while (
            description := observer.description()
        ).is_rebalancing and time.monotonic() < deadline:
            time.sleep(_ASK_AGAIN)
    except KafkaTimeoutError:
        raise
    except KafkaError as error:  # not authorized, for example
        say(f"what the members of group {group} subscribe to is not known: {error}")
        return None, frozenset()
    if not description.exists and are_named:
        say(f"there is no group {group} (yet)")
    elif description.is_rebalancing and not are_named:
        say(
            f"group {group} is rebalancing: what its members subscribe to is not known now, and "
            "topics of which it has committed nothing may be missing here"
        )
    return description.state, description.topics


def _rows(
    observer: GroupObserver,
    topics: Iterable[str],
    committed: Mapping[TopicPartition, int],
    reset: str,
) -> list[Row]:
    there = observer.topics(internal=True)
    partitions: list[TopicPartition] = []
    for topic in topics:
        if topic in there:
            partitions += _partitions(observer, topic)
        else:
            is_old = any(tp.topic == topic for tp in committed)
            when = "any more, or it may not be seen" if is_old else "(yet), or it may not be seen"
            say(f"there is no topic {topic!r} {when}")
    firsts, ends = observer.beginning_offsets(partitions), observer.end_offsets(partitions)
    rows = []
    for partition in sorted({*partitions, *committed}):
        first, end, at = firsts.get(partition), ends.get(partition), committed.get(partition)
        start = at
        if at is None:
            start = first if reset == "earliest" else end
        lag = None if start is None or end is None else max(0, end - start)
        rows.append(Row(partition, first, at, end, lag))
    return rows


def _partitions(observer: GroupObserver, topic: str) -> list[TopicPartition]:
    try:
        return [TopicPartition(topic, info.partition) for info in observer.partitions_for(topic)]
    except UnknownTopicOrPartition:  # deleted since the topics were listed
        say(f"there is no topic {topic!r} any more")
        return []


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
