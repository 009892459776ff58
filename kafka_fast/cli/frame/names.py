"""Names and numbers on the command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable

from kafka_fast import TopicPartition
from kafka_fast.errors import UsageError

NAMED = 5
"""Most items that one message names."""

_PARTITIONS = re.compile(r"([^:]+):([0-9]{1,9}(?:,[0-9]{1,9})*)")
_TOPIC = re.compile(r"[A-Za-z0-9._-]+")


def check_names(topics: Iterable[str]) -> None:
    """Refuse patterns and whatever else no topic is called.

    Raises:
        UsageError: it names the first such name.
    """
    for name in topics:
        if not _TOPIC.fullmatch(name):
            raise UsageError(f"{name!r} is no name of a topic: kafka-fast topics lists them")


def some_names(names: Iterable[str]) -> str:
    """Return the first names, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 topic", "2 topics"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def positive(text: str) -> int:
    """Return a number from 1 on."""
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, not {text!r}")
    return int(text)


def partitions(text: str) -> list[TopicPartition]:
    """Return the partitions of `TOPIC:NUMBER,NUMBER`."""
    match = _PARTITIONS.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected TOPIC:PARTITION such as orders:0, not {text!r}")
    return [TopicPartition(match[1], int(number)) for number in match[2].split(",")]


def node_id(text: str) -> int:
    """Return the id of a broker or a controller."""
    if not (text.isascii() and text.isdigit()) or int(text) >= 2**31:
        raise argparse.ArgumentTypeError(f"expected the id of a node, not {text!r}")
    return int(text)


def whole_number(text: str) -> int:
    """Return a number from 0 on."""
    if not (text.isascii() and text.isdigit()) or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"expected a number from 0 on, not {text!r}")
    return int(text)


def principal(text: str) -> str:
    """Return a principal, which has a type: "User:alice"."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise argparse.ArgumentTypeError(f"expected a principal such as User:alice, not {text!r}")
    return text
