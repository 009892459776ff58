"""`kafka-fast reassign plan`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.names import check_names, positive
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.described import partition_infos
from kafka_fast.cli.operators.reassign.balance import balanced
from kafka_fast.cli.operators.reassign.files import document_of, write_assignment
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.standard_error import say
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import UsageError

if TYPE_CHECKING:
    from kafka_fast import Admin

EXAMPLES = """examples:
  kafka-fast reassign plan orders audit
  kafka-fast reassign plan orders --brokers 1,2,4 --export plan.json
  kafka-fast reassign plan orders --replication-factor 3 -o json > plan.json
"""

COLUMNS = (
    ReportColumn("TOPIC"),
    ReportColumn("PARTITION", is_number=True),
    ReportColumn("REPLICAS"),
    ReportColumn("PLANNED"),
    ReportColumn("MOVES"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the topics and the brokers."""
    parser.add_argument("topic", nargs="+", help="whose replicas are to be spread")
    parser.add_argument(
        "--brokers",
        metavar="ID,...",
        type=_brokers,
        help="who may have them (default: all brokers of the cluster)",
    )
    parser.add_argument(
        "--replication-factor",
        metavar="N",
        type=positive,
        help="replicas of each partition (default: as many as it has)",
    )
    parser.add_argument(
        "--ignore-racks", action="store_true", help="as if all brokers stood in one rack"
    )
    parser.add_argument(
        "--export", metavar="FILE", help="write the plan to a new file, for reassign run"
    )
    parser.add_argument(
        "--save-current",
        metavar="FILE",
        help="write what there is now to a new file, for the way back",
    )


def _brokers(text: str) -> list[int]:
    ids = text.split(",")
    if not all(one.isascii() and one.isdigit() and int(one) < 2**31 for one in ids):
        raise argparse.ArgumentTypeError(f"expected ids of brokers, such as 1,2,3, not {text!r}")
    return list(dict.fromkeys(map(int, ids)))


def run(admin: Admin, args: argparse.Namespace) -> Report:
    """Return which brokers the partitions are to have; change nothing."""
    check_names(args.topic)
    racks = _racks(admin, args)
    described = admin.describe_topics(dict.fromkeys(args.topic))
    infos = partition_infos(described.succeeded)
    current = {partition: info.replicas for partition, info in infos.items()}
    planned = balanced(
        {one: args.replication_factor or len(replicas) for one, replicas in current.items()}, racks
    )
    for name, assignment in ((args.export, planned), (args.save_current, current)):
        if name is not None and assignment:
            write_assignment(name, assignment)
    return Report(
        document=document_of(planned),
        table=ReportTable(
            COLUMNS,
            [
                (*one, current[one], brokers, current[one] != brokers)
                for one, brokers in planned.items()
            ],
        ),
        errors=described.errors,
    )


def _racks(admin: Admin, args: argparse.Namespace) -> dict[int, str | None]:
    """Return the racks of the brokers that may get replicas.

    Raises:
        UsageError: there is no such broker.
    """
    racks = {node.id: node.rack for node in admin.describe_cluster().nodes}
    chosen = args.brokers or list(racks)
    absent = [broker for broker in chosen if broker not in racks]
    if absent:
        raise UsageError(f"there is no broker {absent[0]}: there are {', '.join(map(str, racks))}")
    if args.ignore_racks:
        return dict.fromkeys(chosen)
    without = [broker for broker in chosen if racks[broker] is None]
    if without and len(without) < len(chosen):
        say(f"broker {without[0]} has no rack: racks are not looked at")
    return {broker: racks[broker] for broker in chosen}


PLAN = Verb(
    "plan",
    help="spread the replicas of topics over brokers and racks",
    description="Plan which brokers get the replicas of topics: leaders in turn, and the replicas "
    "of a partition on different racks. The plan is in the format of Kafka's own script. Changes "
    "nothing.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
)
