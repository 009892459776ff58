"""`kafka-fast lag`: how far a group is behind the ends of what it reads."""

from __future__ import annotations

import argparse
import sys

from kafka_fast import Consumer
from kafka_fast.cli.connection import add_connection, group_id, reader_configuration
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
    config = reader_configuration(args)
    config["group.id"] = group_id(config, args.group)
    with Consumer(config) as consumer:
        committed = {
            partition: at.offset
            for partition, at in sorted(consumer.committed().items())
            if at is not None and (not args.topic or partition.topic in args.topic)
        }
        if not committed:
            where = f" in {', '.join(args.topic)}" if args.topic else ""
            print(f"kafka-fast: group {args.group} has committed nothing{where}", file=sys.stderr)
            return _NOTHING
        gone = {partition.topic for partition in committed} - consumer.topics(internal=True)
        ends = consumer.end_offsets([it for it in committed if it.topic not in gone])
    for topic in sorted(gone):
        print(
            f"kafka-fast: there is no topic {topic!r} any more, or it may not be seen",
            file=sys.stderr,
        )
    rows: list[tuple[str, ...]] = [("TOPIC", "PARTITION", "COMMITTED", "END", "LAG")]
    total = 0
    for partition, offset in committed.items():
        if partition in ends:
            lag = max(0, ends[partition] - offset)
            total += lag
            rows.append(tuple(map(str, (*partition, offset, ends[partition], lag))))
        else:
            rows.append((*map(str, (*partition, offset)), "-", "-"))
    width = max(len(row[0]) for row in rows)
    for topic, *numbers in rows:
        print(f"{topic:<{width}}" + "".join(f"{number:>14}" for number in numbers))
    print(f"{'':<{width}}{total:>56}")
    return 0
