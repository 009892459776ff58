"""`kafka-fast groups list`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.described import told
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable

if TYPE_CHECKING:
    from kafka_fast import Admin

EXAMPLES = """examples:
  kafka-fast groups
  kafka-fast groups list --state empty --state dead
  kafka-fast groups list --type consumer -o json | jq -r '.groups[].group'
"""

COLUMNS = (
    ReportColumn("GROUP"),
    ReportColumn("TYPE"),
    ReportColumn("STATE"),
    ReportColumn("MEMBERS ARE"),
)

_STATES = (
    "stable",
    "empty",
    "dead",
    "preparing-rebalance",
    "completing-rebalance",
    "assigning",
    "reconciling",
    "not-ready",
)
_TYPES = ("classic", "consumer", "share", "streams")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the filters."""
    parser.add_argument(
        "--state",
        choices=_STATES,
        action="append",
        default=[],
        help="only groups in this state (Kafka 2.6); may be repeated",
    )
    parser.add_argument(
        "--type",
        choices=_TYPES,
        action="append",
        default=[],
        help="only groups of this type (Kafka 3.8); may be repeated",
    )
    parser.add_argument(
        "--protocol-type",
        metavar="NAME",
        action="append",
        default=[],
        help="only groups whose members are this, such as consumer or connect; may be repeated",
    )


def run(admin: Admin, args: argparse.Namespace) -> Report:
    """Return the groups that were asked for."""
    from kafka_fast.admin import GroupState, GroupType

    listed = admin.list_groups(
        states=[GroupState(state.replace("-", "")) for state in args.state],
        types=[GroupType(name) for name in args.type],
        protocol_types=args.protocol_type,
    )
    entries = [
        {
            "group": one.group_id,
            "type": told(one.type.value),
            "state": told(one.state.value),
            "protocol_type": one.protocol_type,
        }
        for one in sorted(listed.values(), key=lambda one: one.group_id)
    ]
    return Report(
        document={"groups": entries},
        table=ReportTable(
            COLUMNS,
            [
                (entry["group"], entry["type"], entry["state"], entry["protocol_type"] or None)
                for entry in entries
            ],
        ),
        errors=listed.errors,
        noun="broker",
        when_empty="there is no such group that this client may see",
    )


LIST = Verb(
    "list",
    help="which groups there are, of which types, in which states",
    description="List the groups that this client may see, of all types. Changes nothing.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
)
