"""Brokers to test against: embedded, null and real Apache Kafka.

    from kafka_fast.testing import EmbeddedKafka

`plugin` has pytest fixtures for the embedded broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka_fast.testing.broker.serving.server import EmbeddedKafka

__all__ = ["EmbeddedKafka"]


def __getattr__(name: str) -> Any:
    """Import the embedded broker at its first use: the other brokers do not need it."""
    if name == "EmbeddedKafka":
        from kafka_fast.testing.broker.serving.server import EmbeddedKafka

        return EmbeddedKafka
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
