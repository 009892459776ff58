"""`kafka-fast topics offsets`: where the logs of topics begin and end, or where a time is."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from kafka_fast import TopicPartition
from kafka_fast.cli.frame.names import check_names, whole_number
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.listed import real_errors
from kafka_fast.cli.records.points import BEGINNING, END, Point, parse_point
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import KafkaError, UnknownTopicOrPartition
from kafka_fast.times import iso_time

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import ListedOffset, OffsetSpec, TopicDescription

EXAMPLES = """examples:
  kafka-fast topics offsets orders
  kafka-fast topics offsets orders --at earliest
  kafka-fast topics offsets orders --at -1h
  kafka-fast topics offsets orders --at max-timestamp -o wide
"""

COLUMNS = (
    ReportColumn("TOPIC"),
    ReportColumn("PARTITION", is_number=True),
    ReportColumn("OFFSET", is_number=True),
    ReportColumn("TIMESTAMP", is_wide=True),
    ReportColumn("EPOCH", is_number=True, is_wide=True),
)

_SPECS = {
    "earliest": "EARLIEST",
    "latest": "LATEST",
    "max-timestamp": "MAX_TIMESTAMP",
    "earliest-local": "EARLIEST_LOCAL",
    "latest-tiered": "LATEST_TIERED",
    "earliest-pending-upload": "EARLIEST_PENDING_UPLOAD",
}
"""Word -> name of its `OffsetSpec`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the names, and which offsets."""
    parser.add_argument("topic", nargs="*", help="only these; default: all")
    parser.add_argument(
        "--at",
        metavar="POINT",
        type=_point,
        default="latest",
        help=f"{', '.join(_SPECS)}, or the first record that is not older than a time: now, "
        "-1h30m, an ISO time, @MS (default latest)",
    )
    parser.add_argument(
        "--partition",
        metavar="N",
        type=whole_number,
        action="append",
        default=[],
        help="only this partition of each topic; may be repeated",
    )
    parser.add_argument(
        "--read-committed",
        action="store_true",
        help="latest is the last stable offset, where the first open transaction begins",
    )


def run(admin: Admin, args: argparse.Namespace) -> Report:
    """Return the offsets that were asked for."""
    from kafka_fast.admin import IsolationLevel, OffsetSpec

    check_names(args.topic)
    place = args.at.time if isinstance(args.at, Point) else OffsetSpec[args.at]
    described = admin.describe_topics(args.topic or admin.list_topics())
    errors: dict[str | TopicPartition, KafkaError] = {}
    errors.update(described.errors if args.topic else real_errors(described.errors))
    offsets: dict[TopicPartition, OffsetSpec | int | datetime] = dict.fromkeys(
        _chosen(described.succeeded, args, errors), place
    )
    listed = admin.list_offsets(offsets, isolation_level=IsolationLevel(int(args.read_committed)))
    errors.update(listed.errors.items())
    places = sorted(listed.succeeded.items())
    return Report(
        document={"partitions": [_entry(partition, at) for partition, at in places]},
        table=ReportTable(
            COLUMNS,
            [
                (
                    *partition,
                    at.offset if at.offset >= 0 else None,
                    None if at.timestamp_ms is None else iso_time(at.timestamp_ms),
                    at.leader_epoch,
                )
                for partition, at in places
            ],
        ),
        errors=errors,
        when_empty="there is no such partition",
    )


def _chosen(
    topics: Mapping[str, TopicDescription],
    args: argparse.Namespace,
    errors: dict[str | TopicPartition, KafkaError],
) -> list[TopicPartition]:
    """Return the partitions that are meant; add to the errors those that are not there."""
    chosen = []
    for name, topic in topics.items():
        numbers = [one.partition for one in topic.partitions]
        for number in args.partition or numbers:
            partition = TopicPartition(name, number)
            if number in numbers:
                chosen.append(partition)
            elif args.topic:
                errors[partition] = UnknownTopicOrPartition(f"there is no partition {partition}")
    return chosen


def _entry(partition: TopicPartition, at: ListedOffset) -> dict[str, object]:
    return {
        **partition._asdict(),
        "offset": at.offset if at.offset >= 0 else None,
        "timestamp_ms": at.timestamp_ms,
        "leader_epoch": at.leader_epoch,
    }


def _point(text: str) -> str | Point:
    if text in _SPECS:
        return _SPECS[text]
    point = parse_point(text)
    if point in (BEGINNING, END):
        return _SPECS["earliest" if point == BEGINNING else "latest"]
    if point.is_offset:
        raise argparse.ArgumentTypeError(
            f"{text} is an offset: say which to look up, or a time such as @{text}"
        )
    return point


OFFSETS = Verb(
    "offsets",
    help="where logs begin and end, or where a time is",
    description="Show an offset of each partition: the end of its log, or what --at says. Changes "
    "nothing.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
)
