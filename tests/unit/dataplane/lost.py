"""What a flush would raise."""

from __future__ import annotations

from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.errors import DeliveryError
from kafka_fast.sending._observers import raise_lost


def lost_error(queues: Queues) -> DeliveryError | None:
    """Take the failures that nobody can observe: what a flush would raise, or None."""
    try:
        raise_lost(queues)
    except DeliveryError as error:
        return error
    return None


def lost_count(queues: Queues) -> int:
    """Take the failures that nobody can observe; return how many records they are."""
    error = lost_error(queues)
    if error is None:
        return 0
    assert isinstance(error.first, DeliveryError)
    assert error.__cause__ is error.first
    return error.count
