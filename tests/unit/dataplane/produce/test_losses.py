"""Failures are counted exactly once, in single steps, and an interruption loses none of them."""

from __future__ import annotations

import gc
import logging
import random
import re
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.sending._observers import (
    collect,
    log_finally,
    log_unlogged,
    notify,
    raise_lost,
)
from kafka_fast.sending.bulk._bulk import BulkAccumulator
from tests.unit.dataplane.lost import lost_count
from tests.unit.dataplane.rig import ProduceRig
from tests.unit.sending.test_delivery import fail_all, report_nothing, succeed


class Counting(logging.Handler):
    """Counts the records that log lines tell of."""

    def __init__(self) -> None:
        super().__init__()
        self.records = 0
        self.lines = 0

    def emit(self, record: logging.LogRecord) -> None:
        counted = re.search(r"(\d+) records? (was|were) not", record.getMessage())
        assert counted is not None, record.getMessage()
        self.records += int(counted[1])
        self.lines += 1


@pytest.fixture(name="told")
def counting_handler() -> Any:
    handler = Counting()
    logger = logging.getLogger("kafka_fast.producer")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def interrupted(rig: ProduceRig, *, times: int = 1) -> None:
    """Have the next errors that are made of a failure interrupted by Ctrl-C."""
    left = iter(range(times))

    def explain(*of: Any, **facts: Any) -> Reason:
        if next(left, None) is not None:
            raise KeyboardInterrupt
        return Reason("", None)

    rig.queues.explainer = SimpleNamespace(explain=explain)


# ---- each failed record is told of once ----


