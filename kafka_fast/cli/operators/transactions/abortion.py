"""`kafka-fast txn abort`: end a transaction in one partition that nobody else will end."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_fast import TopicPartition
from kafka_fast.cli.frame.asking import is_confirmed
from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.names import check_names, whole_number
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import KafkaError

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import ProducerState

EXAMPLES = """examples:
  kafka-fast txn abort orders 3 --start-offset 4711 --dry-run
  kafka-fast txn abort orders 3 --producer-id 12 --yes
"""

COLUMNS = (
    ReportColumn("TOPIC"),
    ReportColumn("PARTITION", is_number=True),
    ReportColumn("START OFFSET", is_number=True),
    ReportColumn("PRODUCER ID", is_number=True),
    ReportColumn("EPOCH", is_number=True),
    ReportColumn("OUTCOME"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the partition, and which of its transactions."""
    parser.add_argument("topic", help="its name")
    parser.add_argument("partition", type=whole_number, help="in which it is open")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--start-offset", metavar="N", type=whole_number, help="the one that began at this offset"
    )
    which.add_argument(
        "--producer-id", metavar="N", type=whole_number, help="the one of this producer"
    )


def run(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Look for the transaction, ask, and abort it."""
    check_names([args.topic])
    partition = TopicPartition(args.topic, args.partition)
    producers = admin.describe_producers([partition])
    errors: dict[TopicPartition, KafkaError] = producers.errors
    producer = _chosen(producers.succeeded.get(partition, ()), args)
    if producer is None:
        if not errors:
            which = f"began at offset {args.start_offset}"
            if args.producer_id is not None:
                which = f"is of producer {args.producer_id}"
            errors[partition] = KafkaError(f"{partition} has no open transaction that {which}")
    elif not args.dry_run:
        question = (
            f"abort the transaction of producer {producer.producer_id} in {partition}, from "
            f"offset {producer.transaction_start_offset} on?"
        )
        if not is_confirmed(args, question):
            return None
        admin.abort_transaction(
            partition,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            coordinator_epoch=producer.coordinator_epoch or 0,
        )
    aborted = [producer] if producer else []
    text = outcome_text("aborted", is_dry_run=args.dry_run)
    return Report(
        document={
            "dry_run": args.dry_run,
            "transactions": [
                {
                    **partition._asdict(),
                    "outcome": "aborted",
                    "start_offset": one.transaction_start_offset,
                    "producer_id": one.producer_id,
                    "producer_epoch": one.producer_epoch,
                }
                for one in aborted
            ],
        },
        table=ReportTable(
            COLUMNS,
            [
                (
                    *partition,
                    one.transaction_start_offset,
                    one.producer_id,
                    one.producer_epoch,
                    text,
                )
                for one in aborted
            ],
        ),
        errors=errors,
    )


def _chosen(producers: Iterable[ProducerState], args: argparse.Namespace) -> ProducerState | None:
    """Return the producer whose open transaction is meant; None: there is no such transaction."""
    for one in producers:
        if one.transaction_start_offset is None:
            continue
        if args.producer_id is None:
            if one.transaction_start_offset == args.start_offset:
                return one
        elif one.producer_id == args.producer_id:
            return one
    return None


ABORT = Verb(
    "abort",
    help="abort a transaction in one partition",
    description="Abort a transaction in one partition that no coordinator will end: kafka-fast "
    "txn hanging finds these. One that a coordinator still knows is aborted behind its back. This "
    "cannot be undone: on a terminal it asks, elsewhere it needs --yes.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
    changes=True,
    asks=True,
)
