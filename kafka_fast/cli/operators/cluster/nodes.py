"""`kafka-fast cluster describe`, and how nodes that are gone are forgotten."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.asking import is_confirmed
from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.names import node_id
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import Alarm, ReportColumn, ReportTable
from kafka_fast.errors import UsageError

if TYPE_CHECKING:
    from kafka_fast import Admin

NODE_COLUMNS = (
    ReportColumn("NODE", is_number=True),
    ReportColumn("HOST"),
    ReportColumn("PORT", is_number=True),
    ReportColumn("RACK"),
    ReportColumn("CONTROLLER"),
    ReportColumn("FENCED"),
    ReportColumn("CLUSTER"),
)
UNREGISTERED_COLUMNS = (ReportColumn("NODE", is_number=True), ReportColumn("OUTCOME"))

OF_BROKER = """examples:
  kafka-fast cluster unregister-broker 4 --dry-run
"""
OF_CONTROLLER = """examples:
  kafka-fast cluster remove-voter 3004
  kafka-fast cluster unregister-controller 3004
"""

# ---- describe ----


def _add_describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fenced",
        action="store_true",
        help="also brokers that have stopped, or are still starting (Kafka 4.0)",
    )


def describe(admin: Admin, args: argparse.Namespace) -> Report:
    """Return the nodes of the cluster."""
    cluster = admin.describe_cluster(include_fenced_brokers=args.fenced)
    return Report(
        document={
            "cluster_id": cluster.cluster_id,
            "controller": cluster.controller,
            "nodes": [
                {
                    "node": node.id,
                    "host": node.host,
                    "port": node.port,
                    "rack": node.rack,
                    "fenced": node.is_fenced,
                }
                for node in cluster.nodes
            ],
        },
        table=ReportTable(
            NODE_COLUMNS,
            [
                (
                    node.id,
                    node.host,
                    node.port,
                    node.rack,
                    node.id == cluster.controller,
                    Alarm(True) if node.is_fenced else False,
                    cluster.cluster_id,
                )
                for node in cluster.nodes
            ],
        ),
    )


# ---- unregister ----


def _add_node(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", type=node_id, help="its id")


def unregister_broker(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Forget a broker that has stopped for good; ask first.

    Raises:
        UsageError: it is running.
    """
    if any(node.id == args.node for node in admin.describe_cluster().nodes):
        raise UsageError(f"broker {args.node} is running, and would register itself again: stop it")
    if not args.dry_run:
        if not is_confirmed(args, f"forget broker {args.node}, which has stopped for good?"):
            return None
        admin.unregister_broker(args.node)
    return _unregistered(args)


def unregister_controller(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Forget a controller that has stopped for good; ask first."""
    if not args.dry_run:
        if not is_confirmed(args, f"forget controller {args.node}, which has stopped for good?"):
            return None
        admin.unregister_controller(args.node)
    return _unregistered(args)


def _unregistered(args: argparse.Namespace) -> Report:
    outcome = "unregistered"
    return Report(
        document={"dry_run": args.dry_run, "nodes": [{"node": args.node, "outcome": outcome}]},
        table=ReportTable(
            UNREGISTERED_COLUMNS,
            [(args.node, outcome_text(outcome, is_dry_run=args.dry_run))],
        ),
    )


DESCRIBE = Verb(
    "describe",
    help="the nodes, with their racks, and the cluster's id",
    description="Show the brokers of the cluster, their racks, and which of them takes "
    "requests for the controller. Changes nothing.",
    add_arguments=_add_describe,
    run=describe,
    asks_controllers=True,
)
UNREGISTER_BROKER = Verb(
    "unregister-broker",
    help="forget a broker that has stopped for good",
    description="Remove a broker that has stopped for good from the cluster's metadata. On a "
    "terminal it asks, elsewhere it needs --yes. Needs Kafka 2.8, with KRaft.",
    add_arguments=_add_node,
    run=unregister_broker,
    examples=OF_BROKER,
    changes=True,
    asks=True,
)
UNREGISTER_CONTROLLER = Verb(
    "unregister-controller",
    help="forget a controller that has stopped for good",
    description="Remove a controller that has stopped for good, and has no vote any more, from the "
    "cluster's metadata. On a terminal it asks, elsewhere it needs --yes. Needs Kafka 4.4.",
    add_arguments=_add_node,
    run=unregister_controller,
    examples=OF_CONTROLLER,
    changes=True,
    asks=True,
    asks_controllers=True,
)
