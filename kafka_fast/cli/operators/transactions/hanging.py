"""`kafka-fast txn hanging`: transactions that are open in logs, and that nobody will end."""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.names import check_names, whole_number
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.records.points import parse_duration
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import UsageError
from kafka_fast.times import iso_time

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import HangingTransaction

EXAMPLES = """examples:
  kafka-fast txn hanging --topic orders
  kafka-fast txn hanging --topic orders --partition 3
  kafka-fast txn hanging --broker 1 --max-timeout 1h
"""

COLUMNS = (
    ReportColumn("TOPIC"),
    ReportColumn("PARTITION", is_number=True),
    ReportColumn("START OFFSET", is_number=True),
    ReportColumn("PRODUCER ID", is_number=True),
    ReportColumn("EPOCH", is_number=True),
    ReportColumn("LAST WRITTEN"),
    ReportColumn("COORDINATOR EPOCH", is_number=True, is_wide=True),
    ReportColumn("LAST SEQUENCE", is_number=True, is_wide=True),
)

_MILLISECOND = timedelta(milliseconds=1)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add where to look."""
    parser.add_argument("--topic", metavar="TOPIC", help="in this topic")
    parser.add_argument(
        "--partition", metavar="N", type=whole_number, help="only in this partition of the topic"
    )
    parser.add_argument(
        "--broker",
        metavar="ID",
        type=whole_number,
        help="in the replicas of this broker; without a topic in all of them",
    )
    parser.add_argument(
        "--max-timeout",
        metavar="DURATION",
        type=parse_duration,
        default=timedelta(minutes=15),
        help="transaction.max.timeout.ms of the brokers: what was written to since is not looked "
        "at (default 15m)",
    )


def run(admin: Admin, args: argparse.Namespace) -> Report:
    """Return what hangs there."""
    if args.topic is None and args.broker is None:
        raise UsageError("say where to look: --topic TOPIC or --broker ID")
    if args.partition is not None and args.topic is None:
        raise UsageError("--partition is for --topic")
    check_names([] if args.topic is None else [args.topic])
    hanging = admin.find_hanging_transactions(
        topic=args.topic,
        partition=args.partition,
        broker_id=args.broker,
        max_transaction_timeout_ms=args.max_timeout // _MILLISECOND,
    )
    hanging = sorted(hanging, key=lambda one: (one.partition, one.producer.producer_id))
    return Report(
        document={"transactions": [_entry(one) for one in hanging]},
        table=ReportTable(COLUMNS, [_row(one) for one in hanging]),
        when_empty="no transaction hangs there",
    )


def _row(one: HangingTransaction) -> tuple[object, ...]:
    producer = one.producer
    written = producer.last_timestamp_ms
    return (
        *one.partition,
        producer.transaction_start_offset,
        producer.producer_id,
        producer.producer_epoch,
        iso_time(written) if written >= 0 else None,
        producer.coordinator_epoch,
        producer.last_sequence,
    )


def _entry(one: HangingTransaction) -> dict[str, object]:
    producer = one.producer
    return {
        **one.partition._asdict(),
        "start_offset": producer.transaction_start_offset,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "last_sequence": producer.last_sequence,
        "last_timestamp_ms": producer.last_timestamp_ms,
    }


HANGING = Verb(
    "hanging",
    help="transactions that are open in logs, and that no coordinator will end",
    description="Find transactions that are open in logs, and that no coordinator will end. They "
    "keep readers with isolation.level=read_committed from going on. A transaction that this user "
    "may not see looks like one. Changes nothing. Needs Kafka 3.0.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
)
