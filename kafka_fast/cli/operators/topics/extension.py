"""`kafka-fast topics partitions`: add partitions to a topic."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.names import check_names, positive
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.topics.assignments import add_assignment, assignments_of
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import UsageError

if TYPE_CHECKING:
    from kafka_fast import Admin

EXAMPLES = """examples:
  kafka-fast topics partitions orders 24
  kafka-fast topics partitions orders 24 --dry-run
  kafka-fast topics partitions pinned 3 --assignment 2:1,2
"""

COLUMNS = (
    ReportColumn("TOPIC"),
    ReportColumn("PARTITIONS", is_number=True),
    ReportColumn("OUTCOME"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the topic and the number."""
    parser.add_argument("topic", help="its name")
    parser.add_argument(
        "count",
        type=positive,
        help="how many partitions the topic is to have, with those that it has",
    )
    add_assignment(parser, "; then for all new partitions")


def run(admin: Admin, args: argparse.Namespace) -> Report:
    """Add the partitions."""
    from kafka_fast.admin import NewPartitions

    check_names([args.topic])
    total: int = args.count
    brokers = _brokers(assignments_of(args.assignment), total)
    partitions = {args.topic: NewPartitions(total, brokers)}
    errors = admin.create_partitions(partitions, validate_only=args.dry_run).errors
    entries = [] if errors else [{"topic": args.topic, "outcome": "extended", "partitions": total}]
    text = outcome_text("extended", is_dry_run=args.dry_run)
    return Report(
        document={"dry_run": args.dry_run, "topics": entries},
        table=ReportTable(
            COLUMNS, [(entry["topic"], entry["partitions"], text) for entry in entries]
        ),
        errors=errors,
    )


def _brokers(
    assignments: Mapping[int, tuple[int, ...]], total: int
) -> Sequence[tuple[int, ...]] | None:
    """Return the brokers of the last partitions, which are the new ones; None: not given.

    Raises:
        UsageError: these are no last partitions.
    """
    if not assignments:
        return None
    last = range(total - len(assignments), total)
    if [*assignments] != [*last]:
        raise UsageError(
            f"of {total} partitions the last {len(assignments)} have the numbers {last.start} to "
            f"{last.stop - 1}: --assignment is for each new one"
        )
    return list(assignments.values())


PARTITIONS = Verb(
    "partitions",
    help="add partitions to a topic",
    description="Add partitions to a topic. Keys then go to other partitions than before, and no "
    "partition can be taken away again.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
    changes=True,
)
