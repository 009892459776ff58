"""Guards the client against exceptions of users' assignors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafka_fast.errors import AssignorError
from kafka_fast.logs import get_logger

logger = get_logger("kafka_fast.group")


@contextmanager
def calling(name: str) -> Iterator[None]:
    """Turn whatever an assignor raises inside this context into an `AssignorError`. Any thread.

    Args:
        name: the assignor's name.

    Raises:
        AssignorError: the assignor has failed; its exception is the cause.
    """
    try:
        yield
    except BaseException as error:  # a user's code may raise anything, SystemExit too
        logger.exception("the assignor %r has failed", name)
        raise AssignorError(f"the assignor {name!r} has failed: {error!r}") from error
