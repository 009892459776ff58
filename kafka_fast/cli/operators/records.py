"""`kafka-fast records delete`: move the beginnings of logs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kafka_fast import TopicPartition
from kafka_fast.cli.frame.asking import is_confirmed
from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.names import check_names, counted
from kafka_fast.cli.frame.nouns import Noun, Verb
from kafka_fast.cli.operators.described import split_known
from kafka_fast.cli.operators.partition_files import read_partitions
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import KafkaError, PositionError, UsageError
from kafka_fast.values import Value

if TYPE_CHECKING:
    from kafka_fast import Admin

EXAMPLES = """examples:
  kafka-fast records delete orders 0:100 1:250      what is before these offsets
  kafka-fast records delete orders 0:end --dry-run
  kafka-fast records delete --file offsets.json --yes

The file is one of kafka-delete-records.sh:
  {"partitions": [{"topic": "orders", "partition": 0, "offset": 100}],
   "version": 1}
"""

COLUMNS = (
    ReportColumn("TOPIC"),
    ReportColumn("PARTITION", is_number=True),
    ReportColumn("BEGINNING", is_number=True),
    ReportColumn("END", is_number=True, is_wide=True),
    ReportColumn("OUTCOME"),
)

END = -1
"""In place of an offset: the high watermark, so that nothing is left."""

_POINT = re.compile(r"([0-9]{1,9}):([0-9]{1,18}|end)")
_LAST_OFFSET = 2**63 - 1


class Cut(Value):
    """Where a log is to begin."""

    partition: TopicPartition
    beginning: int
    """Where the log begins now."""
    end: int
    """Its high watermark."""
    offset: int
    """Where it is to begin."""

    @property
    def count(self) -> int:
        """Number of offsets that are cut off."""
        return max(0, self.offset - self.beginning)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the offsets, or their file."""
    parser.add_argument("topic", nargs="?", help="its records are deleted")
    parser.add_argument(
        "point",
        nargs="*",
        metavar="PARTITION:OFFSET",
        type=_point,
        help="the first offset that a partition keeps; end: it keeps none of its records",
    )
    parser.add_argument(
        "-f", "--file", help="take topics, partitions and offsets from this JSON; -1: end"
    )


def run(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Delete the records; without --yes look first which these are, and ask."""
    offsets = _offsets(args)
    errors: dict[TopicPartition, KafkaError] = {}
    if not args.yes or args.dry_run:
        cuts, errors = _cuts(admin, offsets)
        if args.dry_run:
            return _plan(cuts, errors)
        if cuts and not _is_wanted(args, cuts):
            return None
        offsets = {cut.partition: offsets[cut.partition] for cut in cuts}
    result = admin.delete_records(offsets) if offsets else None
    beginnings = result.succeeded if result else {}
    if result:
        errors |= result.errors
    entries = [
        {**_entry(partition), "outcome": "deleted", "beginning": beginning}
        for partition, beginning in beginnings.items()
    ]
    return Report(
        document={"dry_run": False, "partitions": entries},
        table=ReportTable(
            COLUMNS[:3] + COLUMNS[4:],
            [(*partition, beginning, "deleted") for partition, beginning in beginnings.items()],
        ),
        errors=errors,
    )


def _plan(cuts: list[Cut], errors: Mapping[TopicPartition, KafkaError]) -> Report:
    entries = [
        {
            **_entry(cut.partition),
            "outcome": "deleted",
            "beginning": max(cut.beginning, cut.offset),
            "deleted": cut.count,
            "end": cut.end,
        }
        for cut in cuts
    ]
    return Report(
        document={"dry_run": True, "partitions": entries},
        table=_plan_table(cuts),
        errors=errors,
    )


def _plan_table(cuts: list[Cut]) -> ReportTable:
    outcome = outcome_text("deleted", is_dry_run=True)
    rows = [
        (
            *cut.partition,
            max(cut.beginning, cut.offset),
            cut.end,
            f"{counted(cut.count, 'offset')} {outcome}",
        )
        for cut in cuts
    ]
    return ReportTable(COLUMNS, rows)


def _cuts(
    admin: Admin, offsets: Mapping[TopicPartition, int]
) -> tuple[list[Cut], dict[TopicPartition, KafkaError]]:
    """Return what would be cut off the logs, and what is wrong with the other partitions."""
    from kafka_fast.admin import OffsetSpec

    there, errors = split_known(admin, offsets)
    firsts = admin.list_offsets(dict.fromkeys(there, OffsetSpec.EARLIEST))
    ends = admin.list_offsets(dict.fromkeys(there, OffsetSpec.LATEST))  # the high watermarks
    errors.update(firsts.errors.items())
    errors.update(ends.errors.items())
    cuts = []
    for partition in there:
        if partition in errors:
            continue
        offset, end = offsets[partition], ends[partition].offset
        if offset > end:
            errors[partition] = PositionError(
                f"{partition} ends at offset {end}, before {offset}",
                topic=partition.topic,
                partition=partition.partition,
                offset=offset,
            )
        else:
            first = firsts[partition].offset
            cuts.append(Cut(partition, first, end, end if offset == END else offset))
    return cuts, errors


def _is_wanted(args: argparse.Namespace, cuts: list[Cut]) -> bool:
    total = counted(sum(cut.count for cut in cuts), "offset")
    where = counted(len(cuts), "partition")
    question = f"delete the records of {total} in {where}?"
    return is_confirmed(args, question, _plan_table(cuts).narrow())


def _entry(partition: TopicPartition) -> dict[str, object]:
    return {"topic": partition.topic, "partition": partition.partition}


# ---- what is to be deleted ----


def _offsets(args: argparse.Namespace) -> dict[TopicPartition, int]:
    """Return the first offset that each partition keeps.

    Raises:
        UsageError: nothing is named, or a partition twice, or the file is not as it must be.
    """
    if args.file is not None:
        if args.topic is not None:
            raise UsageError("--file has the topics: leave what is named beside it out")
        return read_partitions(args.file, _offset_of_entry, "offset, from -1 on")
    if not args.point:
        raise UsageError("say which records: TOPIC PARTITION:OFFSET ..., or --file FILE")
    check_names([args.topic])
    offsets: dict[TopicPartition, int] = {}
    for number, offset in args.point:
        _add(offsets, TopicPartition(args.topic, number), offset)
    return offsets


def _offset_of_entry(_partition: TopicPartition, fields: Mapping[str, Any]) -> int | None:
    offset = fields.get("offset")
    return offset if type(offset) is int and END <= offset <= _LAST_OFFSET else None


def _add(offsets: dict[TopicPartition, int], partition: TopicPartition, offset: int) -> None:
    if partition in offsets:
        raise UsageError(f"{partition} is named twice")
    offsets[partition] = offset


def _point(text: str) -> tuple[int, int]:
    match = _POINT.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected PARTITION:OFFSET, such as 0:100, not {text!r}")
    return int(match[1]), END if match[2] == "end" else int(match[2])


NOUN = Noun(
    "records",
    help="delete records",
    description="Delete the oldest records of partitions.",
    verbs=(
        Verb(
            "delete",
            help="delete the records before an offset",
            description="Delete the records before an offset of each partition. This cannot be "
            "undone: on a terminal it asks, elsewhere it needs --yes.",
            add_arguments=add_arguments,
            run=run,
            examples=EXAMPLES,
            changes=True,
            asks=True,
        ),
    ),
)

add_parser = NOUN.add_parser
