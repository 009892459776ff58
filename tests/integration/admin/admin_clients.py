"""The admin client of the tests on real Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_fast import Admin
from kafka_fast.testing._kafka.real_kafka import RealKafka


@pytest.fixture(scope="module")
def admin(real_kafka: RealKafka) -> Iterator[Admin]:
    """One client for a module's tests."""
    with Admin(bootstrap_servers=real_kafka.bootstrap) as made:
        yield made
