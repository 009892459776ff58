"""`kafka-fast reassign status` and `cancel`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kafka_fast import TopicPartition
from kafka_fast.cli.frame.asking import is_confirmed
from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.names import counted
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.described import partition_infos
from kafka_fast.cli.operators.reassign.files import read_assignment
from kafka_fast.cli.operators.reassign.waiting import (
    add_wait,
    end_throttles,
    looks,
    wait_deadline,
    wait_until_moved,
)
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import Alarm, ReportColumn, ReportTable
from kafka_fast.errors import (
    KafkaError,
    NoReassignmentInProgress,
    UnknownTopicOrPartition,
    UsageError,
)

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import PartitionReassignment

STATUS_EXAMPLES = """examples:
  kafka-fast reassign status
  kafka-fast reassign status plan.json
  kafka-fast reassign status plan.json --wait       also removes throttles
"""
CANCEL_EXAMPLES = """examples:
  kafka-fast reassign cancel plan.json
  kafka-fast reassign cancel --all --yes
"""

STATUS_COLUMNS = (
    ReportColumn("TOPIC"),
    ReportColumn("PARTITION", is_number=True),
    ReportColumn("REPLICAS"),
    ReportColumn("ADDING"),
    ReportColumn("REMOVING"),
    ReportColumn("STATE"),
)
CANCEL_COLUMNS = (*STATUS_COLUMNS[:-1], ReportColumn("OUTCOME"))

MOVING, DONE, DIFFERENT = "moving", "done", "different"

# ---- status ----


def _add_status(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", help="a plan; without one, all partitions that are moving are shown"
    )
    add_wait(parser, "until none of them is moving; then remove the throttles of replication")


def status(admin: Admin, args: argparse.Namespace) -> Report:
    """Return what is moving, or how far a plan is."""
    deadline = wait_deadline(args)
    plan = None if args.file is None else read_assignment(args.file)
    errors: dict[Any, KafkaError] = {}
    were_moving = False
    if args.wait:
        were_moving = wait_until_moved(admin, plan, deadline, is_throttled=True)
        errors |= end_throttles(admin, _topics(admin, plan))
    moving = admin.list_partition_reassignments(plan)
    entries = [_entry(one, move, MOVING) for one, move in sorted(moving.items())]
    if plan is not None:
        for _ in looks(were_moving=were_moving):
            absent: dict[Any, KafkaError] = {}
            entries = _of_plan(admin, plan, moving, absent)
            if not args.wait or all(entry["state"] == DONE for entry in entries):
                break
        errors |= absent
    return Report(
        document={"partitions": entries},
        table=ReportTable(
            STATUS_COLUMNS,
            [
                [Alarm(cell) if cell == DIFFERENT else cell for cell in entry.values()]
                for entry in entries
            ],
        ),
        errors=errors,
        noun="resource",
        when_empty="no partition is moving",
    )


def _topics(admin: Admin, plan: Iterable[TopicPartition] | None) -> Iterable[str]:
    """Return the topics of a plan; without one, all that may have throttles."""
    if plan is None:
        return admin.list_topics(include_internal=True)
    return dict.fromkeys(partition.topic for partition in plan)


def _of_plan(
    admin: Admin,
    plan: dict[TopicPartition, tuple[int, ...]],
    moving: dict[TopicPartition, PartitionReassignment],
    errors: dict[Any, KafkaError],
) -> list[dict[str, object]]:
    described = admin.describe_topics(dict.fromkeys(partition.topic for partition in plan))
    infos = partition_infos(described.succeeded)
    replicas = {partition: info.replicas for partition, info in infos.items()}
    entries = []
    for one, brokers in plan.items():
        if one in moving:
            entries.append(_entry(one, moving[one], MOVING))
        elif one in replicas:
            state = DONE if replicas[one] == brokers else DIFFERENT
            entries.append(
                {
                    "topic": one.topic,
                    "partition": one.partition,
                    "replicas": replicas[one],
                    "adding": (),
                    "removing": (),
                    "state": state,
                }
            )
        else:
            absent = UnknownTopicOrPartition(f"there is no partition {one}")
            errors[one] = described.errors.get(one.topic, absent)
    return entries


def _entry(partition: TopicPartition, move: PartitionReassignment, state: str) -> dict[str, object]:
    """Return what is told of a move; the columns have this order."""
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "replicas": move.replicas,
        "adding": move.adding_replicas,
        "removing": move.removing_replicas,
        "state": state,
    }


# ---- cancel ----


def _add_cancel(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", help="a plan")
    parser.add_argument("--all", action="store_true", help="all moves of the cluster")


def cancel(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Give up moves that are under way, and remove throttles; ask first."""
    if (args.file is None) != args.all:
        raise UsageError("say which moves: the file of the plan, or --all")
    plan = None if args.all else read_assignment(args.file)
    moving = admin.list_partition_reassignments(plan)
    errors: dict[Any, KafkaError] = {}
    outcomes = dict.fromkeys(sorted(moving), "cancelled")
    if moving and not args.dry_run:
        rows = [[*_entry(one, moving[one], "").values()][:-1] for one in outcomes]
        question = f"give up the moves of {counted(len(moving), 'partition')}?"
        if not is_confirmed(args, question, ReportTable(CANCEL_COLUMNS[:-1], rows)):
            return None
        refused = admin.alter_partition_reassignments(dict.fromkeys(outcomes)).errors
        errors |= {
            one: error
            for one, error in refused.items()
            if not isinstance(error, NoReassignmentInProgress)  # it has just ended
        }
        outcomes = {one: text for one, text in outcomes.items() if one not in refused}
    if not args.dry_run:
        errors |= end_throttles(admin, _topics(admin, plan))
    return Report(
        document={
            "dry_run": args.dry_run,
            "partitions": [
                {"topic": one.topic, "partition": one.partition, "outcome": text}
                for one, text in outcomes.items()
            ],
        },
        table=ReportTable(
            CANCEL_COLUMNS,
            [
                [
                    *[*_entry(one, moving[one], "").values()][:-1],
                    outcome_text(text, is_dry_run=args.dry_run),
                ]
                for one, text in outcomes.items()
            ],
        ),
        errors=errors,
        noun="resource",
        when_empty="no partition is moving",
    )


STATUS = Verb(
    "status",
    help="what is moving, and how far a plan is",
    description="Show which partitions are moving, or how far the partitions of a plan are. "
    "Changes nothing, unless --wait is given: throttles are removed at the end.",
    add_arguments=_add_status,
    run=status,
    examples=STATUS_EXAMPLES,
)
CANCEL = Verb(
    "cancel",
    help="give up moves that are under way",
    description="Give up moves that are under way: replicas stay where they were. Throttles are "
    "removed. On a terminal it asks, elsewhere it needs --yes.",
    add_arguments=_add_cancel,
    run=cancel,
    examples=CANCEL_EXAMPLES,
    changes=True,
    asks=True,
)
