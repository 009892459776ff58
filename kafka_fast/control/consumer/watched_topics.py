"""Topics that the user waits for, subscribes to or reads, and what the user hears of them.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain

from kafka_fast.control.consumer.consumer_messages import PartitionFailed
from kafka_fast.control.consumer.partition import AssignedPartitions
from kafka_fast.control.diagnosis.permissions import described
from kafka_fast.control.group.member import TopicFailed
from kafka_fast.control.messages import TopicSettled
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.metadata import GETS_ROUND, ClusterChanges
from kafka_fast.errors import ErrorCode, KafkaError, broker_error
from kafka_fast.instants import NEVER
from kafka_fast.logs import LongWait, Waiting, get_logger

logger = get_logger("kafka_fast.consumer")


class WatchedTopics:
    """One consumer's interest in topics. Control thread only."""

    def __init__(
        self,
        cluster: Cluster,
        partitions: AssignedPartitions,
        *,
        on_news: Callable[[TopicSettled | TopicFailed | PartitionFailed], None],
    ) -> None:
        """Start without topics; `want_topic` and `subscribe` add them.

        Args:
            cluster: knows topics, and what is wrong with them.
            partitions: the assigned ones.
            on_news: called with news for the user's thread.
        """
        self._cluster = cluster
        self._partitions = partitions
        self._on_news = on_news
        # Topics whose partitions the user waits for, and until when they may be denied.
        self._awaited: dict[str, float] = {}
        self._subscribed: frozenset[str] = frozenset()  # by name
        self._absent: dict[str, LongWait] = {}  # subscribed topics that the brokers deny
        self._fatal: KafkaError | None = None

    # ---- commands ----

    def subscribe(self, topics: frozenset[str]) -> None:
        """Take the names of the topics that the user subscribes to now."""
        self._subscribed = topics
        for topic in topics:
            self._cluster.forget_error(topic)

    def want_topic(self, topic: str, now: float) -> None:
        """Ask for a topic whose partitions the user waits for; `TopicSettled` answers."""
        self._awaited[topic] = NEVER
        self._cluster.forget_error(topic)
        self._cluster.want_topic(topic, now)
        if self._fatal is not None:
            self._on_news(TopicSettled(topic, self._fatal))
        else:
            self._settle(topic)

    def want_all(self, topics: Iterable[str], now: float) -> None:
        """Ask for topics as `want_topic` does, in one request."""
        for topic in topics:
            self.want_topic(topic, now)

    def want_anew(self, topics: Iterable[str], now: float) -> None:
        """Ask for topics as `want_topic` does, in one request, even if they are known."""
        for topic in topics:
            self._cluster.want_anew(topic, now)
            self.want_topic(topic, now)

    def give_up(self, topic: str) -> None:
        """Stop asking for a topic: nobody waits for it any more."""
        self._awaited.pop(topic, None)

    def fail_all(self, error: KafkaError) -> None:
        """Answer all waits for topics with an error, now and from now on."""
        self._fatal = error
        for topic in sorted(self._awaited):
            self._on_news(TopicSettled(topic, error))
        self._awaited.clear()

    def tick(self, now: float) -> None:
        """Keep asking for awaited topics, but give up those that are denied for long."""
        for topic in self._absent.keys() - self._subscribed:
            del self._absent[topic]
        for topic, wait in self._absent.items():
            if not wait.is_told:
                text = f"there is no topic {topic!r} (yet); it is read once there is one"
                wait.log_if_long(now, partial(_say, text))
        for topic, until in list(self._awaited.items()):
            self._cluster.want_topic(topic, now)
            if self._cluster.error(topic) != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._awaited[topic] = NEVER
            elif now < until:
                self._awaited[topic] = min(until, now + GETS_ROUND)
            else:
                del self._awaited[topic]
                error = broker_error(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}"
                )
                self._on_news(TopicSettled(topic, error))

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        looks = (wait.deadline for wait in self._absent.values() if not wait.is_told)
        return min(chain(self._awaited.values(), looks), default=NEVER)

    # ---- in ----

    def handle_changes(self, changes: ClusterChanges) -> None:
        """Tell the user what new metadata mean for the topics."""
        for topic in sorted(changes.topic_errors):
            self._judge(topic)
        for topic in sorted(changes.answered):
            if topic in self._awaited:
                self._settle(topic)

    def _judge(self, topic: str) -> None:
        """Tell the user of a topic that is to be read and cannot be."""
        code = self._cluster.error(topic)
        reading = self._partitions.of_topic(topic)
        if not self._cluster.is_absent(topic):
            self._absent.pop(topic, None)
        if not code:
            return
        error = broker_error(code, f"topic {topic!r}: {described(code, 'Metadata')}")
        if self._cluster.is_absent(topic):
            if topic in self._subscribed:  # for those assigned by hand: absent.py
                self._absent.setdefault(topic, LongWait(logger))
        elif not error.retriable and reading:
            for assigned in reading:
                self._on_news(PartitionFailed(assigned.partition, assigned.seeks, error, False))
        elif not error.retriable and topic in self._subscribed:
            self._on_news(TopicFailed(error, topic))

    def _settle(self, topic: str) -> None:
        """Answer the wait for a topic, if the cluster knows the answer."""
        if self._cluster.is_outdated(topic) or self._cluster.is_absent(topic):
            return  # what is known of a topic is kept when it is gone; `tick` judges absence
        settled = self._cluster.settled(topic)
        if settled is not None:
            self._awaited.pop(topic, None)
            self._on_news(settled)


def _say(text: str, now: float) -> Waiting:
    return Waiting(text)
