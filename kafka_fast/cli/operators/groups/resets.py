"""`kafka-fast groups reset`: where a group without members goes on; the plan is shown first."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.asking import is_confirmed
from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.names import check_names, counted, partitions
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.records.points import BEGINNING, END, Point, parse_duration, parse_point
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.standard_error import say
from kafka_fast.cli.showing.tables import Alarm, ReportColumn, ReportTable
from kafka_fast.errors import NonEmptyGroup, UsageError
from kafka_fast.logs import some_of

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the group, the place and the partitions."""
    parser.add_argument("group", help="its id")
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
    place.add_argument("--plan", metavar="FILE", help="the places of a plan that --export wrote")
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
        "--export", metavar="FILE", help="write the plan as JSON, before anything is changed"
    )


def run(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Plan the reset, ask, and carry it out."""
    topics = [*dict.fromkeys(args.topic)]
    check_names(topics)
    named = {one for ones in args.partition for one in ones}
    plan = admin.reset_consumer_group_offsets(
        args.group, _place(args), topics=topics, partitions=named, dry_run=True
    )
    if not plan.resets and not plan.errors:
        raise UsageError(
            f"group {plan.group_id} has committed nothing: name topics or partitions to reset"
        )
    if args.export is not None:
        Path(args.export).write_text(plan.to_json() + "\n", encoding="utf-8")
    if plan.members:
        text = (
            f"group {plan.group_id} has members, which would go on where they are: "
            f"{some_of(plan.members)}; stop them first"
        )
        if not args.dry_run:
            raise NonEmptyGroup(text)
        say(text)
    if args.dry_run:
        return _report(args, plan, plan.resets)
    if plan.errors:
        say("nothing was reset, because some partitions cannot be")
        return _report(args, plan, ())
    where = counted(len(plan.resets), "partition")
    table = _report(args, plan, plan.resets, outcome=PLANNED).table
    if not is_confirmed(args, f"reset group {args.group} in {where}?", table.narrow()):
        return None
    plan = admin.reset_consumer_group_offsets(args.group, plan)
    return _report(args, plan, [one for one in plan.resets if one.partition not in plan.errors])


def _report(
    args: argparse.Namespace,
    plan: ResetPlan,
    resets: Iterable[PartitionReset],
    outcome: str | None = None,
) -> Report:
    """Return what was done, or would be, in these partitions; the plan has the errors."""
    text = outcome or outcome_text("reset", is_dry_run=args.dry_run)
    return Report(
        document={
            "dry_run": args.dry_run,
            "group": plan.group_id,
            "partitions": [_entry(one) for one in resets],
        },
        table=ReportTable(
            COLUMNS,
            [
                (
                    *one.partition,
                    one.current,
                    one.target,
                    Alarm(f"{text}, not to {one.requested}") if one.clamped else text,
                    one.requested,
                    one.log_start,
                    one.log_end,
                )
                for one in resets
            ],
        ),
        errors=plan.errors,
    )


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


def _place(args: argparse.Namespace) -> ResetTo | ResetPlan:
    from kafka_fast.admin import ResetPlan, ResetTo

    if args.plan is not None:
        try:
            return ResetPlan.from_json(Path(args.plan).read_bytes())
        except UsageError as error:
            raise UsageError(f"{args.plan}: {error}") from error
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
