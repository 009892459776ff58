"""Requests of a consumer's user about topics: the partitions of some, or the names of all.

Thread: the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafka_fast.consumer.waits import Waits
from kafka_fast.control.consumer.consumer_control import ConsumerControl
from kafka_fast.control.view import ListedTopic
from kafka_fast.errors import KafkaTimeoutError
from kafka_fast.logs import Waiting, in_seconds
from kafka_fast.net.calls import Calls
from kafka_fast.net.host import Host
from kafka_fast.net.waiting.steps import Steps
from kafka_fast.net.waiting.topic_waits import TopicWaits
from kafka_fast.types import PartitionInfo


class ConsumerTopics(TopicWaits):
    """The questions about topics of one consumer's user."""

    def __init__(self, control: ConsumerControl, waits: Waits, host: Host, call: Calls) -> None:
        """Take what is asked and waited for.

        Args:
            control: takes what the user wants, and shows the topics that are known.
            waits: knows what ends a wait for an answer.
            host: knows the time.
            call: reaches the control thread.
        """
        super().__init__(control.view, host.now)
        self._control = control
        self._waits = waits
        self._call = call

    def partitions(
        self, topics: Sequence[str], deadline: float, *, refresh: bool
    ) -> Steps[list[PartitionInfo]]:
        """Return leader, replicas and state of each partition of topics, once they are known.

        Args:
            topics: their names.
            deadline: when to give up.
            refresh: whether to ask a broker even about topics that are known.

        Raises:
            KafkaTimeoutError: a topic is not known by the deadline.
            BrokerError: a topic cannot be used.
        """
        for topic in topics:
            self._settled.pop(topic, None)
        # One command, so one request: the control thread sends none between two of the topics.
        want = self._control.topics.want_anew if refresh else self._control.topics.want_all
        self._call(lambda now: want(topics, now))
        left = list(topics)
        try:
            while left:
                yield from self._await_answer(left[0], deadline, None)
                del left[0]
        finally:
            for topic in left:
                self._give_up(topic)
        return [info for topic in topics for info in self._view.partition_infos(topic)]

    def all_names(self, deadline: float, *, keep: bool) -> Steps[frozenset[ListedTopic]]:
        """Ask a broker for the names of all topics, and return them.

        Args:
            deadline: when to give up.
            keep: whether the metadata keep all topics afterwards, as a subscribed pattern needs.
        """
        view, cluster = self._view, self._control.cluster
        before = view.all_topics

        def ask(now: float) -> None:
            cluster.want_all_topics(True)
            cluster.request_refresh("the user asks for all topics")

        self._call(ask)

        def is_told() -> bool:
            return view.all_topics is not before and view.all_topics is not None

        try:
            # `all_topics` may become None first, when the end of an earlier call is handled.
            yield from self._waits.wait_until(is_told, deadline, "asking for all topics")
            return view.all_topics or frozenset()
        finally:
            if not keep:
                self._call(lambda now: cluster.want_all_topics(False))

    def _want(self, topic: str) -> None:
        self._call(lambda now: self._control.topics.want_topic(topic, now))

    def _give_up(self, topic: str) -> None:
        self._call(lambda now: self._control.topics.give_up(topic))

    def _check(self) -> None:
        self._waits.raise_if_over()

    def _ends(self) -> Callable[[], bool]:
        return self._waits.ends()

    def _late(self, topic: str, began: float, deadline: float) -> KafkaTimeoutError:
        reasons = self._view.why_waiting_for_topic(topic, self._now(), began)
        limit = self._waits.limit(began, deadline)
        return self._waits.timeout_error(f"no metadata of topic {topic!r} {limit}", began, *reasons)

    def _describe(self, topic: str, began: float, deadline: float, now: float) -> Waiting | None:
        if self._view.is_absent(topic):
            return None  # the error that says so is about to come
        text = self._view.describe_topic_wait(topic, now, began)
        return Waiting(f"{text}; waiting up to {in_seconds(deadline - began)}")
