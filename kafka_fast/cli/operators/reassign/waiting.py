"""Waiting for the end of moves, and what follows it: that throttles are removed."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kafka_fast import TopicPartition
from kafka_fast.cli.frame.names import counted, some_names
from kafka_fast.cli.operators.reassign.throttles import remove_throttles
from kafka_fast.cli.records.points import parse_duration
from kafka_fast.cli.showing.standard_error import is_terminal, say
from kafka_fast.errors import KafkaError, KafkaTimeoutError, UsageError

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import ConfigResource

PAUSE = 1.0
"""Seconds between two looks at what is moving."""

_LOOKS = 20
"""How often brokers are asked whether they know the end of moves that were under way."""
_LOOKS_AT_REST = 4
"""The same if nothing was moving: moves may have ended just before."""
_LOOK_PAUSE = 0.5
"""Seconds between two such looks."""


def add_wait(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Add the options to a command that can wait for the end of moves."""
    parser.add_argument("--wait", action="store_true", help=help_text)
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=parse_duration,
        help="how long --wait waits at most, such as 90s or 2h (default: until the end)",
    )


def wait_deadline(args: argparse.Namespace) -> float | None:
    """Return until when a command waits; None: until the end.

    Raises:
        UsageError: --timeout is given, and --wait is not.
    """
    if args.timeout is None:
        return None
    if not args.wait:
        raise UsageError("--timeout is how long --wait waits: give both")
    seconds: float = args.timeout.total_seconds()
    return time.monotonic() + seconds


def looks(*, were_moving: bool) -> Iterator[int]:
    """Yield as often as brokers are asked: they hear of the end later than the controller."""
    for look in range(_LOOKS if were_moving else _LOOKS_AT_REST):
        if look:
            time.sleep(_LOOK_PAUSE)
        yield look


def wait_until_moved(
    admin: Admin,
    partitions: Iterable[TopicPartition] | None,
    deadline: float | None,
    *,
    is_throttled: bool,
) -> bool:
    """Return once none of the partitions is moving; whether any was.

    Args:
        admin: the client.
        partitions: None: all of the cluster.
        deadline: of `wait_deadline`.
        is_throttled: whether an interruption leaves throttles, which is then said.

    Raises:
        KafkaTimeoutError: some are moving at the deadline.
    """
    partitions = None if partitions is None else list(partitions)
    shown = -1
    try:
        while True:
            count = len(admin.list_partition_reassignments(partitions))
            if not count:
                return shown > 0
            if deadline is not None and time.monotonic() >= deadline:
                raise KafkaTimeoutError(
                    f"{counted(count, 'partition')} had not moved when --timeout was over"
                )
            if count != shown and is_terminal():
                are = "is" if count == 1 else "are"
                say(f"{counted(count, 'partition')} {are} still moving")
            shown = count
            time.sleep(PAUSE)
    except (KafkaError, KeyboardInterrupt):
        say("the moves go on" + (f", and {STAYS}" if is_throttled else ""))
        raise


STAYS = (
    "the throttle stays until kafka-fast reassign status FILE --wait, or kafka-fast reassign "
    "cancel FILE"
)


def end_throttles(admin: Admin, topics: Iterable[str]) -> dict[ConfigResource, KafkaError]:
    """Remove throttles, unless partitions are still moving; say what was done.

    Returns:
        Whose throttles could not be removed.
    """
    moving = admin.list_partition_reassignments()
    if moving:
        names = some_names(str(partition) for partition in moving)
        say(
            f"throttles stay, because other partitions are still moving: {names}; kafka-fast "
            "reassign status --wait removes them after that"
        )
        return {}
    removed, errors = remove_throttles(admin, topics)
    if removed:
        say(f"throttles were removed: {some_names(map(str, removed))}")
    return errors
