"""`kafka-fast topics delete`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.asking import is_confirmed
from kafka_fast.cli.frame.changes import ABSENT, outcome_text
from kafka_fast.cli.frame.names import check_names, counted, some_names
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import KafkaError, UnknownTopicOrPartition

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import TopicDescription

EXAMPLES = """examples:
  kafka-fast topics delete orders audit
  kafka-fast topics delete orders --dry-run
  kafka-fast topics delete orders --if-exists --yes
"""

COLUMNS = (ReportColumn("TOPIC"), ReportColumn("OUTCOME"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the names."""
    parser.add_argument("topic", nargs="+", help="to delete, with all of its records")
    parser.add_argument(
        "--if-exists", action="store_true", help="a topic that is not there is no failure"
    )


def run(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Delete the topics; without --yes look first which there are, and ask."""
    check_names(args.topic)
    names = list(dict.fromkeys(args.topic))
    errors: dict[str, KafkaError] = {}
    deletable = names
    if not args.yes or args.dry_run:
        described = admin.describe_topics(names)
        errors, deletable = described.errors, list(described.succeeded)
        if deletable and not (args.dry_run or _is_wanted(args, described.succeeded)):
            return None
    if deletable and not args.dry_run:
        deleted = admin.delete_topics(deletable)
        errors |= deleted.errors
        deletable = list(deleted.succeeded)
    outcomes = dict.fromkeys(deletable, "deleted")
    for name, error in list(errors.items()):
        if args.if_exists and isinstance(error, UnknownTopicOrPartition):
            outcomes[name] = ABSENT
            del errors[name]
    return Report(
        document={
            "dry_run": args.dry_run,
            "topics": [
                {"topic": name, "outcome": outcomes[name]} for name in names if name in outcomes
            ],
        },
        table=ReportTable(
            COLUMNS,
            [
                (name, outcome_text(outcomes[name], is_dry_run=args.dry_run))
                for name in names
                if name in outcomes
            ],
        ),
        errors=errors,
    )


def _is_wanted(args: argparse.Namespace, topics: Mapping[str, TopicDescription]) -> bool:
    shown = (
        f"{topic.name} ({counted(len(topic.partitions), 'partition')})" for topic in topics.values()
    )
    what = counted(len(topics), "topic")
    return is_confirmed(args, f"delete {what} with all records: {some_names(shown)}?")


DELETE = Verb(
    "delete",
    help="delete topics, with all their records",
    description="Delete topics, with all their records. This cannot be undone: on a terminal it "
    "asks, elsewhere it needs --yes.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
    changes=True,
    asks=True,
)
