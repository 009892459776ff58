"""`kafka-fast topics describe`: the partitions of topics, with leaders and replicas."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.names import check_names
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.listed import real_errors
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import Alarm, ReportColumn, ReportTable

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import TopicDescription, TopicPartitionInfo

EXAMPLES = """examples:
  kafka-fast topics describe orders
  kafka-fast topics describe --under-replicated
  kafka-fast topics describe -o json | jq '.topics[].partitions[].leader'
"""

COLUMNS = (
    ReportColumn("TOPIC"),
    ReportColumn("PARTITION", is_number=True),
    ReportColumn("LEADER", is_number=True),
    ReportColumn("REPLICAS"),
    ReportColumn("ISR"),
    ReportColumn("OFFLINE"),
    ReportColumn("EPOCH", is_number=True, is_wide=True),
    ReportColumn("ELR", is_wide=True),
    ReportColumn("LAST ELR", is_wide=True),
    ReportColumn("ID", is_wide=True),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the names, and the choice of partitions."""
    parser.add_argument("topic", nargs="*", help="only these; default: all")
    parser.add_argument("--by-id", action="store_true", help="the names are ids (Kafka 3.1)")
    parser.add_argument(
        "--internal", action="store_true", help="also those that brokers keep for themselves"
    )
    parser.add_argument(
        "--under-replicated",
        action="store_true",
        help="only partitions with a replica that is not in sync",
    )
    parser.add_argument(
        "--unavailable", action="store_true", help="only partitions without a leader"
    )


def run(admin: Admin, args: argparse.Namespace) -> Report:
    """Return the partitions that were asked for."""
    if not args.by_id:
        check_names(args.topic)
    names = args.topic or admin.list_topics(include_internal=args.internal)
    described = admin.describe_topics(names, by_id=args.by_id and bool(args.topic))
    topics = sorted(described.succeeded.values(), key=lambda topic: topic.name)
    shown = [(topic, _chosen(topic.partitions, args)) for topic in topics]
    is_filtered = args.under_replicated or args.unavailable
    if is_filtered:
        shown = [(topic, partitions) for topic, partitions in shown if partitions]
    return Report(
        document={"topics": [_entry(topic, partitions) for topic, partitions in shown]},
        table=ReportTable(
            COLUMNS,
            [_row(topic, partition) for topic, partitions in shown for partition in partitions],
        ),
        errors=described.errors if args.topic else real_errors(described.errors),
        when_empty="there is no such partition"
        if is_filtered
        else "there is no topic that this client may see",
    )


def _chosen(
    partitions: Iterable[TopicPartitionInfo], args: argparse.Namespace
) -> list[TopicPartitionInfo]:
    return [
        partition
        for partition in partitions
        if not args.under_replicated or _is_under_replicated(partition)
        if not args.unavailable or partition.leader is None
    ]


def _is_under_replicated(partition: TopicPartitionInfo) -> bool:
    return len(partition.isr) < len(partition.replicas)


def _row(topic: TopicDescription, partition: TopicPartitionInfo) -> tuple[object, ...]:
    isr, offline = partition.isr, partition.offline_replicas
    return (
        topic.name,
        partition.partition,
        Alarm(None) if partition.leader is None else partition.leader,
        partition.replicas,
        Alarm(isr) if _is_under_replicated(partition) else isr,
        Alarm(offline) if offline else offline,
        partition.leader_epoch,
        partition.elr,
        partition.last_known_elr,
        topic.topic_id,
    )


def _entry(topic: TopicDescription, partitions: Iterable[TopicPartitionInfo]) -> dict[str, object]:
    return {
        "topic": topic.name,
        "id": topic.topic_id,
        "internal": topic.is_internal,
        "partitions": [
            {
                "partition": partition.partition,
                "leader": partition.leader,
                "leader_epoch": partition.leader_epoch,
                "replicas": partition.replicas,
                "isr": partition.isr,
                "offline": partition.offline_replicas,
                "elr": partition.elr,
                "last_known_elr": partition.last_known_elr,
            }
            for partition in partitions
        ],
    }


DESCRIBE = Verb(
    "describe",
    help="the partitions of topics: leaders, replicas, what is not in sync",
    description="Show each partition of the topics: the broker that leads it, and the brokers that "
    "have a replica, are in sync, or are offline. Changes nothing.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
)
