"""`kafka-fast groups describe`: groups with their members, and what these read."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.groups.facts import GroupFacts, MemberFacts, describe
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable

if TYPE_CHECKING:
    from kafka_fast import Admin

EXAMPLES = """examples:
  kafka-fast groups describe audit
  kafka-fast groups describe audit billing -o wide
  kafka-fast groups describe audit -o json | jq '.groups[].members[].host'
"""

COLUMNS = (
    ReportColumn("GROUP"),
    ReportColumn("STATE"),
    ReportColumn("CLIENT"),
    ReportColumn("HOST"),
    ReportColumn("PARTITIONS"),
    ReportColumn("TYPE", is_wide=True),
    ReportColumn("ASSIGNOR", is_wide=True),
    ReportColumn("COORDINATOR", is_number=True, is_wide=True),
    ReportColumn("EPOCH", is_number=True, is_wide=True),
    ReportColumn("INSTANCE", is_wide=True),
    ReportColumn("MEMBER", is_wide=True),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the names."""
    parser.add_argument("group", nargs="+", help="its id")


def run(admin: Admin, args: argparse.Namespace) -> Report:
    """Return the groups."""
    groups, errors = describe(admin, args.group)
    return Report(
        document={"groups": [_entry(group) for group in groups.values()]},
        table=ReportTable(
            COLUMNS,
            [
                _row(group, member)
                for group in groups.values()
                for member in group.members or (None,)
            ],
        ),
        errors=errors,
        noun="group",
    )


def _row(group: GroupFacts, member: MemberFacts | None) -> tuple[object, ...]:
    return (
        group.group_id,
        group.state,
        member and member.client_id,
        member and member.host,
        member and member.reads,
        group.type,
        group.assignor,
        group.coordinator,
        member.epoch if member else group.group_epoch,
        member and member.instance_id,
        member and member.member_id,
    )


def _entry(group: GroupFacts) -> dict[str, object]:
    return {
        "group": group.group_id,
        "type": group.type,
        "state": group.state,
        "assignor": group.assignor,
        "coordinator": group.coordinator,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": [member.entry for member in group.members],
    }


DESCRIBE = Verb(
    "describe",
    help="groups with their members, and the partitions that each reads",
    description="Show groups of any type: the state, and each member with the partitions that it "
    "reads. Changes nothing.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
)
