"""`kafka-fast groups delete-offsets`: forget what a group has committed of some partitions."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.asking import is_confirmed
from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.names import check_names, counted, partitions
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import UsageError

if TYPE_CHECKING:
    from kafka_fast import Admin

EXAMPLES = """examples:
  kafka-fast groups delete-offsets audit --topic orders --dry-run
  kafka-fast groups delete-offsets audit --partition orders:0,1
"""

COLUMNS = (
    ReportColumn("TOPIC"),
    ReportColumn("PARTITION", is_number=True),
    ReportColumn("COMMITTED", is_number=True),
    ReportColumn("OUTCOME"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the group and the partitions."""
    parser.add_argument("group", help="its id")
    parser.add_argument(
        "--topic",
        metavar="TOPIC",
        action="append",
        default=[],
        help="all partitions of this topic; may be repeated",
    )
    parser.add_argument(
        "--partition",
        metavar="TOPIC:N,...",
        type=partitions,
        action="append",
        default=[],
        help="these partitions; may be repeated",
    )


def run(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Forget the offsets; look first which there are, and ask.

    Raises:
        UsageError: no topic and no partition is named.
    """
    check_names(args.topic)
    named = {one for ones in args.partition for one in ones}
    if not named and not args.topic:
        raise UsageError("say of which topics or partitions: --topic, --partition")
    offsets = admin.list_consumer_group_offsets({args.group: None})[args.group]
    committed = {
        one: at.offset
        for one, at in sorted(offsets.succeeded.items())
        if at is not None and (one in named or one.topic in args.topic)
    }
    errors = {
        one: error
        for one, error in offsets.errors.items()
        if one in named or one.topic in args.topic
    }
    done = list(committed)
    if committed and not args.dry_run:
        where = counted(len(committed), "partition")
        plan = ReportTable(COLUMNS[:-1], [(*one, at) for one, at in committed.items()])
        if not is_confirmed(args, f"forget what {args.group} has committed of {where}?", plan):
            return None
        result = admin.delete_consumer_group_offsets(args.group, committed)
        errors |= result.errors
        done = list(result.succeeded)
    outcome = "deleted"
    return Report(
        document={
            "dry_run": args.dry_run,
            "group": args.group,
            "partitions": [
                {**one._asdict(), "committed": committed[one], "outcome": outcome} for one in done
            ],
        },
        table=ReportTable(
            COLUMNS,
            [
                (*one, committed[one], outcome_text(outcome, is_dry_run=args.dry_run))
                for one in done
            ],
        ),
        errors=errors,
        when_empty=f"group {args.group} has committed nothing of that",
    )


DELETE_OFFSETS = Verb(
    "delete-offsets",
    help="forget what a group has committed of partitions",
    description="Forget what a group has committed of partitions: its consumers begin there as "
    "their auto.offset.reset says. On a terminal it asks, elsewhere it needs --yes. Needs Kafka "
    "2.4.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
    changes=True,
    asks=True,
)
