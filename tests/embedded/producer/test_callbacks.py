"""Delivery callbacks beside flush: who takes note of ended batches must not leave them lying."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from kafka_fast import Producer
from tests.support.null_broker import NullBroker

ROUNDS = 30
RECORDS = 500


@pytest.fixture
def restless_gil() -> Iterator[None]:
    """Let threads change at nearly every bytecode."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless_gil")
def test_every_callback_runs_soon_after_flush():
    """Regression: flush noted the end of a batch while the callback thread went to sleep."""
    called = threading.Semaphore(0)
    with NullBroker() as broker, Producer({"bootstrap.servers": broker.bootstrap}) as producer:
        for _ in range(ROUNDS):
            for _ in range(RECORDS):
                producer.send_nowait(
                    "t", b"x", on_delivery=lambda error, metadata: called.release()
                )
                producer.flush(0)
            assert producer.flush(10) == 0
            for _ in range(RECORDS):
                assert called.acquire(timeout=5)
