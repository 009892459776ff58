"""`kafka-fast elect`: make preferred replicas the leaders of partitions, or any that is alive."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from kafka_fast import TopicPartition
from kafka_fast.cli.frame.asking import is_confirmed
from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.names import check_names, counted
from kafka_fast.cli.frame.nouns import Verb, add_verb
from kafka_fast.cli.operators.described import partition_infos
from kafka_fast.cli.operators.listed import real_errors
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import Alarm, ReportColumn, ReportTable
from kafka_fast.errors import ElectionNotNeeded, KafkaError, UnknownTopicOrPartition
from kafka_fast.values import Value

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import TopicPartitionInfo

EXAMPLES = """examples:
  kafka-fast elect --preferred
  kafka-fast elect --preferred --topic orders --dry-run
  kafka-fast elect --unclean --partition orders:3
"""

COLUMNS = (
    ReportColumn("TOPIC"),
    ReportColumn("PARTITION", is_number=True),
    ReportColumn("LEADER", is_number=True),
    ReportColumn("REPLICAS"),
    ReportColumn("ISR"),
    ReportColumn("OUTCOME"),
)

NOT_NEEDED = "not needed"

_PARTITION = re.compile(r"([A-Za-z0-9._-]+):([0-9]{1,9})")


class ElectionScope(Value, frozen=False):
    """The partitions that an election is about, and what is wrong with others."""

    infos: dict[TopicPartition, TopicPartitionInfo]
    errors: dict[TopicPartition | str, KafkaError]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the kind of election, and the partitions."""
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument(
        "--preferred",
        action="store_true",
        help="the first replica of each partition, if it is in sync",
    )
    kind.add_argument(
        "--unclean",
        action="store_true",
        help="any replica that is alive, where none is in sync: records may be lost; asks "
        "(Kafka 2.4)",
    )
    parser.add_argument(
        "--topic", action="append", default=[], help="all its partitions; may be repeated"
    )
    parser.add_argument(
        "--partition",
        metavar="TOPIC:N",
        type=_partition,
        action="append",
        default=[],
        help="one partition; may be repeated (default: all partitions that need it)",
    )


def _partition(text: str) -> TopicPartition:
    match = _PARTITION.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected TOPIC:NUMBER, such as orders:3, not {text!r}")
    return TopicPartition(match[1], int(match[2]))


def run(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Elect leaders; look first which partitions need it, and ask where records may be lost."""
    from kafka_fast.admin import ElectionType

    scope = _scope(admin, args)
    needed = {
        partition: info
        for partition, info in scope.infos.items()
        if _is_needed(info, is_unclean=args.unclean)
    }
    outcomes = dict.fromkeys(scope.infos if _is_named(args) else needed, NOT_NEEDED)
    outcomes.update(dict.fromkeys(needed, "elected"))
    errors = scope.errors
    if needed and not args.dry_run:
        if args.unclean and not is_confirmed(
            args,
            f"elect leaders of {counted(len(needed), 'partition')} that may not have all records?",
            ReportTable(COLUMNS[:-1], [_row(*pair) for pair in needed.items()]),
        ):
            return None
        kind = ElectionType.UNCLEAN if args.unclean else ElectionType.PREFERRED
        for partition, error in admin.elect_leaders(kind, partitions=needed).errors.items():
            if isinstance(error, ElectionNotNeeded):
                outcomes[partition] = NOT_NEEDED
            else:
                errors[partition] = error
                del outcomes[partition]
    return _report(args, scope, outcomes)


def _may_lose_records(args: argparse.Namespace) -> bool:
    return bool(args.unclean)


def _is_named(args: argparse.Namespace) -> bool:
    return bool(args.topic or args.partition)


def _scope(admin: Admin, args: argparse.Namespace) -> ElectionScope:
    """Return the partitions that are named; all if none is.

    Raises:
        UsageError: a name is no topic's.
    """
    check_names(args.topic)
    topics = dict.fromkeys([*args.topic, *(one.topic for one in args.partition)])
    is_all = not topics
    described = admin.describe_topics(topics or admin.list_topics(include_internal=True))
    infos = partition_infos(dict(sorted(described.succeeded.items())))
    errors: dict[TopicPartition | str, KafkaError] = {}
    errors.update(real_errors(described.errors) if is_all else described.errors)
    if not is_all:
        errors.update(
            (one, UnknownTopicOrPartition(f"there is no partition {one}"))
            for one in args.partition
            if one not in infos and one.topic not in described.errors
        )
        infos = {
            partition: info
            for partition, info in infos.items()
            if partition.topic in args.topic or partition in args.partition
        }
    return ElectionScope(infos, errors)


def _is_needed(info: TopicPartitionInfo, *, is_unclean: bool) -> bool:
    if is_unclean:
        return info.leader is None
    return bool(info.replicas) and info.leader != info.replicas[0]


def _row(partition: TopicPartition, info: TopicPartitionInfo) -> tuple[object, ...]:
    leader = Alarm(None) if info.leader is None else info.leader
    return (*partition, leader, info.replicas, info.isr)


def _report(
    args: argparse.Namespace, scope: ElectionScope, outcomes: dict[TopicPartition, str]
) -> Report:
    """Return what became of the partitions; leaders and replicas are those of before."""
    return Report(
        document={
            "dry_run": args.dry_run,
            "partitions": [
                {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "leader_before": scope.infos[partition].leader,
                    "replicas": scope.infos[partition].replicas,
                    "outcome": outcome.replace(" ", "_"),
                }
                for partition, outcome in outcomes.items()
            ],
        },
        table=ReportTable(
            [*COLUMNS[:2], ReportColumn("BEFORE", is_number=True), *COLUMNS[3:]],
            [
                (
                    *_row(partition, scope.infos[partition]),
                    outcome
                    if outcome == NOT_NEEDED
                    else outcome_text(outcome, is_dry_run=args.dry_run),
                )
                for partition, outcome in outcomes.items()
            ],
        ),
        errors=scope.errors,
        when_empty="no partition needs such an election",
    )


ELECT = Verb(
    "elect",
    help="elect leaders of partitions",
    description="Make the preferred replicas the leaders of partitions again, or, where no replica "
    "is in sync, one that is alive. The latter may lose records: on a terminal it asks, elsewhere "
    "it needs --yes.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
    changes=True,
    asks=True,
    asks_when=_may_lose_records,
)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command, which is a verb without a noun."""
    add_verb(commands, ELECT)
