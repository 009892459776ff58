"""Unobserved failures go to the log together, and not while a flush may still raise them."""

from __future__ import annotations

import logging

import pytest

from kafka_fast.dataplane.produce._observers import collect, take_lost
from kafka_fast.errors import ErrorCode
from kafka_fast.producer.loss_log import FLUSH_PATIENCE, INTERVAL, LossLog
from tests.unit.dataplane.rig import Rig


class Scene:
    """A data plane whose records fail, and the log of what it loses."""

    def __init__(self) -> None:
        self.rig = Rig(client_id="mine")
        self.log = LossLog(self.rig.queues)

    def lose(self, count: int) -> None:
        for _ in range(count):
            self.rig.send_nowait()
        self.rig.queues.fail_queue(0, ErrorCode.RECORD_LIST_TOO_LARGE)
        self.rig.turn()
        collect(self.rig.queues)


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
    assert line.startswith("producer mine: 7 records were not delivered (topic t: 7); the first")
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
        "producer mine: 1 record was",
        "producer mine: 1 record was",
    ]


def test_what_a_flush_has_raised_is_not_logged(lines: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.lose(2)
    scene.log.tick(100.0)
    assert take_lost(scene.rig.queues).count == 2
    scene.log.tick(100.0 + FLUSH_PATIENCE)
    assert not lines.messages


def test_what_was_logged_is_still_raised(lines: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.lose(2)
    scene.log.tick(100.0)
    scene.log.tick(100.0 + FLUSH_PATIENCE)
    assert len(lines.messages) == 1
    assert take_lost(scene.rig.queues).count == 2


def test_the_limit_on_repetition_leaves_none_out(lines: pytest.LogCaptureFixture) -> None:
    """A line that is left out would be a count that nobody hears of."""
    scene = Scene()
    for i in range(50):
        scene.lose(1)
        scene.log.tick(i * 100.0)
        scene.log.tick(i * 100.0 + FLUSH_PATIENCE)
    assert len(lines.messages) == 50


def test_handles_dropped_after_the_end_are_told_with_the_plane(
    lines: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    handles = [scene.rig.send() for _ in range(3)]
    scene.rig.queues.shut_down()
    collect(scene.rig.queues)
    handles[0].exception()
    handles.clear()
    assert not lines.messages
    del scene
    (line,) = lines.messages
    assert "2 records were not delivered" in line
