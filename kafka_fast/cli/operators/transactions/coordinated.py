"""`kafka-fast txn list` and `describe`: transactions, as their coordinators know them."""

from __future__ import annotations

import argparse
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.names import whole_number
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.described import told
from kafka_fast.cli.records.points import parse_duration
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.times import iso_time

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import TransactionDescription

LIST_EXAMPLES = """examples:
  kafka-fast txn
  kafka-fast txn list --state ongoing --open-for 10m
  kafka-fast txn list --pattern 'billing-.*' -o json
"""

DESCRIBE_EXAMPLES = """examples:
  kafka-fast txn describe billing-1
  kafka-fast txn describe billing-1 -o json | jq '.transactions[].partitions'
"""

LISTED = (
    ReportColumn("TRANSACTIONAL ID"),
    ReportColumn("STATE"),
    ReportColumn("PRODUCER ID", is_number=True),
)

DESCRIBED = (
    *LISTED,
    ReportColumn("EPOCH", is_number=True),
    ReportColumn("OPEN FOR"),
    ReportColumn("PARTITIONS"),
    ReportColumn("SINCE", is_wide=True),
    ReportColumn("TIMEOUT", is_wide=True),
)

_STATES = {
    "empty": "EMPTY",
    "ongoing": "ONGOING",
    "prepare-commit": "PREPARE_COMMIT",
    "prepare-abort": "PREPARE_ABORT",
    "complete-commit": "COMPLETE_COMMIT",
    "complete-abort": "COMPLETE_ABORT",
    "prepare-epoch-fence": "PREPARE_EPOCH_FENCE",
    "dead": "DEAD",
}
"""Word -> name of its `TransactionState`."""

_MILLISECOND = timedelta(milliseconds=1)


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add which transactions are listed."""
    parser.add_argument(
        "--state",
        choices=tuple(_STATES),
        action="append",
        default=[],
        help="only in this state; may be repeated",
    )
    parser.add_argument(
        "--producer-id",
        metavar="N",
        type=whole_number,
        action="append",
        default=[],
        help="only of this producer; may be repeated",
    )
    parser.add_argument(
        "--open-for",
        metavar="DURATION",
        type=parse_duration,
        help="only those with a transaction that is open for longer, such as 10m (Kafka 3.8)",
    )
    parser.add_argument(
        "--pattern",
        metavar="RE",
        help="only ids that this regular expression (RE2J) matches as a whole (Kafka 4.1)",
    )


def list_all(admin: Admin, args: argparse.Namespace) -> Report:
    """Return the transactional ids that were asked for."""
    from kafka_fast.admin import TransactionState

    listed = admin.list_transactions(
        states=[TransactionState[_STATES[state]] for state in args.state],
        producer_ids=args.producer_id,
        min_duration_ms=None if args.open_for is None else args.open_for // _MILLISECOND,
        transactional_id_pattern=args.pattern,
    )
    entries = [
        {
            "transactional_id": one.transactional_id,
            "state": told(one.state.value),
            "producer_id": one.producer_id,
        }
        for one in sorted(listed.values(), key=lambda one: one.transactional_id)
    ]
    return Report(
        document={"transactions": entries},
        table=ReportTable(LISTED, [tuple(entry.values()) for entry in entries]),
        errors=listed.errors,
        noun="broker",
        when_empty="there is no such transaction that this client may see",
    )


def add_ids(parser: argparse.ArgumentParser) -> None:
    """Add the names."""
    parser.add_argument("transactional_id", nargs="+", help="transactional.id of a producer")


def describe(admin: Admin, args: argparse.Namespace) -> Report:
    """Return what the coordinators know of these."""
    described = admin.describe_transactions(list(dict.fromkeys(args.transactional_id)))
    known = described.succeeded.items()
    return Report(
        document={"transactions": [_entry(name, one) for name, one in known]},
        table=ReportTable(DESCRIBED, [_row(name, one) for name, one in known]),
        errors=described.errors,
        noun="transactional_id",
    )


def _row(name: str, one: TransactionDescription) -> tuple[object, ...]:
    open_for = None if one.start_ms is None else max(0, time.time() * 1000 - one.start_ms)
    return (
        name,
        told(one.state.value),
        one.producer_id,
        one.producer_epoch,
        None if open_for is None else str(timedelta(seconds=int(open_for / 1000))),
        " ".join(f"{at.topic}:{at.partition}" for at in sorted(one.partitions)) or None,
        None if one.start_ms is None else iso_time(one.start_ms),
        str(timedelta(milliseconds=one.timeout_ms)),
    )


def _entry(name: str, one: TransactionDescription) -> dict[str, object]:
    return {
        "transactional_id": name,
        "state": told(one.state.value),
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "timeout_ms": one.timeout_ms,
        "start_ms": one.start_ms,
        "partitions": [partition._asdict() for partition in sorted(one.partitions)],
    }


LIST = Verb(
    "list",
    help="which transactional ids there are, in which states",
    description="List the transactional ids that brokers coordinate, with their states. Changes "
    "nothing. Needs Kafka 3.0.",
    add_arguments=add_filters,
    run=list_all,
    examples=LIST_EXAMPLES,
)

DESCRIBE = Verb(
    "describe",
    help="transactions: since when they are open, to which partitions they write",
    description="Show transactional ids with their transactions, and the partitions to which these "
    "write. Changes nothing. Needs Kafka 3.0.",
    add_arguments=add_ids,
    run=describe,
    examples=DESCRIBE_EXAMPLES,
)
