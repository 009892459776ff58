"""`kafka-fast groups delete`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.asking import is_confirmed
from kafka_fast.cli.frame.changes import ABSENT, outcome_text
from kafka_fast.cli.frame.names import counted, some_names
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.groups.facts import describe
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import GroupIdNotFound, KafkaError, NonEmptyGroup

if TYPE_CHECKING:
    from kafka_fast import Admin

EXAMPLES = """examples:
  kafka-fast groups delete audit billing
  kafka-fast groups delete audit --dry-run
  kafka-fast groups delete audit --if-exists --yes
"""

COLUMNS = (ReportColumn("GROUP"), ReportColumn("OUTCOME"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the names."""
    parser.add_argument("group", nargs="+", help="to delete, with its offsets")
    parser.add_argument(
        "--if-exists", action="store_true", help="a group that is not there is no failure"
    )


def run(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Delete the groups; without --yes look first which there are, and ask."""
    names = list(dict.fromkeys(args.group))
    errors: dict[str, KafkaError] = {}
    deletable = names
    if not args.yes or args.dry_run:
        groups, errors = describe(admin, names)
        for name, group in groups.items():
            if group.members:
                has = counted(len(group.members), "member")
                errors[name] = NonEmptyGroup(f"group {name} has {has}: stop them first")
        deletable = [name for name in groups if name not in errors]
        if deletable and not args.dry_run:
            what = f"{counted(len(deletable), 'group')} with all offsets: {some_names(deletable)}"
            if not is_confirmed(args, f"delete {what}?"):
                return None
    if deletable and not args.dry_run:
        deleted = admin.delete_groups(deletable)
        errors |= deleted.errors
        deletable = list(deleted.succeeded)
    outcomes = dict.fromkeys(deletable, "deleted")
    for name, error in list(errors.items()):
        if args.if_exists and isinstance(error, GroupIdNotFound):
            outcomes[name] = ABSENT
            del errors[name]
    shown = [(name, outcomes[name]) for name in names if name in outcomes]
    return Report(
        document={
            "dry_run": args.dry_run,
            "groups": [{"group": name, "outcome": outcome} for name, outcome in shown],
        },
        table=ReportTable(
            COLUMNS,
            [(name, outcome_text(outcome, is_dry_run=args.dry_run)) for name, outcome in shown],
        ),
        errors=errors,
        noun="group",
    )


DELETE = Verb(
    "delete",
    help="delete groups, with their offsets",
    description="Delete groups of any type, with their offsets. This cannot be undone: on a "
    "terminal it asks, elsewhere it needs --yes.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
    changes=True,
    asks=True,
)
