"""`kafka-fast reassign run`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from kafka_fast import TopicPartition
from kafka_fast.cli.frame.asking import is_confirmed
from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.names import counted, positive, some_names
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.described import partition_infos
from kafka_fast.cli.operators.reassign.files import read_assignment
from kafka_fast.cli.operators.reassign.throttles import Move, set_throttles, settled
from kafka_fast.cli.operators.reassign.waiting import (
    STAYS,
    add_wait,
    end_throttles,
    looks,
    wait_deadline,
    wait_until_moved,
)
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.standard_error import say
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import KafkaError, ReassignmentInProgress, UnknownTopicOrPartition

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import PartitionReassignment

EXAMPLES = """examples:
  kafka-fast reassign run plan.json --dry-run
  kafka-fast reassign run plan.json --throttle 50000000 --wait
  kafka-fast reassign run plan.json --yes
"""

COLUMNS = (
    ReportColumn("TOPIC"),
    ReportColumn("PARTITION", is_number=True),
    ReportColumn("BEFORE"),
    ReportColumn("AFTER"),
    ReportColumn("OUTCOME"),
)

UNCHANGED = "unchanged"

Reassignments: TypeAlias = "Mapping[TopicPartition, PartitionReassignment]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the file, and how to go about it."""
    parser.add_argument("file", help="a plan, as reassign plan and Kafka's script write it")
    parser.add_argument(
        "--throttle",
        metavar="BYTES",
        type=positive,
        help="most bytes a second that a broker sends or gets for the moves; it is removed at the "
        "end of --wait",
    )
    parser.add_argument(
        "--additional",
        action="store_true",
        help="even if partitions are moving already; --throttle is then for these, too",
    )
    add_wait(parser, "until all partitions have moved")


