"""Waiting for the end of moves, and what follows it: that throttles are removed."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_fast import TopicPartition
from kafka_fast.cli.frame.names import counted, some_names
from kafka_fast.cli.operators.reassign.throttles import remove_throttles
from kafka_fast.cli.showing.standard_error import is_terminal, say
from kafka_fast.errors import KafkaError

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import ConfigResource

PAUSE = 1.0
"""Seconds between two looks at what is moving."""


def wait_until_moved(
    admin: Admin, partitions: Iterable[TopicPartition] | None, *, is_throttled: bool
) -> None:
    """Return once none of the partitions is moving.

    Args:
        admin: the client.
        partitions: None: all of the cluster.
        is_throttled: whether an interruption leaves throttles, which is then said.
    """
    partitions = None if partitions is None else list(partitions)
    shown = -1
    try:
        while True:
            count = len(admin.list_partition_reassignments(partitions))
            if not count:
                return
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
        say(f"throttles stay, because other partitions are still moving: {names}")
        return {}
    removed, errors = remove_throttles(admin, topics)
    if removed:
        say(f"throttles were removed: {some_names(map(str, removed))}")
    return errors
