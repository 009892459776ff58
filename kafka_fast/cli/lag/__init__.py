"""`kafka-fast lag`: how far groups are behind the ends of their partitions.

The command imports these when it runs:

    looks     asks, and keeps what is shown of each group
    figures   as a table or as JSON
    watching  again and again: on a terminal in one place, elsewhere one below the other
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import timedelta

from kafka_fast.cli.connection import add_connection, configuration, group_id
from kafka_fast.cli.records.points import parse_duration
from kafka_fast.cli.showing.reports import FORMS
from kafka_fast.cli.showing.standard_error import say
from kafka_fast.errors import GroupIdNotFound, UnknownTopicOrPartition, UsageError

EXAMPLES = """examples:
  kafka-fast lag                                all groups, with a line each
  kafka-fast lag audit                          all topics of the group
  kafka-fast lag audit events -o json | jq .total_lag
  kafka-fast lag audit --watch --every 5s
"""

EVERY = timedelta(seconds=2)

_FAILED = 1


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "lag",
        help="print how far groups are behind",
        description="Print the committed offset, the end and the distance between them for every "
        "partition of the topics that a group has committed offsets of or that its members "
        "subscribe to. Without a group: a line for each group of the cluster. Joins nothing, "
        "changes nothing.",
        epilog=EXAMPLES,
    )
    parser.add_argument("group", nargs="?", help="its id; default: all groups of consumers")
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
        choices=FORMS,
        default="text",
        help="table, wide: drawn by the package rich, if it is installed; json, yaml: one object, "
        "for programs (default %(default)s)",
    )
    parser.add_argument(
        "--watch",
        action="store_true",
        help="look again and again until Ctrl-C: on a terminal in one place, elsewhere one table "
        "below the other, or one object a line",
    )
    parser.add_argument(
        "--every",
        metavar="TIME",
        type=parse_duration,
        default=EVERY,
        help="how long --watch waits between two looks, such as 10s (default 2s)",
    )
    add_connection(parser, "consumer")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the figures, once or until Ctrl-C; return 1 if there are none, or not all."""
    from kafka_fast import Admin
    from kafka_fast.cli.lag.figures import print_look
    from kafka_fast.cli.lag.looks import look_at
    from kafka_fast.cli.lag.watching import watch

    if args.group == "":
        raise UsageError("the group has no name")
    if not args.every:
        raise UsageError("--every is longer than nothing")
    if args.watch and args.output not in ("text", "json"):
        raise UsageError("--watch shows text or JSON: --output text or json")
    config = configuration(args, "consumer")
    group_id(config, args.group)
    with Admin(config) as admin:
        if args.watch:
            return watch(admin, args)
        look = look_at(admin, args.group, args.topic, args.reset)
    for note in look.notes:
        say(note)
    if look.is_empty:
        _say_nothing(args, look.notes)
        return _FAILED
    print_look(look, args.output)
    for error in look.errors.values():
        say(str(error))
    return _FAILED if look.errors else 0


def _say_nothing(args: argparse.Namespace, notes: Sequence[str]) -> None:
    """Say why there is nothing to show, unless that was said."""
    from kafka_fast.cli.showing.reports import show_failure

    text = "; ".join(notes)
    if not text:
        text = f"group {args.group} has committed nothing, and has no members that subscribe"
        say(text)
    error = UnknownTopicOrPartition() if notes else GroupIdNotFound()
    show_failure(error, text, args.output)
