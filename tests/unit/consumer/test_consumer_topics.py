"""What a consumer's user asks about topics while the control thread is late."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kafka_fast.consumer.consumer_topics import ConsumerTopics
from kafka_fast.consumer.waits import Waits
from kafka_fast.control.connections.links import Links
from kafka_fast.control.connections.refusals import Refusals
from kafka_fast.control.metadata.cluster import ListedTopic
from kafka_fast.control.view import View
from kafka_fast.net.waiting.callers import ThreadCallers
from kafka_fast.net.waiting.steps import Yielded, run_steps


class Cluster:
    """What the control plane knows of topics."""

    all_topics: frozenset[ListedTopic] | None = None

    def want_all_topics(self, wants_all: bool) -> None:
        if not wants_all:
            self.all_topics = None

    def request_refresh(self, reason: str) -> None:
        pass


class Late:
    """A control thread that does one thing each time the user's thread waits."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.to_do: list[Callable[[float], None]] = []

    def call(self, what: Callable[[float], None]) -> None:
        self.to_do.append(what)

    def turn(self, yielded: Yielded) -> None:
        if self.to_do:
            self.to_do.pop(0)(0.0)
        else:
            self.cluster.all_topics = frozenset(
                {ListedTopic("t", False), ListedTopic("__own", True)}
            )


def test_all_topics_are_told_again_while_the_first_answer_is_being_forgotten() -> None:
    """Regression: the second of two questions in a row could hear that there is no topic."""
    late = Late()
    refusals = Refusals(Links())
    connections = SimpleNamespace(refusals=refusals)
    control: Any = SimpleNamespace(
        kind="consumer",
        fatal=None,
        cluster=late.cluster,
        connections=connections,
        context=SimpleNamespace(client_id="me"),
    )
    control.view = View(control)
    host: Any = SimpleNamespace(now=lambda: 0.0)
    waits = Waits(control.view, host.now, ThreadCallers(), memory=30.0)
    call: Any = late.call
    topics = ConsumerTopics(control, waits, host, call)
    for _ in range(2):
        names = run_steps(topics.all_names(60.0, keep=False), late.turn)
        assert names == {("t", False), ("__own", True)}
