"""Where a row of the peers' table is played: one broker, topics and groups of the row's own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kafka_fast import Admin, Producer, TopicPartition
from kafka_fast.admin import NewTopic
from tests.integration.admin.peers.contenders import Client, Facts

RECORDS = 10
FIRST_TIMESTAMP_MS = 1_700_000_000_000


class Scene:
    """Two clients: one acts, and the other one must see what it has done."""

    def __init__(self, actor: Client, watcher: Client, admin: Admin, producer: Producer) -> None:
        """Take the clients.

        Args:
            actor: does what the row is about.
            watcher: looks at it afterwards.
            admin: prepares what the row needs.
            producer: of the records that the row needs.
        """
        self.actor = actor
        self.watcher = watcher
        self._admin = admin
        self._producer = producer

    def both(self, look: Callable[[Client], Facts]) -> Facts:
        """Return what both clients see; a failure if they see different things."""
        seen, seen_by_other = look(self.actor), look(self.watcher)
        assert seen == seen_by_other, (
            f"{self.actor.name}: {seen}, {self.watcher.name}: {seen_by_other}"
        )
        return seen

    def new_name(self, what: str = "new") -> str:
        """Return a name that nothing has."""
        return f"{what}-{uuid.uuid4().hex[:12]}"

    def new_topic(self, partitions: int = 2) -> str:
        """Create a topic."""
        name = self.new_name("topic")
        self._admin.create_topics([NewTopic(name, partitions, 1)]).raise_first()
        self._admin.wait_until_topics_visible([name])
        return name

    def topic_with_records(self) -> str:
        """Create a topic with two partitions; the first has RECORDS records, a second apart."""
        name = self.new_topic()
        for number in range(RECORDS):
            self._producer.send(
                name, b"value", partition=0, timestamp_ms=FIRST_TIMESTAMP_MS + 1000 * number
            )
        self._producer.flush()
        return name

    def new_group(self, topic: str, offset: int) -> str:
        """Make a group that has committed an offset in the first partition of a topic."""
        name = self.new_name("group")
        offsets = {TopicPartition(topic, 0): offset}
        self._admin.alter_consumer_group_offsets(name, offsets).raise_first()
        return name


class Row(NamedTuple):
    """A row of the table."""

    name: str
    play: Callable[[Scene], Facts]
    """Returns facts, the same whoever acts and whoever looks."""
    facts: Facts
    """The facts that are true; None: `play` has compared what both see, and it is not known."""
    peers: Sequence[str]
    """The peers that have these calls."""


BOTH = ("confluent-kafka", "kafka-python")


class Rows(list[Row]):
    """The table."""

    def __call__(
        self, name: str, facts: Facts = None, *, peers: Sequence[str] = BOTH
    ) -> Callable[[Callable[[Scene], Facts]], Callable[[Scene], Facts]]:
        """Return a decorator that adds a row."""

        def add(play: Callable[[Scene], Facts]) -> Callable[[Scene], Facts]:
            self.append(Row(name, play, facts, peers))
            return play

        return add
