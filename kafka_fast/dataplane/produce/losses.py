"""Failures that nobody can observe: counted by topic, and told once.

A record's failure is unobserved if it was sent with `send_nowait`, or its handle was dropped
unread, and it has no callback; or if its producer ended before its fate was known. The append path
and the observers count such failures (`add`); `flush` and `close` raise them, and the core logs
those that neither has raised (`log`).

Threads: any, with the GIL.
"""

from __future__ import annotations

from collections import Counter

from kafka_fast.errors import DeliveryError
from kafka_fast.logs import UNLIMITED, get_logger

logger = get_logger("kafka_fast.producer")

TOPICS_NAMED = 5
"""Topics that a log line names; the others are counted."""


class Losses:
    """Records of one producer that were not, or maybe not, delivered, unknown to anybody."""

    __slots__ = ("count", "first", "topics")

    def __init__(self) -> None:
        """Begin with none."""
        self.count = 0
        """Records."""
        self.topics: Counter[str] = Counter()
        """Records by topic."""
        self.first: DeliveryError | None = None
        """The error of the first of them."""

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return self.count > 0

    def add(self, topic: str, count: int, error: DeliveryError) -> None:
        """Count `count` records of a topic that failed with `error`."""
        self.count += count
        self.topics[topic] += count
        self.first = self.first or error

    def log(self, client_id: str) -> None:
        """Log all of them in one ERROR."""
        logger.error(
            "producer %s: %s not delivered (%s); the first cause: %s",
            client_id,
            were(self.count),
            ", ".join(self._by_topic()),
            self.first,
            extra=UNLIMITED,
        )

    def _by_topic(self) -> list[str]:
        named = [f"topic {name}: {count}" for name, count in self.topics.most_common(TOPICS_NAMED)]
        others = len(self.topics) - len(named)
        return [*named, f"and {others} other topics"] if others else named


def were(count: int) -> str:
    """Return "1 record was" or "2 records were"."""
    return "1 record was" if count == 1 else f"{count} records were"
