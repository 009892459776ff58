"""What a consumer's user asks the control thread, and waits for: topics and offsets.

Thread: the user's unless said otherwise.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from kafka_fast.control.consumer.control import ConsumerControl
from kafka_fast.control.consumer.lookup import Found
from kafka_fast.control.group.descriptions import GroupDescription
from kafka_fast.control.group.group import Group
from kafka_fast.control.metadata import TopicName
from kafka_fast.control.silence import of_topic, topic_wait
from kafka_fast.dataplane._plane import WAIT_SLICE
from kafka_fast.errors import KafkaError, KafkaTimeoutError, UsageError, fresh_copy
from kafka_fast.logs import LongWait, Waiting, get_logger, in_seconds
from kafka_fast.net.waits import Answer, Waits
from kafka_fast.types import OffsetAndMetadata, PartitionInfo, TopicPartition

logger = get_logger("kafka_fast.consumer")

NO_GROUP = "this needs a group.id; without a group use assign(), or read_range() for a range"

Call: TypeAlias = Callable[[Callable[[float], None]], None]
"""Has a function of `now` called on the control thread."""


class Questions:
    """The questions of one consumer's user."""

    def __init__(
        self, control: ConsumerControl, waits: Waits, now: Callable[[], float], call: Call
    ) -> None:
        """Begin with no question.

        Args:
            control: answers.
            waits: what ends the wait for it.
            now: returns monotonic seconds.
            call: reaches the control thread.
        """
        self._control = control
        self._waits = waits
        self._now = now
        self._call = call
        self._settled = threading.Condition()
        self._topics: dict[str, KafkaError | None] = {}

    # Offsets

    def offsets(self, wanted: Mapping[TopicPartition, int], deadline: float) -> Found:
        """Return offsets by time, or at the special times."""
        answer: Answer[Found] = Answer()
        self._call(lambda now: self._control.lookup.begin(wanted, answer.set, now))
        try:
            missing = self._control.lookup.missing
            return self._waits.wait(answer, deadline, "looking up offsets", missing=missing)
        finally:
            self._call(lambda now: self._control.lookup.cancel())

    def committed(
        self, partitions: Iterable[TopicPartition] | None, deadline: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offsets; None: all that it has."""
        group = self._group()
        answer: Answer[dict[TopicPartition, OffsetAndMetadata | None]] = Answer()
        wanted = None if partitions is None else list(partitions)
        cancels: list[Callable[[], None]] = []

        def ask(now: float) -> None:
            for partition in wanted or ():
                self._control.cluster.want_topic(partition.topic, now)
            cancels.append(group.committed.fetch(wanted, answer.set, now))

        self._call(ask)
        try:
            missing = group.why_silent
            return self._waits.wait(answer, deadline, "fetching committed offsets", missing=missing)
        finally:
            self._call(lambda now: _call_all(cancels))

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        done: Callable[[KafkaError | None], None],
        deadline: float,
        *,
        as_member: bool,
        is_last: bool = False,
    ) -> None:
        """Commit after everything that was committed before; `done` runs on the control thread."""
        self._group()
        self._call(
            lambda now: self._control.commit(
                offsets, done, now, deadline=deadline, as_member=as_member, is_last=is_last
            )
        )

    def description(self, deadline: float) -> GroupDescription:
        """Return the group as its coordinator has it."""
        group = self._group()
        answer: Answer[GroupDescription] = Answer()
        cancels: list[Callable[[], None]] = []
        self._call(lambda now: cancels.append(group.descriptions.ask(answer.set, now)))
        try:
            return self._waits.wait(answer, deadline, "asking about the group")
        finally:
            self._call(lambda now: _call_all(cancels))

    def _group(self) -> Group:
        if self._control.group is None:
            raise UsageError(NO_GROUP)
        return self._control.group

    # Topics

    def partitions(self, topic: str, deadline: float) -> list[PartitionInfo]:
        """Return what the cluster says of a topic's partitions, once that is known.

        Raises:
            KafkaTimeoutError: it is not known by the deadline.
            BrokerError: the topic cannot be used.
        """
        began = self._now()
        wait = LongWait(logger)
        with self._settled:
            self._topics.pop(topic, None)
            self._call(lambda now: self._control.topics.want(topic, now))
        while True:
            with self._settled:
                if topic in self._topics:
                    error = self._topics[topic]
                    break
                now = self._now()
                self._waits.check()
                if now >= deadline:
                    self._call(lambda now: self._control.topics.give_up(topic))
                    raise self._no_metadata(topic, began, deadline)
                self._settled.wait(min(WAIT_SLICE, deadline - now))
            # Without the lock: the control thread waits for it, and handlers of logs may be slow.
            wait.look(now, lambda at: self._describe_topic(topic, began, deadline, at))
        if error is not None:
            raise fresh_copy(error)
        return [
            PartitionInfo(
                topic,
                it.id,
                it.leader_id,
                it.leader_epoch,
                it.replicas,
                it.isr,
                it.offline_replicas,
            )
            for it in self._control.cluster.partitions(topic)
        ]

    def _no_metadata(self, topic: str, began: float, deadline: float) -> KafkaTimeoutError:
        control = self._control
        reasons = of_topic(control.cluster, control.links, topic, self._now(), began)
        limit = self._waits.limit(began, deadline)
        return self._waits.late(f"no metadata of topic {topic!r} {limit}", began, *reasons)

    def _describe_topic(
        self, topic: str, began: float, deadline: float, now: float
    ) -> Waiting | None:
        cluster = self._control.cluster
        if cluster.is_absent(topic):
            return None  # the error that says so is about to come
        text = topic_wait(cluster, self._control.links, topic, now, began)
        return Waiting(f"{text}; waiting up to {in_seconds(deadline - began)}")

    def all_topics(self, deadline: float, *, keep: bool) -> frozenset[TopicName]:
        """Return the names of all topics, asked for just now.

        Args:
            deadline: when to give up.
            keep: a pattern needs them to stay known.
        """
        cluster = self._control.cluster
        before = cluster.all_topics

        def ask(now: float) -> None:
            cluster.want_all_topics(True)
            cluster.request_refresh("the user asks for all topics")

        self._call(ask)
        began = self._now()
        wait = LongWait(logger)
        what = "asking for all topics"
        try:
            # Forgotten once more first, if the user has just asked the same.
            while (found := cluster.all_topics) is before or found is None:
                self._waits.check()
                now = self._now()
                if now >= deadline:
                    limit = self._waits.limit(began, deadline)
                    raise self._waits.late(f"{what}: no answer {limit}", began)
                wait.look(now, lambda at: self._waits.describe(what, began, deadline, at, None))
                with self._settled:
                    self._settled.wait(min(WAIT_SLICE, deadline - now))
            return found
        finally:
            if not keep:
                self._call(lambda now: cluster.want_all_topics(False))

    def settle(self, topic: str, error: KafkaError | None) -> None:
        """A topic is known, or what is wrong with it. Control thread."""
        with self._settled:
            self._topics[topic] = error
            self._settled.notify_all()

    def interrupt(self) -> None:
        """Have who waits look at what ends waits. Any thread."""
        with self._settled:
            self._settled.notify_all()


def _call_all(calls: Iterable[Callable[[], None]]) -> None:
    for call in calls:
        call()
