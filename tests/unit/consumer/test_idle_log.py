"""What a consumer says that it waits for when its polls bring nothing."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafka_fast.config import consumer_settings
from kafka_fast.consumer import idle_log
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.logs import LONG, Waiting
from kafka_fast.types import TopicPartition

PARTITION = TopicPartition("t", 0)


class World:
    """A consumer that has a group's partition, or none yet."""

    def __init__(self) -> None:
        self.partitions: list[TopicPartition] = []
        group = Waiting("waiting for group 'g': its members", logging.INFO, "joining")
        view: Any = SimpleNamespace(
            client_id="me",
            why_waiting_for_group=lambda: group,
            is_absent=lambda _: False,
            is_fetched=lambda *_: False,
            why_waiting_for_several=lambda *_: Reason("t-0 (it looks up where to start)"),
            around=lambda *_: [],
        )
        settings = consumer_settings({"bootstrap.servers": "b", "group.id": "g"}, {})
        self.idle = idle_log.IdleLog(view, cast("Any", self), settings)

    paused: frozenset[TopicPartition] = frozenset()


@pytest.fixture(name="world")
def an_idle_world() -> World:
    return World()


def test_a_partition_that_has_just_come_is_not_waited_for_long(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world.idle.note_idle(1.0)
    world.partitions = [PARTITION]
    for now in (0.9 * LONG, 1.0 + LONG, 0.9 * LONG + LONG - 0.1):
        world.idle.note_idle(now)
    assert caplog.messages == []
    world.idle.note_idle(0.9 * LONG + LONG)
    assert caplog.messages == ["[me] waiting for records of t-0 (it looks up where to start)"]


def test_a_partition_that_comes_after_a_long_wait_is_waited_for_anew(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world.idle.note_idle(1.0)
    world.idle.note_idle(1.0 + LONG)
    assert caplog.messages == ["[me] waiting for group 'g': its members"]
    world.partitions = [PARTITION]
    world.idle.note_idle(2.0 + LONG)
    world.idle.note_idle(3.0 + LONG)
    assert len(caplog.messages) == 1
    world.idle.note_idle(3.0 + 2 * LONG)
    assert caplog.messages[1:] == ["[me] waiting for records of t-0 (it looks up where to start)"]
