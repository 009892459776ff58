"""`kafka-fast topics`: the names of topics, and how many partitions each has."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Mapping

from kafka_fast import Consumer
from kafka_fast.cli.connection import add_connection, reader_configuration
from kafka_fast.cli.partitions import check_topics
from kafka_fast.cli.standard_error import say
from kafka_fast.errors import BrokerError

EXAMPLES = """examples:
  kafka-fast topics -b broker:9092
  kafka-fast topics -o json | jq -r '.topics[].topic'
"""

_FAILED = 1
_HEAD = ("TOPIC", "PARTITIONS")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "topics",
        help="list topics and the number of their partitions",
        description="List the topics that this client may see, by name, with the number of their "
        "partitions. Creates nothing, changes nothing.",
        epilog=EXAMPLES,
    )
    parser.add_argument("topic", nargs="*", help="only these; default: all")
    parser.add_argument(
        "--internal", action="store_true", help="also list those that brokers keep for themselves"
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


def run(args: argparse.Namespace) -> int:
    """Print a line for each topic; return 1 if one that was named cannot be listed."""
    check_topics(args.topic)
    with Consumer(reader_configuration(args)) as consumer:
        names = dict.fromkeys(args.topic) or consumer.topics(internal=args.internal)
        counts = _partition_counts(consumer, sorted(names), are_named=bool(args.topic))
    if args.output == "json":
        rows = [{"topic": name, "partitions": count} for name, count in counts.items()]
        print(json.dumps({"topics": rows}))  # in ASCII, for every encoding of the output
    elif counts:
        _print_table(counts)
    elif not args.topic:
        say("there is no topic that this client may see")
    return _FAILED if len(counts) < len(names) and args.topic else 0


def _partition_counts(
    consumer: Consumer, names: Iterable[str], *, are_named: bool
) -> dict[str, int]:
    """Return how many partitions topics have, in their order.

    Args:
        consumer: asks the brokers.
        names: of the topics.
        are_named: whether the user names them. Otherwise one that was deleted since it was listed
            is left out in silence.
    """
    names = list(names)
    try:
        infos = consumer.partitions_for(names) if names else []
        return dict(Counter(info.topic for info in infos))
    except BrokerError:  # of one topic: the others are listed all the same
        counts = ((name, _partition_count(consumer, name, is_named=are_named)) for name in names)
        return {name: count for name, count in counts if count is not None}


def _partition_count(consumer: Consumer, name: str, *, is_named: bool) -> int | None:
    """Return how many partitions a topic has; None: it cannot be listed."""
    try:
        return len(consumer.partitions_for(name))
    except BrokerError as error:
        if is_named:
            say(str(error))
        return None


def _print_table(counts: Mapping[str, int]) -> None:
    width = max(map(len, (_HEAD[0], *counts)))
    print(f"{_HEAD[0]:<{width}}{_HEAD[1]:>14}")
    for name, count in counts.items():
        print(f"{name:<{width}}{count:>14}")
