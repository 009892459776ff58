"""`kafka-fast groups reset`: where a group without members goes on; the plan is shown first."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka_fast.cli.frame.asking import is_confirmed
from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.names import check_names, counted, partitions, some_names
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.groups.plan_files import check_export, read_plans, write_plans
from kafka_fast.cli.records.points import BEGINNING, END, Point, parse_duration, parse_point
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.standard_error import say
from kafka_fast.cli.showing.tables import Alarm, ReportColumn, ReportTable
from kafka_fast.errors import KafkaError, NonEmptyGroup, UsageError
from kafka_fast.logs import some_of
from kafka_fast.values import replace

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import PartitionReset, ResetPlan, ResetTo

EXAMPLES = """examples:
  kafka-fast groups reset audit --to earliest
  kafka-fast groups reset audit --to 2026-03-01T00:00Z --topic orders
  kafka-fast groups reset audit --by 2h --dry-run
  kafka-fast groups reset audit --shift -100 --partition orders:0,1
  kafka-fast groups reset audit --to latest --dry-run --export plan.json
  kafka-fast groups reset audit --plan plan.json --yes
  kafka-fast groups reset audit billing --to current --dry-run --export all.csv
"""

COLUMNS = (
    ReportColumn("TOPIC"),
    ReportColumn("PARTITION", is_number=True),
    ReportColumn("FROM", is_number=True),
    ReportColumn("TO", is_number=True),
    ReportColumn("OUTCOME"),
    ReportColumn("ASKED FOR", is_number=True, is_wide=True),
    ReportColumn("BEGINNING", is_number=True, is_wide=True),
    ReportColumn("END", is_number=True, is_wide=True),
)

CURRENT = Point("current")
PLANNED = outcome_text("reset", is_dry_run=True)

_SHIFT = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_WORDS = {"earliest": BEGINNING, "latest": END, "current": CURRENT}


class GroupPartition(NamedTuple):
    """A partition of one of several groups."""

    group: str
    topic: str
    partition: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the group, the place and the partitions."""
    parser.add_argument(
        "group", nargs="*", help="its id, or several (default: those of the --plan)"
    )
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument(
        "--to",
        metavar="POINT",
        type=_point,
        help="earliest, latest, current, an offset, or a time: now, -1h30m, an ISO time, @MS. "
        "current moves into the log what is committed outside of it",
    )
    place.add_argument(
        "--by", metavar="DURATION", type=parse_duration, help="so long before now, such as 1h30m"
    )
    place.add_argument(
        "--shift",
        metavar="N",
        type=_shift,
        help="what is committed, moved by N offsets; back if N is negative",
    )
    place.add_argument(
        "--plan",
        metavar="FILE",
        help="the places of a plan that --export wrote, or of a CSV file of Kafka's script",
    )
    parser.add_argument(
        "--topic",
        metavar="TOPIC",
        action="append",
        default=[],
        help="all partitions of this topic; may be repeated (default: all that the group has "
        "committed offsets of)",
    )
    parser.add_argument(
        "--partition",
        metavar="TOPIC:N,...",
        type=partitions,
        action="append",
        default=[],
        help="these partitions; may be repeated",
    )
    parser.add_argument(
        "--export",
        metavar="FILE",
        help="write the plan, before anything is changed: as JSON, or for Kafka's script if the "
        "name ends in .csv",
    )


