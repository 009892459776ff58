"""Checks of what users give to operations, beyond what all clients check (`control.arguments`).

Thread: the user's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka_fast.control.arguments import checked_name, checked_number, checked_partitions, several
from kafka_fast.control.requests.targets import (
    AllNodes,
    Coordinator,
    CoordinatorOfEach,
    Leaders,
    OneNode,
    Target,
)
from kafka_fast.errors import AuthenticationError, KafkaError, UsageError, reworded
from kafka_fast.secret import Secret


def told_secret(secret: Secret, name: str, what: str) -> bytes:
    """Return a secret in UTF-8. Any thread that may block.

    Args:
        secret: a text, or a user's function.
        name: of the secret, as "password".
        what: needs it, in an error.

    Raises:
        UsageError: the user's function failed, or the text is none that can be sent.
        KafkaError: the user's function raised an OSError, which may pass.
    """
    from kafka_fast.control.authentication.revealing import revealed

    failure: KafkaError
    try:
        return revealed(secret, name)
    except AuthenticationError as error:
        failure = UsageError(f"{what} {error}")
    except KafkaError as error:
        failure = reworded(error, f"{what} {error}")
    raise failure


def items_for(target: Target[Any], items: Iterable[Any] | None) -> list[Any] | None:
    """Return the items of an operation, each once, after a check of what finds their nodes.

    Args:
        target: where they go.
        items: what a user has given; None: all nodes.

    Raises:
        TypeError: they are no list, or one has another type.
        UsageError: there can be no such item.
    """
    if isinstance(target, Coordinator):
        checked_name(target.key, "the id of a group")
    if isinstance(target, OneNode):
        checked_number(target.node_id, "the id of a node")
    if items is None and isinstance(target, AllNodes):
        return None
    keys: list[Any] = several(items, "items")  # type: ignore[arg-type]
    if isinstance(target, CoordinatorOfEach):
        keys = [checked_name(item, "an id") for item in keys]
    elif isinstance(target, Leaders):
        keys = checked_partitions(keys)
    elif isinstance(target, AllNodes):
        keys = [checked_number(item, "the id of a node") for item in keys]
    return list(dict.fromkeys(keys))
