"""`kafka-fast topics list`: the names of topics, and how many partitions each has."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.names import check_names
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.listed import real_errors
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import TopicDescription

EXAMPLES = """examples:
  kafka-fast topics -b broker:9092
  kafka-fast topics list -o json | jq -r '.topics[].topic'
"""

COLUMNS = (
    ReportColumn("TOPIC"),
    ReportColumn("PARTITIONS", is_number=True),
    ReportColumn("REPLICAS", is_number=True, is_wide=True),
    ReportColumn("INTERNAL", is_wide=True),
    ReportColumn("ID", is_wide=True),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the names, and what else is listed."""
    parser.add_argument("topic", nargs="*", help="only these; default: all")
    parser.add_argument(
        "--internal", action="store_true", help="also list those that brokers keep for themselves"
    )


def run(admin: Admin, args: argparse.Namespace) -> Report:
    """Return the topics, by name."""
    check_names(args.topic)
    names = args.topic or admin.list_topics(include_internal=args.internal)
    described = admin.describe_topics(names)
    errors = described.errors if args.topic else real_errors(described.errors)
    topics = [described.succeeded[name] for name in sorted(described.succeeded)]
    return Report(
        document={"topics": [_entry(topic) for topic in topics]},
        table=ReportTable(COLUMNS, [tuple(_entry(topic).values()) for topic in topics]),
        errors=errors,
        when_empty="there is no topic that this client may see",
    )


def _entry(topic: TopicDescription) -> dict[str, object]:
    """Return what is told of a topic; the columns have this order."""
    replicas = {len(partition.replicas) for partition in topic.partitions}
    return {
        "topic": topic.name,
        "partitions": len(topic.partitions),
        "replication_factor": max(replicas, default=0),
        "internal": topic.is_internal,
        "id": topic.topic_id,
    }


LIST = Verb(
    "list",
    help="the topics, and how many partitions each has",
    description="List the topics that this client may see, by name, with the number of their "
    "partitions. Creates nothing, changes nothing.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
)
