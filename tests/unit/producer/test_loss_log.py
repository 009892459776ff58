"""Unobserved failures go to the log together, and not while a flush may still raise them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest

from kafka_fast.errors import ErrorCode
from kafka_fast.net.process import process_life
from kafka_fast.producer import loss_log
from kafka_fast.producer.loss_log import FLUSH_PATIENCE, INTERVAL, LossLog
from kafka_fast.sending._observers import collect
from kafka_fast.sending.bulk._bulk import BulkAccumulator
from tests.unit.dataplane.lost import lost_count
from tests.unit.dataplane.rig import ProduceRig
from tests.waiting import eventually


class Scene:
    """A data plane whose records fail, and the log of what it loses."""

    def __init__(self, exit_status: int = 0) -> None:
        self.rig = ProduceRig(client_id="mine", exit_status=exit_status)
        self.log = LossLog(self.rig.queues)

    def lose(self, count: int) -> None:
        for _ in range(count):
            self.rig.send_nowait()
        self.rig.fail_queue(0, ErrorCode.RECORD_LIST_TOO_LARGE)
        self.rig.turn()
        collect(self.rig.queues)


def out_of_threads(arguments: object) -> NoReturn:
    raise RuntimeError("can't start new thread")


@contextmanager
def logging_lock() -> Iterator[None]:
    """Hold the locks of all handlers, as one of their own threads does."""
    handlers = logging.getLogger("kafka_fast.producer").handlers + logging.root.handlers
    for handler in handlers:
        handler.acquire()
    try:
        yield
    finally:
        for handler in handlers:
            handler.release()


@pytest.fixture(name="lines")
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.ERROR, logger="kafka_fast.producer")
    return caplog


def test_failures_of_one_second_are_one_line(lines: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.lose(3)
    scene.log.tick(100.0)
    assert scene.log.next_deadline() == 100.0 + FLUSH_PATIENCE
    scene.lose(4)
    scene.log.tick(100.0 + FLUSH_PATIENCE / 2)
    assert not lines.messages
    scene.log.tick(100.0 + FLUSH_PATIENCE)
    (line,) = lines.messages
    assert line.startswith("[mine] 7 records were not delivered (topic t: 7); the first")
    assert "RECORD_LIST_TOO_LARGE" in line


def test_lines_of_one_producer_keep_a_distance(lines: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.lose(1)
    scene.log.tick(100.0)
    scene.log.tick(100.0 + FLUSH_PATIENCE)
    scene.lose(1)
    scene.log.tick(100.0 + 2 * FLUSH_PATIENCE)
    assert scene.log.next_deadline() == 100.0 + FLUSH_PATIENCE + INTERVAL
    scene.log.tick(scene.log.next_deadline())
    assert [line.split(" not ")[0] for line in lines.messages] == [
        "[mine] 1 record was",
        "[mine] 1 record was",
    ]


def test_what_a_flush_has_raised_is_not_logged(lines: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.lose(2)
    scene.log.tick(100.0)
    assert lost_count(scene.rig.queues) == 2
    scene.log.tick(100.0 + FLUSH_PATIENCE)
    assert not lines.messages


def test_what_was_logged_is_still_raised(lines: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.lose(2)
    scene.log.tick(100.0)
    scene.log.tick(100.0 + FLUSH_PATIENCE)
    assert len(lines.messages) == 1
    assert lost_count(scene.rig.queues) == 2


def test_the_limit_on_repetition_leaves_none_out(lines: pytest.LogCaptureFixture) -> None:
    """A line that is left out would be a count that nobody hears of."""
    scene = Scene()
    for i in range(50):
        scene.lose(1)
        scene.log.tick(i * 100.0)
        scene.log.tick(i * 100.0 + FLUSH_PATIENCE)
    assert len(lines.messages) == 50


# ---- after the end of the client ----


def ended(lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Return a scene whose client has ended; late failures are told at once."""
    monkeypatch.setattr(loss_log, "FLUSH_PATIENCE", 0.0)
    scene = Scene()
    loss_log.watch_losses(scene.rig.queues)
    return scene


def test_handles_dropped_after_the_end_are_told_by_a_thread(
    lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the last handle's finalizer did, whatever it had interrupted."""
    scene = ended(lines, monkeypatch)
    handles = [scene.rig.send() for _ in range(3)]
    scene.rig.queues.shut_down()
    collect(scene.rig.queues)
    handles[0].exception()
    with logging_lock():  # a thread that logs holds it; so a finalizer that logs would find it
        handles.clear()
        del scene
        assert not lines.messages
    eventually(lambda: lines.messages)
    (line,) = lines.messages
    assert "2 records were not delivered" in line
    assert lines.records[0].threadName == "kf-losses"


def test_a_future_of_many_that_is_dropped_after_the_end_is_told_by_a_thread(
    lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = ended(lines, monkeypatch)
    bulk = BulkAccumulator(scene.rig.queues, max_block=1e-6)
    future = bulk.send_many("t", [b"v", bytes(2 << 20)])
    scene.rig.queues.shut_down()
    collect(scene.rig.queues)
    del future, bulk, scene
    eventually(lambda: lines.messages)
    (line,) = lines.messages
    assert "2 records were not delivered" in line


def test_without_a_thread_the_end_of_the_process_tells(
    lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = ended(lines, monkeypatch)
    scene.rig.queues.reporter = out_of_threads
    handle = scene.rig.send()
    scene.rig.queues.shut_down()
    collect(scene.rig.queues)
    del handle, scene
    assert not lines.messages
    loss_log.log_all_finally()
    assert "1 record was not delivered" in lines.messages[0]


def test_a_dropped_handle_wakes_a_control_thread_that_has_nothing_else_to_do(
    lines: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    handle = scene.rig.send()
    scene.rig.fail_queue(0, ErrorCode.RECORD_LIST_TOO_LARGE)
    scene.rig.turn()
    collect(scene.rig.queues)
    scene.rig.machine.take_control_wake()
    assert not scene.rig.machine.take_control_wake()
    del handle
    assert scene.rig.machine.take_control_wake()


def test_the_end_of_the_process_tells_what_nobody_has_read(
    lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene()
    loss_log.watch_losses(scene.rig.queues)
    handles = [scene.rig.send() for _ in range(3)]
    scene.lose(2)
    handles[1].exception()
    loss_log.log_all_finally()
    loss_log.log_all_finally()
    assert [line.split(" not ")[0] for line in lines.messages] == ["[mine] 4 records were"]


# ---- the exit status ----


@pytest.fixture(name="statuses")
def noted_statuses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    noted: list[int] = []
    monkeypatch.setattr(process_life, "end_with", noted.append)
    return noted


def test_only_what_is_told_finally_is_the_exit_status(
    statuses: list[int], lines: pytest.LogCaptureFixture
) -> None:
    scene = Scene(exit_status=7)
    scene.lose(1)
    scene.log.tick(100.0)
    scene.log.tick(100.0 + FLUSH_PATIENCE)
    assert len(lines.messages) == 1
    assert statuses == []  # a flush may still raise it
    loss_log.log_finally(scene.rig.queues)
    assert statuses == [7]
    assert len(lines.messages) == 1, "it was logged before"
    loss_log.log_finally(scene.rig.queues)
    assert statuses == [7]


def test_what_was_raised_is_not_the_exit_status(
    statuses: list[int], lines: pytest.LogCaptureFixture
) -> None:
    scene = Scene(exit_status=7)
    scene.lose(1)
    assert lost_count(scene.rig.queues) == 1
    loss_log.log_finally(scene.rig.queues, unread=True)
    assert statuses == []