def run(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Start the moves; look first what moves, and ask."""
    deadline = wait_deadline(args)
    plan = read_assignment(args.file)
    errors: dict[Any, KafkaError] = {}
    under_way = admin.list_partition_reassignments()
    moves = _moves(admin, plan, under_way, errors)
    outcomes = dict.fromkeys((one for one in plan if one not in errors), UNCHANGED)
    moving = {
        one: move for one, move in moves.items() if one in under_way or move.before != move.after
    }
    if moving and under_way:
        _check_additional(args, under_way)
    if moving and not args.dry_run:
        question = f"move {counted(len(moving), 'partition')}?"
        if not is_confirmed(args, question, ReportTable(COLUMNS[:-1], _rows(moving))):
            return None
        outcomes |= _moved(admin, args, moving, under_way, deadline, errors)
        outcomes = {one: outcome for one, outcome in outcomes.items() if one not in errors}
    else:
        outcomes.update(dict.fromkeys(moving, "moved"))
    return _report(args, moves, outcomes, errors)


def _check_additional(args: argparse.Namespace, under_way: Reassignments) -> None:
    """Refuse moves beside those of somebody else, as Kafka's script does.

    Raises:
        ReassignmentInProgress: partitions are moving, and --additional is not given.
    """
    moving = f"{some_names(map(str, under_way))} moving already"
    if args.additional:
        if args.throttle is not None:
            say(f"{moving}: what is throttled of that is throttled anew, by --throttle")
        return
    text = f"{moving}: give --additional to move partitions beside that"
    if not args.dry_run:
        raise ReassignmentInProgress(text)
    say(text)


def _moves(
    admin: Admin,
    plan: Mapping[TopicPartition, tuple[int, ...]],
    under_way: Reassignments,
    errors: dict[Any, KafkaError],
) -> dict[TopicPartition, Move]:
    """Return what each partition of the plan has and gets; add what is not there to the errors."""
    described = admin.describe_topics(dict.fromkeys(partition.topic for partition in plan))
    infos = partition_infos(described.succeeded)
    replicas = {partition: info.replicas for partition, info in infos.items()}
    for partition in plan:
        if partition.topic in described.errors:
            errors[partition] = described.errors[partition.topic]
        elif partition not in replicas:
            errors[partition] = UnknownTopicOrPartition(f"there is no partition {partition}")
    before = {**replicas, **{one: settled(under_way[one]) for one in under_way}}
    return {one: Move(before[one], after) for one, after in plan.items() if one in replicas}


def _moved(
    admin: Admin,
    args: argparse.Namespace,
    moves: Mapping[TopicPartition, Move],
    under_way: Reassignments,
    deadline: float | None,
    errors: dict[Any, KafkaError],
) -> dict[TopicPartition, str]:
    """Start the moves, within a throttle if there is to be one; return the outcomes."""
    # A topic has one list of throttled replicas: those that are moving already stay in it.
    others = {
        one: Move(settled(move), move.replicas)
        for one, move in under_way.items()
        if one not in moves
    }
    topics = dict.fromkeys(partition.topic for partition in (*others, *moves))
    if args.throttle is not None:
        failed = set_throttles(admin, {**others, **moves}, args.throttle)
        if failed:
            say("nothing moves, because the throttle could not be set")
            errors |= failed | end_throttles(admin, topics)
            return {}
    try:
        result = admin.alter_partition_reassignments({one: moves[one].after for one in moves})
    except (KafkaError, KeyboardInterrupt):
        if args.throttle is not None:  # nobody knows whether something moves
            say(STAYS)
        raise
    errors |= result.errors
    started = {one: moves[one] for one in result.succeeded}
    if args.wait and started:
        wait_until_moved(admin, started, deadline, is_throttled=args.throttle is not None)
    if args.throttle is not None:
        if args.wait or not started:
            errors |= end_throttles(admin, topics)
        else:
            say(STAYS)
    if not args.wait:
        return dict.fromkeys(started, "started")
    errors |= _strays(admin, started)
    return dict.fromkeys(started, "moved")


def _strays(admin: Admin, moves: Mapping[TopicPartition, Move]) -> dict[TopicPartition, KafkaError]:
    """Return the partitions whose moves have ended elsewhere, because somebody gave them up."""
    errors: dict[TopicPartition, KafkaError] = {}
    plan = {one: move.after for one, move in moves.items()}
    for _ in looks(were_moving=True):
        errors = {}
        for one, move in _moves(admin, plan, {}, errors).items():
            if move.before != move.after:
                brokers = ", ".join(map(str, move.before))
                errors[one] = KafkaError(
                    f"{one} has its replicas on {brokers}: somebody has given the move up"
                )
        if not errors:
            break
    return errors


def _rows(moves: Mapping[TopicPartition, Move]) -> list[tuple[object, ...]]:
    return [(*one, move.before, move.after) for one, move in moves.items()]


def _report(
    args: argparse.Namespace,
    moves: Mapping[TopicPartition, Move],
    outcomes: Mapping[TopicPartition, str],
    errors: Mapping[Any, KafkaError],
) -> Report:
    return Report(
        document={
            "dry_run": args.dry_run,
            "partitions": [
                {
                    "topic": one.topic,
                    "partition": one.partition,
                    "before": moves[one].before,
                    "after": moves[one].after,
                    "outcome": outcome,
                }
                for one, outcome in outcomes.items()
            ],
        },
        table=ReportTable(
            COLUMNS,
            [
                (
                    *one,
                    moves[one].before,
                    moves[one].after,
                    outcome
                    if outcome == UNCHANGED
                    else outcome_text(outcome, is_dry_run=args.dry_run),
                )
                for one, outcome in outcomes.items()
            ],
        ),
        errors=errors,
        noun="resource",
    )


RUN = Verb(
    "run",
    help="move replicas to the brokers of a plan",
    description="Move partitions to the brokers that a file names. On a terminal it shows what "
    "moves, and asks; elsewhere it needs --yes.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
    changes=True,
    asks=True,
)
