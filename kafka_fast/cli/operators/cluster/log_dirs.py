"""`kafka-fast cluster log-dirs` and `move-replica`: which directories of brokers hold what."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.names import node_id, partitions
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.showing.reports import Report, error_name
from kafka_fast.cli.showing.tables import Alarm, ReportColumn, ReportTable
from kafka_fast.errors import KafkaError, LogDirNotFound, UnknownTopicOrPartition

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import LogDir

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
MOVE_COLUMNS = (
    ReportColumn("TOPIC"),
    ReportColumn("PARTITION", is_number=True),
    ReportColumn("NODE", is_number=True),
    ReportColumn("FROM"),
    ReportColumn("TO"),
    ReportColumn("OUTCOME"),
)

OF_LOG_DIRS = """examples:
  kafka-fast cluster log-dirs
  kafka-fast cluster log-dirs 1 2 --topic orders --replicas
"""
OF_MOVE = """examples:
  kafka-fast cluster move-replica orders:0,1 --broker 2 --to /disk2/kafka
  kafka-fast cluster log-dirs 2 --replicas      ARRIVING: it is still copied
"""

# ---- what there is ----


def _add_log_dirs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", nargs="*", type=node_id, help="only these brokers; default: all")
    parser.add_argument(
        "--topic", action="append", default=[], help="only its replicas; may be repeated"
    )
    parser.add_argument(
        "--replicas", action="store_true", help="a line for each replica, in the place of sums"
    )


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


# ---- moves ----


def _add_move(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "partition",
        nargs="+",
        metavar="TOPIC:N,...",
        type=partitions,
        help="whose replicas are moved",
    )
    parser.add_argument(
        "--broker", metavar="ID", type=node_id, required=True, help="which has these replicas"
    )
    parser.add_argument(
        "--to", metavar="DIRECTORY", required=True, help="the whole path, as log-dirs shows it"
    )


def move_replica(admin: Admin, args: argparse.Namespace) -> Report:
    """Let a broker move replicas to another of its directories.

    Raises:
        LogDirNotFound: it has no such directory.
    """
    from kafka_fast.admin import TopicPartitionReplica

    directories = admin.describe_log_dirs([args.broker])[args.broker]
    if args.to not in directories:
        names = ", ".join(sorted(directories))
        raise LogDirNotFound(f"broker {args.broker} has no directory {args.to}: it has {names}")
    chosen = dict.fromkeys(one for ones in args.partition for one in ones)
    where = {
        one: path
        for path, log_dir in directories.items()
        for one, replica in log_dir.replicas.items()
        if not replica.is_future
    }
    errors: dict[Any, KafkaError] = {
        one: UnknownTopicOrPartition(f"broker {args.broker} has no replica of {one}")
        for one in chosen
        if one not in where
    }
    replicas = {
        TopicPartitionReplica(one.topic, one.partition, args.broker): one
        for one in chosen
        if one not in errors
    }
    if replicas and not args.dry_run:
        moved = admin.alter_replica_log_dirs(dict.fromkeys(replicas, args.to))
        errors |= {replicas[replica]: error for replica, error in moved.errors.items()}
    outcome = "started"
    done = [one for one in replicas.values() if one not in errors]
    return Report(
        document={
            "dry_run": args.dry_run,
            "replicas": [
                {
                    **one._asdict(),
                    "node": args.broker,
                    "from": where[one],
                    "to": args.to,
                    "outcome": outcome,
                }
                for one in done
            ],
        },
        table=ReportTable(
            MOVE_COLUMNS,
            [
                (
                    *one,
                    args.broker,
                    where[one],
                    args.to,
                    outcome_text(outcome, is_dry_run=args.dry_run),
                )
                for one in done
            ],
        ),
        errors=errors,
    )


LOG_DIRS = Verb(
    "log-dirs",
    help="the log directories of brokers, and what they hold",
    description="Show the log directories of brokers: how much they hold, and how much "
    "is free. Changes nothing.",
    add_arguments=_add_log_dirs,
    run=log_dirs,
    examples=OF_LOG_DIRS,
)
MOVE_REPLICA = Verb(
    "move-replica",
    help="move replicas between the log directories of a broker",
    description="Let a broker copy replicas to another of its log directories, and drop the old "
    "ones then. The command does not wait for that.",
    add_arguments=_add_move,
    run=move_replica,
    examples=OF_MOVE,
    changes=True,
)