def run(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Plan the reset, ask, and carry it out."""
    plans = _plans(admin, args)
    for plan in plans:
        if not plan.resets and not plan.errors:
            raise UsageError(
                f"group {plan.group_id} has committed nothing: name topics or partitions to reset"
            )
    if args.export is not None:
        write_plans(args.export, plans)
    for plan in plans:
        if plan.members:
            text = (
                f"group {plan.group_id} has members, which would go on where they are: "
                f"{some_of(plan.members)}; stop them first"
            )
            if not args.dry_run:
                raise NonEmptyGroup(text)
            say(text)
    if args.dry_run:
        return _report(args, plans)
    if any(plan.errors for plan in plans):
        say("nothing was reset, because some partitions cannot be")
        return _report(args, [replace(plan, resets=()) for plan in plans])
    where = counted(sum(len(plan.resets) for plan in plans), "partition")
    names = some_names(plan.group_id for plan in plans)
    group = f"group {names}" if len(plans) == 1 else f"groups {names}"
    if not is_confirmed(args, f"reset {group} in {where}?", _table(plans, PLANNED).narrow()):
        return None
    return _report(args, [_carried_out(admin, plan, is_one=len(plans) == 1) for plan in plans])


def _carried_out(admin: Admin, plan: ResetPlan, *, is_one: bool) -> ResetPlan:
    """Carry a plan out; return what was done of it.

    Raises:
        KafkaError: nothing was, and there are no other groups of which something is to be told.
    """
    try:
        result = admin.reset_consumer_group_offsets(plan.group_id, plan)
    except KafkaError as error:
        if is_one:
            raise
        return replace(plan, resets=(), errors=dict.fromkeys(plan.targets, error))
    done = tuple(one for one in result.resets if one.partition not in result.errors)
    return replace(result, resets=done)


def _plans(admin: Admin, args: argparse.Namespace) -> list[ResetPlan]:
    """Return where each group would go on, with its members.

    Raises:
        UsageError: no group is named, or partitions are named beside a plan.
    """
    topics = [*dict.fromkeys(args.topic)]
    check_names(topics)
    named = {one for ones in args.partition for one in ones}
    groups = [*dict.fromkeys(args.group)]
    if args.plan is not None:
        if topics or named:
            raise UsageError("a plan names its partitions: leave --topic and --partition out")
        return [
            admin.reset_consumer_group_offsets(plan.group_id, plan, dry_run=True)
            for plan in read_plans(admin, args.plan, groups)
        ]
    if not groups:
        raise UsageError("say which group, or take a plan of groups: --plan FILE")
    if args.export is not None:
        check_export(args.export, len(groups))
    place = _place(args)
    return [
        admin.reset_consumer_group_offsets(
            group, place, topics=topics, partitions=named, dry_run=True
        )
        for group in groups
    ]


def _report(args: argparse.Namespace, plans: Sequence[ResetPlan]) -> Report:
    """Return what was done, or would be; the plans have the errors."""
    documents = [
        {"group": plan.group_id, "partitions": [_entry(one) for one in plan.resets]}
        for plan in plans
    ]
    is_one = len(plans) == 1
    errors: dict[Any, KafkaError] = {}
    for plan in plans:
        for partition, error in plan.errors.items():
            errors[partition if is_one else GroupPartition(plan.group_id, *partition)] = error
    return Report(
        document={
            "dry_run": args.dry_run,
            **(documents[0] if is_one else {"groups": documents}),
        },
        table=_table(plans, outcome_text("reset", is_dry_run=args.dry_run)),
        errors=errors,
    )


def _table(plans: Sequence[ResetPlan], text: str) -> ReportTable:
    """Return a row for each partition, which names its group if there are several."""
    rows = [
        (
            plan.group_id,
            *one.partition,
            one.current,
            one.target,
            Alarm(f"{text}, not to {one.requested}") if one.clamped else text,
            one.requested,
            one.log_start,
            one.log_end,
        )
        for plan in plans
        for one in plan.resets
    ]
    if len(plans) == 1:
        return ReportTable(COLUMNS, [row[1:] for row in rows])
    return ReportTable((ReportColumn("GROUP"), *COLUMNS), rows)


def _entry(reset: PartitionReset) -> dict[str, object]:
    return {
        **reset.partition._asdict(),
        "outcome": "reset",
        "from": reset.current,
        "to": reset.target,
        "requested": reset.requested,
        "clamped": reset.clamped,
        "beginning": reset.log_start,
        "end": reset.log_end,
    }


# ---- the place ----


def _place(args: argparse.Namespace) -> ResetTo:
    from kafka_fast.admin import ResetTo

    if args.by is not None:
        return ResetTo.by_duration(args.by)
    if args.shift is not None:
        return ResetTo.shift_by(args.shift)
    point: Point = args.to
    if point.is_offset:
        return ResetTo.to_offset(point.number)
    if point.is_time:
        return ResetTo.to_time(point.time)
    ends = {BEGINNING: ResetTo.earliest, END: ResetTo.latest, CURRENT: ResetTo.current}
    return ends[point]()


def _point(text: str) -> Point:
    return _WORDS[text] if text in _WORDS else parse_point(text)


def _shift(text: str) -> int:
    if not _SHIFT.fullmatch(text):
        raise argparse.ArgumentTypeError(f"expected a number of offsets such as -100, not {text!r}")
    return int(text)


RESET = Verb(
    "reset",
    help="say where a group goes on; shows its plan first",
    description="Say where a group without members goes on to read. The plan is shown first: on a "
    "terminal the command asks, elsewhere it needs --yes. An offset outside of a log is moved to "
    "the log's next end.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
    changes=True,
    asks=True,
)
