"""Users' assignors run on the control thread, which must outlive whatever they raise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafka_fast.errors import KafkaError
from kafka_fast.logs import get_logger

logger = get_logger("kafka_fast.group")


@contextmanager
def calling(name: str) -> Iterator[None]:
    """Call an assignor's methods inside of this.

    Args:
        name: the assignor's.

    Raises:
        KafkaError: it has failed; what it raised is the cause.
    """
    try:
        yield
    except Exception as error:  # a user's code may raise anything
        logger.exception("the assignor %r has failed", name)
        raise KafkaError(f"the assignor {name!r} has failed: {error!r}") from error
