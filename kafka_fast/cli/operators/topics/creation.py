"""`kafka-fast topics create`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.changes import EXISTS, outcome_text
from kafka_fast.cli.frame.names import positive
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.topics.assignments import add_assignment, assignments_of
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import TopicAlreadyExists, UsageError

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import CreatedTopic

EXAMPLES = """examples:
  kafka-fast topics create orders --partitions 12 --replication-factor 3
  kafka-fast topics create audit --config retention.ms=-1
  kafka-fast topics create pinned --assignment 0:1,2 --assignment 1:2,1
"""

COLUMNS = (
    ReportColumn("TOPIC"),
    ReportColumn("PARTITIONS", is_number=True),
    ReportColumn("REPLICAS", is_number=True),
    ReportColumn("OUTCOME"),
    ReportColumn("ID", is_wide=True),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the topics are to be."""
    parser.add_argument("topic", nargs="+", help="names of the new topics, which are made alike")
    parser.add_argument(
        "--partitions",
        metavar="N",
        type=positive,
        help="default: num.partitions of the cluster (Kafka 2.4)",
    )
    parser.add_argument(
        "--replication-factor",
        metavar="N",
        type=positive,
        help="default: default.replication.factor of the cluster (Kafka 2.4)",
    )
    add_assignment(parser, ", in place of the two numbers")
    parser.add_argument(
        "--if-not-exists", action="store_true", help="a topic that is there already is no failure"
    )


def run(admin: Admin, args: argparse.Namespace) -> Report:
    """Create the topics."""
    from kafka_fast.admin import NewTopic

    if args.assignment and (args.partitions or args.replication_factor):
        raise UsageError(
            "--assignment says how many partitions and replicas there are: leave --partitions and "
            "--replication-factor out"
        )
    created = admin.create_topics(
        [
            NewTopic(
                name,
                num_partitions=args.partitions or -1,
                replication_factor=args.replication_factor or -1,
                assignments=assignments_of(args.assignment) or None,
                configs=args.settings,
            )
            for name in dict.fromkeys(args.topic)
        ],
        validate_only=args.dry_run,
    )
    errors = created.errors
    entries = []
    for name in created:
        if name not in errors:
            entries.append(_entry(name, created.succeeded[name], "created"))
        elif args.if_not_exists and isinstance(errors[name], TopicAlreadyExists):
            del errors[name]
            entries.append(_entry(name, None, EXISTS))
    return Report(
        document={"dry_run": args.dry_run, "topics": entries},
        table=ReportTable(
            COLUMNS,
            [
                (
                    entry["topic"],
                    entry["partitions"],
                    entry["replication_factor"],
                    outcome_text(str(entry["outcome"]), is_dry_run=args.dry_run),
                    entry["id"],
                )
                for entry in entries
            ],
        ),
        errors=errors,
    )


def _entry(name: str, topic: CreatedTopic | None, outcome: str) -> dict[str, object]:
    return {
        "topic": name,
        "outcome": outcome,
        "id": topic.topic_id if topic else None,
        "partitions": topic.partition_count if topic else None,
        "replication_factor": topic.replication_factor if topic else None,
        "configs": dict(topic.configs) if topic and topic.configs is not None else None,
    }


CREATE = Verb(
    "create",
    help="create topics",
    description="Create topics, and show what they have become: the cluster has defaults for what "
    "is left out.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
    changes=True,
    takes_settings=True,
)
