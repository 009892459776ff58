"""A flush tells of every failure that nobody can observe, whatever the threads do meanwhile.

Python changes threads here after each microsecond, where it can. In the fortunate case the control
thread takes note of a failure first, and the flush finds it noted; or the other way round.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from kafka_fast import Producer
from kafka_fast.errors import DeliveryError
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.producing import MakeProducer, new_topic

DRIVERS = True

FLUSHES = 120
TOO_LARGE = bytes(2000)
AT_ONCE = 20


@pytest.fixture(autouse=True)
def _eager_threads() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(name="small")
def topic_of_small_batches(kafka: EmbeddedKafka) -> str:
    return new_topic(kafka, "small", max_message_bytes="1000")


def raised_by(call: Any) -> int:
    """Return how many records a call has raised."""
    try:
        call()
    except DeliveryError as error:
        return error.count
    return 0


def test_no_flush_is_silent(producer_on: MakeProducer, small: str) -> None:
    """Regression: 31 to 40 of 120 were, and the control thread could fail on what a flush took."""
    producer = producer_on()
    producer.partitions_for(small)
    for _ in range(FLUSHES):
        producer.send_nowait(small, TOO_LARGE)
        assert raised_by(producer.flush) == 1
    producer.close()  # raises nothing: all was told


def test_handles_that_go_while_others_flush(producer_on: MakeProducer, small: str) -> None:
    """Each failure is raised by one of the flushes, in whichever thread."""
    producer = producer_on()
    producer.partitions_for(small)
    raised: list[int] = []
    go_on = threading.Event()

    def flush() -> None:
        while not go_on.is_set():
            raised.append(raised_by(producer.flush))

    thread = threading.Thread(target=flush)
    thread.start()
    try:
        for _ in range(FLUSHES // 10):
            handles = [producer.send(small, TOO_LARGE) for _ in range(AT_ONCE)]
            for handle in handles[::2]:
                assert handle.exception() is not None
            del handle, handles
    finally:
        go_on.set()
        thread.join()
    raised.append(raised_by(producer.close))
    assert sum(raised) == FLUSHES // 10 * AT_ONCE // 2


@pytest.mark.threads_only("signals interrupt the main thread's own flush")
def test_what_an_interrupted_flush_has_taken_is_raised_by_the_next(
    producer_on: MakeProducer, small: str
) -> None:
    producer = producer_on()
    producer.partitions_for(small)

    def interrupt(_: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code is Producer.flush.__code__:
                raise InterruptedError
            frame = frame.f_back

    before = signal.signal(signal.SIGALRM, interrupt)
    interrupted = 0
    try:
        for number in range(FLUSHES):
            producer.send_nowait(small, TOO_LARGE)
            raised = 0
            signal.setitimer(signal.ITIMER_REAL, 1e-4 + number * 1e-5)  # here or there in the flush
            try:
                raised = raised_by(producer.flush)
            except InterruptedError as interruption:
                interrupted += 1
                told = interruption.__context__  # the signal came while the error was on its way
                raised = told.count if isinstance(told, DeliveryError) else 0
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert raised + raised_by(producer.flush) == 1
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 0
