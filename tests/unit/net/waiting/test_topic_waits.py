"""Several callers may wait for one topic: nobody gives it up for the others."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_fast.control.connections.links import Links
from kafka_fast.control.connections.refusals import Refusals
from kafka_fast.control.view import View
from kafka_fast.errors import KafkaTimeoutError
from kafka_fast.logs import Waiting
from kafka_fast.net.waiting.steps import Steps
from kafka_fast.net.waiting.topic_waits import TopicWaits


class Topics(TopicWaits):
    """Notes what the control thread is told."""

    def __init__(self) -> None:
        self.time = 0.0
        control: Any = SimpleNamespace(
            kind="test",
            context=SimpleNamespace(client_id="me"),
            connections=SimpleNamespace(refusals=Refusals(Links())),
        )
        super().__init__(View(control), lambda: self.time)
        self.told: list[str] = []
        self.known: set[str] = set()

    def wait_for(self, topic: str, deadline: float) -> Steps[None]:
        steps = self.await_topic(topic, deadline, lambda: topic in self.known)
        assert next(steps).what == f"metadata of topic {topic!r}"
        return steps

    def _want(self, topic: str) -> None:
        self.told.append(f"want {topic}")

    def _give_up(self, topic: str) -> None:
        self.told.append(f"give up {topic}")

    def _check(self) -> None:
        pass

    def _ends(self) -> Callable[[], bool]:
        return lambda: False

    def _late(self, topic: str, began: float, deadline: float) -> KafkaTimeoutError:
        return KafkaTimeoutError(topic)

    def _describe(self, topic: str, began: float, deadline: float, now: float) -> Waiting | None:
        return None


def test_only_the_last_caller_gives_a_topic_up() -> None:
    """Regression: the first one did, and the brokers were not asked for the second any more."""
    topics = Topics()
    first, second = topics.wait_for("t", 1.0), topics.wait_for("t", 2.0)
    topics.time = 1.0
    with pytest.raises(KafkaTimeoutError):
        first.send(None)
    assert topics.told == ["want t", "want t"]
    topics.time = 2.0
    with pytest.raises(KafkaTimeoutError):
        second.send(None)
    assert topics.told == ["want t", "want t", "give up t"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, GeneratorExit])
def test_an_interrupted_caller_gives_its_topic_up(error: type[BaseException]) -> None:
    """Regression: brokers were asked for the topic forever."""
    topics = Topics()
    steps = topics.wait_for("t", 1.0)
    with pytest.raises(error):
        steps.throw(error())
    assert topics.told == ["want t", "give up t"]


def test_a_caller_that_has_its_topic_gives_nothing_up() -> None:
    topics = Topics()
    first, second = topics.wait_for("t", 1.0), topics.wait_for("t", 1.0)
    topics.known.add("t")
    for steps in (first, second):
        with pytest.raises(StopIteration):
            steps.send(None)
    assert topics.told == ["want t", "want t"]
    third = topics.wait_for("other", 2.0)
    topics.time = 2.0
    with pytest.raises(KafkaTimeoutError):
        third.send(None)
    assert topics.told[2:] == ["want other", "give up other"]
