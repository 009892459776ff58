"""`kafka-fast groups members`: who is in a group; remove members."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.asking import is_confirmed
from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.names import counted
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.groups.facts import MemberFacts, describe
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import KafkaError, UnknownMemberId, UsageError

if TYPE_CHECKING:
    from kafka_fast import Admin

EXAMPLES = """examples:
  kafka-fast groups members audit
  kafka-fast groups members audit --remove billing-7      a group.instance.id
  kafka-fast groups members audit --remove-all --reason "before the upgrade"
"""

COLUMNS = (
    ReportColumn("MEMBER"),
    ReportColumn("INSTANCE"),
    ReportColumn("CLIENT"),
    ReportColumn("HOST"),
    ReportColumn("PARTITIONS"),
    ReportColumn("EPOCH", is_number=True, is_wide=True),
    ReportColumn("RACK", is_wide=True),
    ReportColumn("TOPICS", is_wide=True),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the group, and whom to remove."""
    parser.add_argument("group", help="its id")
    whom = parser.add_mutually_exclusive_group()
    whom.add_argument(
        "--remove",
        metavar="ID",
        action="append",
        default=[],
        help="remove the member with this id or this group.instance.id; may be repeated",
    )
    whom.add_argument("--remove-all", action="store_true", help="remove all members")
    parser.add_argument("--reason", metavar="TEXT", help="why, for the broker's log")


def run(admin: Admin, args: argparse.Namespace) -> Report | None:
    """List the members, or remove those that are named; ask first."""
    groups, errors = describe(admin, [args.group])
    members = [member for group in groups.values() for member in group.members]
    if errors or not _removes(args):
        if args.reason is not None and not errors:
            raise UsageError("--reason is for --remove and --remove-all")
        return Report(
            document={"group": args.group, "members": [member.entry for member in members]},
            table=_table(members),
            errors=errors,
            noun="group",
            when_empty=f"group {args.group} has no members",
        )
    chosen, absences = _chosen(members, args)
    if chosen and not args.dry_run:
        question = (
            f"remove {counted(len(chosen), 'member')} from group {args.group}? One that still runs "
            "may join again."
        )
        if not is_confirmed(args, question, _table(chosen.values()).narrow()):
            return None
        removed = admin.remove_members_from_consumer_group(
            args.group,
            member_ids=[one.member_id for one in chosen.values() if one.instance_id is None],
            instance_ids=[one.instance_id for one in chosen.values() if one.instance_id],
            reason=args.reason,
        )
        absences |= removed.errors
    done = [one for id_, one in chosen.items() if id_ not in absences]
    text = outcome_text("removed", is_dry_run=args.dry_run)
    return Report(
        document={
            "dry_run": args.dry_run,
            "group": args.group,
            "members": [
                {
                    "member": one.member_id,
                    "instance": one.instance_id,
                    "client": one.client_id,
                    "outcome": "removed",
                }
                for one in done
            ],
        },
        table=ReportTable(
            (*COLUMNS[:3], ReportColumn("OUTCOME")),
            [(one.member_id, one.instance_id, one.client_id, text) for one in done],
        ),
        errors=absences,
        noun="member",
        when_empty=f"group {args.group} has no members",
    )


def _removes(args: argparse.Namespace) -> bool:
    return bool(args.remove or args.remove_all)


def _chosen(
    members: Iterable[MemberFacts], args: argparse.Namespace
) -> tuple[dict[str, MemberFacts], dict[str, KafkaError]]:
    """Return whom to remove, by the id that the coordinator is to know, and who is not there."""
    members = list(members)
    chosen: dict[str, MemberFacts] = {}
    absences: dict[str, KafkaError] = {}
    for id_ in [one.member_id for one in members] if args.remove_all else args.remove:
        one = next((one for one in members if id_ in (one.member_id, one.instance_id)), None)
        if one is None:
            absences[id_] = UnknownMemberId(f"group {args.group} has no member {id_!r}")
        else:
            chosen[one.instance_id or one.member_id] = one
    return chosen, absences


def _table(members: Iterable[MemberFacts]) -> ReportTable:
    return ReportTable(
        COLUMNS,
        [
            (
                one.member_id,
                one.instance_id,
                one.client_id,
                one.host,
                one.reads,
                one.epoch,
                one.rack_id,
                one.regex or one.topics,
            )
            for one in members
        ],
    )


MEMBERS = Verb(
    "members",
    help="the members of a group; --remove removes some",
    description="Show the members of a group. With --remove or --remove-all they are removed, as "
    "if they had left: on a terminal the command asks, elsewhere it needs --yes.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
    changes=True,
    asks=True,
    asks_when=_removes,
)
