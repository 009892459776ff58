"""Brokers to test against: embedded, null and real Apache Kafka.

    from kafka_fast.testing import EmbeddedKafka

`plugin` has pytest fixtures round the embedded broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka_fast.testing.broker.server import EmbeddedKafka

__all__ = ["EmbeddedKafka"]


def __getattr__(name: str) -> Any:
    """Import the embedded broker when it is first used: the other brokers do without it."""
    if name == "EmbeddedKafka":
        from kafka_fast.testing.broker.server import EmbeddedKafka

        return EmbeddedKafka
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