class Caller:
    """Sends records in all ways, and does something or nothing with their handles."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rig = ProduceRig(client_id="c")
        self.bulk = BulkAccumulator(self.rig.queues, max_block=1e-6)
        self.kept: list[Any] = []
        self.bulks: list[Any] = []
        self.calls = 0  # of callbacks with an error
        self.read = 0  # failures that a handle has told
        self.failed = 0

    def send(self) -> int:
        """Send, in one of the ways; return how many records."""
        match self.random.randrange(7):
            case 0:
                self.rig.send_nowait()
            case 1:
                self.rig.send_nowait(on_delivery=self._count)
            case 2:
                self.rig.send(on_delivery=self._count)
            case 3:
                self.rig.send()
            case 4:
                self.bulk.send_many("t", [b"v"] * 3)
                return 3
            case 5:
                self.bulks.append(self.bulk.send_many("t", [b"v"] * 3))
                return 3
            case _:
                self.kept.append(self.rig.send())
        return 1

    def _count(self, error: Exception | None, metadata: object) -> None:
        self.calls += error is not None

    def round(self) -> None:
        sent = sum(self.send() for _ in range(self.random.randrange(1, 12)))
        self._drop_some()
        if self.random.random() < 0.7:
            fail_all(self.rig)
            self.failed += sent
        else:
            succeed(self.rig)
        if self.random.random() < 0.7:
            self._look()
        self.rig.advance(0.001)

    def _drop_some(self) -> None:
        for some in (self.kept, self.bulks):
            if some and self.random.random() < 0.4:
                del some[self.random.randrange(len(some))]

    def _look(self) -> None:
        for look in self.random.sample((self._collect, self._read, self._drop_some), 3):
            look()

    def _collect(self) -> None:
        notify(self.rig.queues, report_nothing)

    def _read(self) -> None:
        for future in self.kept:
            if future.done() and self.random.random() < 0.3 and id(future) not in self.seen:
                self.seen[id(future)] = future
                self.read += future.exception(0) is not None
        for future in self.bulks:
            if future.done() and self.random.random() < 0.3 and id(future) not in self.seen:
                self.seen[id(future)] = future
                self.read += future.result(0).failed

    seen: dict[int, Any]


@pytest.mark.parametrize("seed", range(100))
def test_every_failure_is_told_once(seed: int, told: Counting) -> None:
    """By an error, by a callback, by a handle, or at last by the log."""
    caller = Caller(seed)
    caller.seen = {}
    raised = 0
    for _ in range(8):
        caller.round()
        if caller.random.random() < 0.3:
            raised += lost_count(caller.rig.queues)
    notify(caller.rig.queues, report_nothing)
    assert log_finally(caller.rig.queues, True) == (told.records > 0)
    assert told.lines <= 1
    assert raised + caller.calls + caller.read + told.records == caller.failed


def test_what_the_end_has_told_is_not_told_by_handles_that_go(told: Counting) -> None:
    rig = ProduceRig()
    futures = [rig.send() for _ in range(3)]
    fail_all(rig)
    assert log_finally(rig.queues, True)
    assert told.records == 3
    futures[0].exception()
    del futures
    assert not log_finally(rig.queues, True)
    assert lost_count(rig.queues) == 0
    assert told.lines == 1


def test_a_future_that_a_loop_awaits_has_asked(told: Counting) -> None:
    rig = ProduceRig()
    asked, unread = rig.send(), rig.send()
    asked.add_done_callback(lambda future: None)
    fail_all(rig)
    notify(rig.queues, report_nothing)
    assert log_finally(rig.queues, True)
    assert told.records == 1
    assert unread.exception() is not None


def test_rows_that_found_no_room_count_until_they_are_read(told: Counting) -> None:
    rig = ProduceRig()
    bulk = BulkAccumulator(rig.queues, max_block=1e-6)
    read, unread = (bulk.send_many("t", [b"a", bytes(2 << 20)]) for _ in range(2))
    succeed(rig)
    assert read.result(0).failed == 1
    assert log_finally(rig.queues, True)
    assert told.records == 1
    del unread
    assert lost_count(rig.queues) == 0


# ---- in single steps ----


def prepared() -> ProduceRig:
    """Return a rig with batches that have ended, of all kinds, and that nobody has collected."""
    rig = ProduceRig(linger=0.0)
    bulk = BulkAccumulator(rig.queues, max_block=1e-6)
    rig.kept = [rig.send(), bulk.send_many("t", [b"v"] * 5)]  # type: ignore[attr-defined]
    rig.send_nowait()
    rig.send_nowait(on_delivery=lambda error, metadata: None)
    rig.send()
    fail_all(rig)
    return rig


def collections_of(call: Callable[[Any], object], argument: object) -> int:
    """Return how many garbage collections a call runs, if its first allocation is to run one."""
    count = 0

    def note(phase: str, info: object) -> None:
        nonlocal count
        count += 1

    before = gc.get_threshold()
    gc.callbacks.append(note)
    try:
        gc.collect()  # this empties the free lists, too
        kept = [{number} for number in range(10)]  # a threshold of 0 would mean: never
        gc.set_threshold(gc.get_count()[0])
        count = 0
        call(argument)
        return count
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(note)
        del kept


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="collections run between two bytecodes")
def test_to_collect_makes_nothing_that_the_garbage_collector_sees() -> None:
    """Such an allocation may run a collection, and so code of the user's.

    Another thread could run there, and see half of what has ended.
    """
    rig = prepared()
    assert collections_of(lambda queues: queues.check_owner, rig.queues) > 0
    assert collections_of(collect, rig.queues) == 0
    assert lost_count(rig.queues) == 2


def test_a_second_look_while_an_error_is_made_finds_nothing_to_tell() -> None:
    """As a signal handler that flushes would."""
    rig = prepared()
    counts: list[int] = []

    def explain(*of: Any, **facts: Any) -> Reason:
        counts.append(lost_count(rig.queues))
        return Reason("", None)

    rig.queues.explainer = SimpleNamespace(explain=explain)
    assert lost_count(rig.queues) == 2
    assert counts == [0]


# ---- an interruption ----


@pytest.mark.parametrize(
    "tell",
    [raise_lost, log_unlogged, lambda queues: log_finally(queues, False)],
    ids=["raise", "log", "log finally"],
)
def test_an_interruption_loses_no_count(tell: Callable[[Any], object], told: Counting) -> None:
    rig = prepared()
    interrupted(rig)
    with pytest.raises(KeyboardInterrupt):
        tell(rig.queues)
    assert rig.queues.has_unlogged
    assert lost_count(rig.queues) == 2
    assert told.lines == 0


def test_a_log_handler_that_raises_loses_no_count() -> None:
    rig = prepared()

    class Leaving(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise SystemExit

    handler = Leaving()
    logger = logging.getLogger("kafka_fast.producer")
    logger.addHandler(handler)
    try:
        with pytest.raises(SystemExit):
            log_unlogged(rig.queues)
    finally:
        logger.removeHandler(handler)
    assert rig.queues.has_unlogged
    assert lost_count(rig.queues) == 2
