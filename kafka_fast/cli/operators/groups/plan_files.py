"""Files that say where groups go on: our plans as JSON, and the CSV of kafka-consumer-groups.

    orders,0,100            topic, partition, offset: of the one group that the command line names
    audit,orders,0,100      group, topic, partition, offset: of several groups

Kafka's script writes such lines with `--export` and reads them with `--from-file`. They have
offsets only, so what they ask for is looked at again: it may be outside of a log by now.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from kafka_fast import TopicPartition
from kafka_fast.cli.operators.described import split_known
from kafka_fast.errors import KafkaError, UsageError

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import ResetPlan

Offsets: TypeAlias = dict[str, dict[TopicPartition, int]]
"""Group -> partition -> offset."""

CSV = ".csv"
"""How the name of a file ends that `--export` writes for Kafka's script."""

_LAST_OFFSET = 2**63 - 1
_LAST_PARTITION = 2**31 - 1
_SHORT, _LONG = 3, 4
"""Columns of a line without and with a group."""


def read_plans(admin: Admin, name: str, groups: Sequence[str]) -> list[ResetPlan]:
    """Return the plans of a file, for these groups.

    Args:
        admin: tells where logs begin and end, and what is committed.
        name: of the file.
        groups: their ids; none: all that are in the file.

    Raises:
        OSError: the file cannot be read.
        UsageError: it is not as it must be, or has not all of the groups.
    """
    from kafka_fast.admin import ResetPlan

    text = Path(name).read_bytes()
    if text.lstrip()[:1] == b"{":
        try:
            plan = ResetPlan.from_json(text)
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from error
        _check_groups(name, groups, [plan.group_id])
        return [plan]
    offsets = _read_csv(name, text, groups)
    _check_groups(name, groups, offsets)
    return _plans(admin, {group: offsets[group] for group in groups or offsets})


def write_plans(name: str, plans: Sequence[ResetPlan]) -> None:
    """Write plans to a file: as CSV if its name ends so, else as JSON.

    Raises:
        OSError: it cannot be written.
        UsageError: there are several, and it is no CSV.
    """
    if not name.endswith(CSV):
        check_export(name, len(plans))
        Path(name).write_text(plans[0].to_json() + "\n", encoding="utf-8")
        return
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    for plan in plans:
        of_group = [plan.group_id] if len(plans) > 1 else []
        writer.writerows([*of_group, *one.partition, one.target] for one in plan.resets)
    Path(name).write_text(lines.getvalue(), encoding="utf-8")


def check_export(name: str, count: int) -> None:
    """Refuse a file that cannot have the plans of so many groups.

    Raises:
        UsageError: there are several, and it is no CSV.
    """
    if count > 1 and not name.endswith(CSV):
        raise UsageError(f"the plans of several groups are a file of CSV: {name}{CSV}")


# ---- CSV ----


def _read_csv(name: str, text: bytes, groups: Sequence[str]) -> Offsets:
    offsets: Offsets = {}
    for number, cells in _rows(name, text):
        place = f"{name}, line {number}"
        if len(cells) not in (_SHORT, _LONG):
            raise UsageError(
                f"{place}: expected TOPIC,PARTITION,OFFSET or GROUP,TOPIC,PARTITION,OFFSET"
            )
        if len(cells) == _SHORT and len(groups) != 1:
            raise UsageError(f"{place}: it names no group, so the command line must name one")
        group = groups[0] if len(cells) == _SHORT else cells[0]
        topic, partition, offset = cells[-_SHORT:]
        if not (group and topic and _is_up_to(partition, _LAST_PARTITION)):
            raise UsageError(f"{place}: {partition!r} is no number of a partition of {topic!r}")
        if not _is_up_to(offset, _LAST_OFFSET):
            raise UsageError(f"{place}: {offset!r} is no offset")
        one = TopicPartition(topic, int(partition))
        of_group = offsets.setdefault(group, {})
        if one in of_group:
            raise UsageError(f"{place}: {one} of group {group} is named twice")
        of_group[one] = int(offset)
    if not offsets:
        raise UsageError(f"{name}: it names no partition")
    return offsets


def _rows(name: str, text: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines that have something, with their numbers."""
    try:
        reader = csv.reader(io.StringIO(text.decode("utf-8-sig"), newline=""), strict=True)
        for cells in reader:
            if cells:
                yield reader.line_num, [cell.strip() for cell in cells]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{name}: this is neither a plan nor CSV: {error}") from error


def _is_up_to(text: str, most: int) -> bool:
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    return is_number and int(text) <= most


def _check_groups(name: str, groups: Sequence[str], known: Collection[str]) -> None:
    absent = [group for group in groups if group not in known]
    if absent:
        raise UsageError(f"{name}: it has no offsets of group {absent[0]}")


# ---- plans ----


def _plans(admin: Admin, offsets: Mapping[str, Mapping[TopicPartition, int]]) -> list[ResetPlan]:
    """Return plans for offsets, moved into the logs as they are now."""
    from kafka_fast.admin import OffsetSpec, PartitionReset, ResetPlan

    chosen = sorted({one for of_group in offsets.values() for one in of_group})
    there, absent = split_known(admin, chosen)
    errors: dict[TopicPartition, KafkaError] = dict(absent)
    firsts = admin.list_offsets(dict.fromkeys(there, OffsetSpec.EARLIEST))
    ends = admin.list_offsets(dict.fromkeys(there, OffsetSpec.LATEST))
    errors |= {**firsts.errors, **ends.errors}
    committed = admin.list_consumer_group_offsets(
        {group: list(targets) for group, targets in offsets.items()}
    )
    plans = []
    for group, targets in offsets.items():
        of_group = committed[group]
        troubles = {**errors, **of_group.errors}
        resets = []
        for one, offset in sorted(targets.items()):
            if one in troubles:
                continue
            at = of_group[one]
            first, end = firsts[one].offset, ends[one].offset
            target = min(max(offset, first), end)
            current = None if at is None else at.offset
            resets.append(PartitionReset(one, current, target, offset, first, end))
        failed = {one: error for one, error in troubles.items() if one in targets}
        plans.append(ResetPlan(group, tuple(resets), failed))
    return plans
