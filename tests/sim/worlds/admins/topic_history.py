"""Which topics there were, and when: what really happened, for the checker.

    brokers ─ add_topic, delete_topic ─► TopicHistory ◄─ was there such a topic? ─ checker

Each topic that is created carries the number of the call that has asked for it, as one of its
settings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kafka_fast.control.admin.types.topic_ids import topic_id_text
from kafka_fast.testing.broker.partitions.cluster_topics import Topic
from kafka_fast.testing.broker.partitions.planting import plant_bytes
from kafka_fast.testing.broker.state import ClusterState
from tests.sim.worlds.clock import Clock

NEVER_ENDS = float("inf")
MARK = "retention.ms"
FIRST_MARK = 1_000_000
RECORDS = 10
"""How many records each partition has when it is created."""


@dataclass(slots=True)
class TopicLife:
    """One topic, from its creation to its deletion."""

    topic: Topic
    call: int
    """The number of the call that has created it; negative: none has."""
    born: float
    died: float = NEVER_ENDS


class TopicHistory:
    """All topics that ever were."""

    def __init__(self, state: ClusterState, clock: Clock, log: Callable[[str], None]) -> None:
        """Watch what the brokers do.

        Args:
            state: of the brokers.
            clock: of the world.
            log: takes what happens.
        """
        self._lives: defaultdict[str, list[TopicLife]] = defaultdict(list)
        self._clock = clock
        self._log = log
        self._add, self._delete = state.add_topic, state.delete_topic
        state.add_topic = self._note_creation  # type: ignore[method-assign]
        state.delete_topic = self._note_deletion  # type: ignore[method-assign]

    def _note_creation(self, topic: Topic) -> None:
        for partition in topic.partitions:
            plant_bytes(partition, b"records", RECORDS)
        self._add(topic)
        call = int(topic.config.texts[MARK]) - FIRST_MARK
        self._lives[topic.name].append(TopicLife(topic, call, self._clock.now))
        self._log(f"{topic.name} created, for call {call}")

    def _note_deletion(self, name: str) -> None:
        self._delete(name)
        self._lives[name][-1].died = self._clock.now
        self._log(f"{name} deleted")

    # ---- what was ----

    @property
    def names(self) -> list[str]:
        """The names of all topics that ever were."""
        return list(self._lives)

    def lives(self, name: str) -> list[TopicLife]:
        """Return the topics that had a name, the oldest first."""
        return self._lives.get(name, [])

    def lives_of_id(self, topic_id: str) -> list[TopicLife]:
        """Return the one topic with an id, or nothing."""
        return [
            life
            for lives in self._lives.values()
            for life in lives
            if topic_id_text(life.topic.topic_id) == topic_id
        ]

    def living(self, name: str) -> TopicLife | None:
        """Return the topic that has a name now."""
        lives = self.lives(name)
        return lives[-1] if lives and lives[-1].died == NEVER_ENDS else None


def was_there(lives: Iterable[TopicLife], start: float, end: float) -> bool:
    """Return whether one of these topics was there at some time in between."""
    return any(life.born <= end and life.died >= start for life in lives)


def was_missing(lives: Iterable[TopicLife], start: float, end: float) -> bool:
    """Return whether none of these topics was there at some time in between."""
    return not any(life.born < start and life.died > end for life in lives)
