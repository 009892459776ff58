"""`--assignment PARTITION:BROKER,BROKER`: which brokers get the replicas of a partition."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable

from kafka_fast.errors import UsageError

_FORM = re.compile(r"([0-9]{1,9}):([0-9]{1,9}(?:,[0-9]{1,9})*)")


def add_assignment(parser: argparse.ArgumentParser, about: str) -> None:
    """Add the option to a command.

    Args:
        parser: the command's parser.
        about: the end of its help.
    """
    parser.add_argument(
        "--assignment",
        metavar="PARTITION:BROKER,...",
        type=_assignment,
        action="append",
        default=[],
        help=f"the brokers of a partition, the preferred leader first; may be repeated{about}",
    )


def assignments_of(pairs: Iterable[tuple[int, tuple[int, ...]]]) -> dict[int, tuple[int, ...]]:
    """Return the brokers by partition, in the order of the partitions.

    Raises:
        UsageError: a partition is assigned twice.
    """
    brokers: dict[int, tuple[int, ...]] = {}
    for partition, ids in sorted(pairs):
        if partition in brokers:
            raise UsageError(f"partition {partition} is assigned twice")
        brokers[partition] = ids
    return brokers


def _assignment(text: str) -> tuple[int, tuple[int, ...]]:
    match = _FORM.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected PARTITION:BROKER,BROKER, not {text!r}")
    return int(match[1]), tuple(int(broker) for broker in match[2].split(","))
