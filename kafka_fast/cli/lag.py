"""`kafka-fast lag`: how far a group is behind the ends of what it reads."""

from __future__ import annotations

import argparse
import sys

from kafka_fast import Consumer, TopicPartition
from kafka_fast.cli.connection import add_connection, configuration
from kafka_fast.errors import UsageError

_NOTHING = 1


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "lag",
        help="print how far a group is behind",
        description="Print the committed offset, the end and the distance between them for every "
        "partition of which a group has committed an offset. Joins nothing, changes nothing.",
    )
    parser.add_argument("group")
    parser.add_argument("topic", nargs="*", help="only these; default: all that there are")
    add_connection(parser, "consumer")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print one line for each partition and one for all; 1 if nothing is committed."""
    if not args.group:
        raise UsageError("the group has no name")
    config = {**configuration(args, "consumer"), "group.id": args.group}
    with Consumer(config) as consumer:
        partitions = [
            TopicPartition(topic, it.partition)
            for topic in (args.topic or sorted(consumer.topics()))
            for it in consumer.partitions_for(topic)
        ]
        found = consumer.committed(partitions)
        committed = {it: at.offset for it in partitions if (at := found[it]) is not None}
        if not committed:
            print(f"kafka-fast: group {args.group} has committed nothing", file=sys.stderr)
            return _NOTHING
        ends = consumer.end_offsets(committed)
    rows: list[tuple[str, ...]] = [("TOPIC", "PARTITION", "COMMITTED", "END", "LAG")]
    total = 0
    for partition, offset in committed.items():
        lag = max(0, ends[partition] - offset)
        total += lag
        rows.append(tuple(map(str, (*partition, offset, ends[partition], lag))))
    width = max(len(row[0]) for row in rows)
    for topic, *numbers in rows:
        print(f"{topic:<{width}}" + "".join(f"{number:>14}" for number in numbers))
    print(f"{'':<{width}}{total:>56}")
    return 0
