"""Failures that nobody can observe, as they are told: by topic, with the first cause.

A record's failure is unobserved if it was sent with `send_nowait`, or its handle was dropped
unread, and it has no callback; or if its producer ended before its fate was known. The observers
count such failures (`_losses`). `flush` and `close` raise them, and the log has those that neither
has raised.

Thread: that of whoever tells of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from operator import itemgetter

from kafka_fast.errors import DeliveryError
from kafka_fast.logs import UNLIMITED, count_of, get_logger

logger = get_logger("kafka_fast.producer")

TOPICS_NAMED = 5
"""Topics that a log line names; the others are counted."""


class Losses:
    """Records of one producer that were not, or maybe not, delivered, unknown to anybody."""

    __slots__ = ("count", "first", "topics")

    def __init__(self, topics: Mapping[str, int], first: DeliveryError) -> None:
        """Take what was counted; there is at least one record.

        Args:
            topics: how many records, by topic.
            first: the error of the first of them.
        """
        self.topics = Counter(topics)
        """Records by topic."""
        self.count = sum(self.topics.values())
        """Records."""
        self.first = first
        """The error of the first of them."""

    def error(self) -> DeliveryError:
        """Return the error that a flush or close raises."""
        error = DeliveryError(
            f"{were(self.count)} not delivered, and nobody was told; the first: {self.first}",
            outcome=self.first.outcome,
            count=self.count,
            first=self.first,
            samples=(self.first,),
        )
        error.__cause__ = self.first
        return error

    def log(self, client_id: str) -> None:
        """Log all of them in one ERROR."""
        logger.error(
            "%s not delivered (%s); the first cause: %s",
            were(self.count),
            ", ".join(self._by_topic()),
            self.first,
            extra={**UNLIMITED, "client_id": client_id},
        )

    def _by_topic(self) -> list[str]:
        # Not `most_common`, which imports a module: the interpreter may be about to end.
        ranked = sorted(self.topics.items(), key=itemgetter(1), reverse=True)
        named = [f"topic {name}: {count}" for name, count in ranked[:TOPICS_NAMED]]
        others = len(ranked) - len(named)
        return [*named, f"and {count_of(others, 'other topic')}"] if others else named


def were(count: int) -> str:
    """Return "1 record was" or "2 records were"."""
    return "1 record was" if count == 1 else f"{count} records were"
