"""The brokers that the peers' calls run on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_fast.testing._kafka.real_kafka import RealKafka
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.integration.peer_calls.scene import Brokers


@pytest.fixture(scope="module")
def brokers(real_kafka: RealKafka) -> Iterator[Brokers]:
    """One node each, which creates no topic by itself."""
    with EmbeddedKafka(auto_create=False) as embedded:
        yield Brokers(embedded, real_kafka)
