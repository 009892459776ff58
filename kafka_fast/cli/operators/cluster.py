"""`kafka-fast cluster`: its nodes, its features, its controllers, and where its logs are."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.nouns import Noun, Verb
from kafka_fast.cli.showing.reports import Report, error_name
from kafka_fast.cli.showing.tables import Alarm, ReportColumn, ReportTable
from kafka_fast.times import iso_time

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import LogDir, QuorumInfo, QuorumReplica

NODE_COLUMNS = (
    ReportColumn("NODE", is_number=True),
    ReportColumn("HOST"),
    ReportColumn("PORT", is_number=True),
    ReportColumn("RACK"),
    ReportColumn("CONTROLLER"),
    ReportColumn("FENCED"),
    ReportColumn("CLUSTER"),
)
FEATURE_COLUMNS = (
    ReportColumn("FEATURE"),
    ReportColumn("LEVEL", is_number=True),
    ReportColumn("POSSIBLE"),
    ReportColumn("EPOCH", is_number=True, is_wide=True),
)
QUORUM_COLUMNS = (
    ReportColumn("NODE", is_number=True),
    ReportColumn("ROLE"),
    ReportColumn("END", is_number=True),
    ReportColumn("LAG", is_number=True),
    ReportColumn("CAUGHT UP"),
    ReportColumn("ENDPOINTS", is_wide=True),
    ReportColumn("DIRECTORY", is_wide=True),
)
DIR_COLUMNS = (
    ReportColumn("NODE", is_number=True),
    ReportColumn("DIRECTORY"),
    ReportColumn("REPLICAS", is_number=True),
    ReportColumn("BYTES", is_number=True),
    ReportColumn("FREE", is_number=True),
    ReportColumn("TOTAL", is_number=True),
    ReportColumn("CORDONED"),
    ReportColumn("ERROR"),
)
REPLICA_COLUMNS = (
    ReportColumn("TOPIC"),
    ReportColumn("PARTITION", is_number=True),
    ReportColumn("NODE", is_number=True),
    ReportColumn("BYTES", is_number=True),
    ReportColumn("LAG", is_number=True),
    ReportColumn("ARRIVING"),
    ReportColumn("DIRECTORY"),
)

OF_LOG_DIRS = """examples:
  kafka-fast cluster log-dirs
  kafka-fast cluster log-dirs 1 2 --topic orders --replicas
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


# ---- features ----


def _add_nothing(parser: argparse.ArgumentParser) -> None:
    pass


def features(admin: Admin, args: argparse.Namespace) -> Report:
    """Return the levels of features."""
    told = admin.describe_features()
    entries = []
    for name in sorted({*told.finalized, *told.supported}):
        level, possible = told.finalized.get(name), told.supported.get(name)
        entries.append(
            {
                "feature": name,
                "level": level.max_version_level if level else None,
                "min_possible": possible.min_version if possible else None,
                "max_possible": possible.max_version if possible else None,
            }
        )
    return Report(
        document={"epoch": told.finalized_epoch, "features": entries},
        table=ReportTable(
            FEATURE_COLUMNS,
            [
                (
                    entry["feature"],
                    entry["level"],
                    None
                    if entry["min_possible"] is None
                    else f"{entry['min_possible']} to {entry['max_possible']}",
                    told.finalized_epoch,
                )
                for entry in entries
            ],
        ),
        when_empty="the cluster has no features",
    )


# ---- quorum ----


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


# ---- log directories ----


def _add_log_dirs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", nargs="*", type=_node, help="only these brokers; default: all")
    parser.add_argument(
        "--topic", action="append", default=[], help="only its replicas; may be repeated"
    )
    parser.add_argument(
        "--replicas", action="store_true", help="a line for each replica, in the place of sums"
    )


def _node(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) >= 2**31:
        raise argparse.ArgumentTypeError(f"expected the id of a broker, not {text!r}")
    return int(text)


def log_dirs(admin: Admin, args: argparse.Namespace) -> Report:
    """Return the directories of brokers, and what they hold."""
    described = admin.describe_log_dirs(dict.fromkeys(args.node) or None)
    entries = [
        _dir_entry(node, path, log_dir, args.topic)
        for node, log_dirs in sorted(described.succeeded.items())
        for path, log_dir in sorted(log_dirs.items())
    ]
    return Report(
        document={"log_dirs": entries},
        table=_replicas_table(entries) if args.replicas else _dirs_table(entries),
        errors=described.errors,
        noun="node",
        when_empty="there is no such replica",
    )


def _dir_entry(node: int, path: str, log_dir: LogDir, topics: list[str]) -> dict[str, object]:
    return {
        "node": node,
        "directory": path,
        "error": None if log_dir.error is None else error_name(log_dir.error),
        "message": None if log_dir.error is None else str(log_dir.error),
        "cordoned": log_dir.is_cordoned,
        "total_bytes": log_dir.total_bytes,
        "usable_bytes": log_dir.usable_bytes,
        "replicas": [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "bytes": replica.size,
                "lag": replica.offset_lag,
                "future": replica.is_future,
            }
            for partition, replica in sorted(log_dir.replicas.items())
            if not topics or partition.topic in topics
        ],
    }


def _dirs_table(entries: list[dict[str, object]]) -> ReportTable:
    rows = []
    for entry in entries:
        replicas: list[dict[str, int]] = entry["replicas"]  # type: ignore[assignment]
        rows.append(
            (
                entry["node"],
                entry["directory"],
                len(replicas),
                sum(replica["bytes"] for replica in replicas),
                entry["usable_bytes"],
                entry["total_bytes"],
                entry["cordoned"],
                Alarm(entry["error"]) if entry["error"] else None,
            )
        )
    return ReportTable(DIR_COLUMNS, rows)


def _replicas_table(entries: list[dict[str, object]]) -> ReportTable:
    rows = []
    for entry in entries:
        replicas: list[dict[str, object]] = entry["replicas"]  # type: ignore[assignment]
        for replica in replicas:
            topic, partition, size, lag, is_future = replica.values()
            rows.append((topic, partition, entry["node"], size, lag, is_future, entry["directory"]))
    rows.sort(key=lambda row: row[:3])
    return ReportTable(REPLICA_COLUMNS, rows)


NOUN = Noun(
    "cluster",
    help="the nodes of a cluster, its features, controllers and log directories",
    description="Look at a cluster. Without a command it shows the nodes. Changes nothing.",
    verbs=(
        Verb(
            "describe",
            help="the nodes, with their racks, and the cluster's id",
            description="Show the brokers of the cluster, their racks, and which of them takes "
            "requests for the controller. Changes nothing.",
            add_arguments=_add_describe,
            run=describe,
        ),
        Verb(
            "features",
            help="the levels of the cluster's features, such as metadata.version",
            description="Show the levels of features that the cluster has, and those that a "
            "broker could have. Needs Kafka 2.7. Changes nothing.",
            add_arguments=_add_nothing,
            run=features,
        ),
        Verb(
            "quorum",
            help="the controllers that keep the metadata, and how far each has come",
            description="Show the controllers and all else that replicates the metadata of a "
            "cluster with KRaft. Needs Kafka 3.3. Changes nothing.",
            add_arguments=_add_nothing,
            run=quorum,
        ),
        Verb(
            "log-dirs",
            help="the log directories of brokers, and what they hold",
            description="Show the log directories of brokers: how much they hold, and how much "
            "is free. Changes nothing.",
            add_arguments=_add_log_dirs,
            run=log_dirs,
            examples=OF_LOG_DIRS,
        ),
    ),
    default="describe",
)

add_parser = NOUN.add_parser
