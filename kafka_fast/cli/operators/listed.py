"""Things that a command was not told by name, but has found in a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from kafka_fast.errors import KafkaError, TopicAuthorizationFailed, UnknownTopicOrPartition

K = TypeVar("K")


def real_errors(errors: Mapping[K, KafkaError]) -> dict[K, KafkaError]:
    """Return the errors of topics that were listed, without those that are none.

    A topic may be deleted after it was listed, and some may be listed and not be described. Of a
    topic that did not come for another reason nobody knows anything.
    """
    harmless = (TopicAuthorizationFailed, UnknownTopicOrPartition)
    return {key: error for key, error in errors.items() if not isinstance(error, harmless)}
