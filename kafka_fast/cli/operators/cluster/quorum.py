"""`kafka-fast cluster quorum`, `add-voter` and `remove-voter`: who keeps the metadata."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafka_fast.cli.frame.asking import is_confirmed
from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.names import node_id
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.cluster.features import add_nothing
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import UsageError
from kafka_fast.times import iso_time

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import QuorumInfo, QuorumReplica

QUORUM_COLUMNS = (
    ReportColumn("NODE", is_number=True),
    ReportColumn("ROLE"),
    ReportColumn("END", is_number=True),
    ReportColumn("LAG", is_number=True),
    ReportColumn("CAUGHT UP"),
    ReportColumn("ENDPOINTS", is_wide=True),
    ReportColumn("DIRECTORY", is_wide=True),
)
VOTER_COLUMNS = (
    ReportColumn("NODE", is_number=True),
    ReportColumn("DIRECTORY"),
    ReportColumn("OUTCOME"),
)

OF_ADD = """examples:
  kafka-fast cluster quorum -o wide         shows directories, also of observers
  kafka-fast cluster add-voter 3004 --endpoint CONTROLLER://kafka4:9093
"""
OF_REMOVE = """examples:
  kafka-fast cluster remove-voter 3004 --dry-run
"""

_ENDPOINT = re.compile(r"([^:/\s]+)://(\[[^\]]+\]|[^:/\s]+):([0-9]{1,5})", re.ASCII)


class ControllerEndpoint(NamedTuple):
    """A listener of a controller, as the command line names it."""

    name: str
    host: str
    port: int


def quorum(admin: Admin, args: argparse.Namespace) -> Report:
    """Return the controllers, and who else replicates the metadata."""
    info = admin.describe_metadata_quorum()
    replicas = [
        *((one, "leader" if one.replica_id == info.leader_id else "voter") for one in info.voters),
        *((one, "observer") for one in info.observers),
    ]
    entries = [_quorum_entry(info, one, role) for one, role in replicas]
    return Report(
        document={
            "leader": info.leader_id,
            "leader_epoch": info.leader_epoch,
            "high_watermark": info.high_watermark,
            "replicas": entries,
        },
        table=ReportTable(
            QUORUM_COLUMNS,
            [
                (
                    one.replica_id,
                    role,
                    one.log_end_offset,
                    entry["lag"],
                    None if one.last_caught_up_ms is None else iso_time(one.last_caught_up_ms),
                    entry["endpoints"],
                    one.directory_id,
                )
                for (one, role), entry in zip(replicas, entries, strict=True)
            ],
        ),
    )


def _quorum_entry(info: QuorumInfo, replica: QuorumReplica, role: str) -> dict[str, object]:
    ends = {one.replica_id: one.log_end_offset for one in (*info.voters, *info.observers)}
    end = ends.get(info.leader_id, -1) if info.leader_id is not None else -1
    is_known = end >= 0 and replica.log_end_offset >= 0
    return {
        "node": replica.replica_id,
        "role": role,
        "directory": replica.directory_id,
        "log_end_offset": replica.log_end_offset,
        "lag": max(0, end - replica.log_end_offset) if is_known else None,
        "last_fetch_ms": replica.last_fetch_ms,
        "last_caught_up_ms": replica.last_caught_up_ms,
        "endpoints": [
            f"{one.name}://{one.host}:{one.port}"
            for one in info.endpoints.get(replica.replica_id, ())
        ],
    }


# ---- votes ----


def _add_voter(parser: argparse.ArgumentParser) -> None:
    _add_node(parser)
    parser.add_argument(
        "--endpoint",
        metavar="NAME://HOST:PORT",
        type=_endpoint,
        action="append",
        required=True,
        help="a listener of it for other controllers; may be repeated",
    )


def _add_node(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", type=node_id, help="id of the controller")
    parser.add_argument(
        "--directory",
        metavar="ID",
        help="id of its metadata directory (default: the one that the quorum knows)",
    )


def _endpoint(text: str) -> ControllerEndpoint:
    match = _ENDPOINT.fullmatch(text)
    if match is None or not 0 < int(match[3]) < 65536:
        raise argparse.ArgumentTypeError(
            f"expected an endpoint such as CONTROLLER://kafka4:9093, not {text!r}"
        )
    return ControllerEndpoint(match[1], match[2].strip("[]"), int(match[3]))


def add_voter(admin: Admin, args: argparse.Namespace) -> Report:
    """Give a controller a vote."""
    from kafka_fast.admin import RaftVoterEndpoint

    info = admin.describe_metadata_quorum()
    directory = args.directory or _directory(args.node, info.observers, "without a vote")
    if not args.dry_run:
        endpoints = [RaftVoterEndpoint(*endpoint) for endpoint in args.endpoint]
        admin.add_raft_voter(args.node, directory_id=directory, endpoints=endpoints)
    return _voter(args, directory, "added")


def remove_voter(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Take a controller's vote away; ask first."""
    info = admin.describe_metadata_quorum()
    directory = args.directory or _directory(args.node, info.voters, "with a vote")
    if not args.dry_run:
        left = len(info.voters) - 1
        question = f"take the vote of controller {args.node} away, so that {left} have one?"
        if not is_confirmed(args, question):
            return None
        admin.remove_raft_voter(args.node, directory_id=directory)
    return _voter(args, directory, "removed")


def _directory(node: int, replicas: Sequence[QuorumReplica], which: str) -> str:
    """Return the id of a controller's directory.

    Raises:
        UsageError: there is no such controller, or not one only, or the quorum is a static one.
    """
    known = [one.directory_id for one in replicas if one.replica_id == node]
    if not known:
        raise UsageError(f"the quorum knows no node {node} {which}: see kafka-fast cluster quorum")
    if len(known) > 1:
        names = ", ".join(map(str, known))
        raise UsageError(f"node {node} is known with several directories: --directory {names}")
    if known[0] is None:
        raise UsageError(
            f"the directory of node {node} is not known: give --directory, if the quorum is no "
            "static one (kraft.version is 1 then)"
        )
    return known[0]


def _voter(args: argparse.Namespace, directory: str, outcome: str) -> Report:
    return Report(
        document={
            "dry_run": args.dry_run,
            "voters": [{"node": args.node, "directory": directory, "outcome": outcome}],
        },
        table=ReportTable(
            VOTER_COLUMNS,
            [(args.node, directory, outcome_text(outcome, is_dry_run=args.dry_run))],
        ),
    )


QUORUM = Verb(
    "quorum",
    help="the controllers that keep the metadata, and how far each has come",
    description="Show the controllers and all else that replicates the metadata of a "
    "cluster with KRaft. Needs Kafka 3.3. Changes nothing.",
    add_arguments=add_nothing,
    run=quorum,
    asks_controllers=True,
)
ADD_VOTER = Verb(
    "add-voter",
    help="give a controller a vote in the quorum",
    description="Give a controller that runs, and has caught up, a vote in the quorum. Needs Kafka "
    "3.9, with the feature kraft.version at level 1.",
    add_arguments=_add_voter,
    run=add_voter,
    examples=OF_ADD,
    changes=True,
    asks_controllers=True,
)
REMOVE_VOTER = Verb(
    "remove-voter",
    help="take a controller's vote in the quorum away",
    description="Take a controller's vote in the quorum away. On a terminal it asks, elsewhere it "
    "needs --yes. Needs Kafka 3.9, with the feature kraft.version at level 1.",
    add_arguments=_add_node,
    run=remove_voter,
    examples=OF_REMOVE,
    changes=True,
    asks=True,
    asks_controllers=True,
)
