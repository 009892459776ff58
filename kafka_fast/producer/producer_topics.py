"""The topics of a producer's callers: queues to send to, and the metadata of partitions.

Thread: any that uses the producer.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.control.arguments import checked_name
from kafka_fast.control.diagnosis.troubles import timeout_error
from kafka_fast.control.producer.producer_control import ProducerControl
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.errors import InvalidTopicException, KafkaTimeoutError, UsageError
from kafka_fast.logs import Waiting, in_seconds
from kafka_fast.net.calls import Calls
from kafka_fast.net.host import Host
from kafka_fast.net.waiting.steps import Steps
from kafka_fast.net.waiting.topic_waits import TopicWaits
from kafka_fast.types import PartitionInfo


class ProducerTopics(TopicWaits):
    """The topics of one producer's callers."""

    def __init__(
        self, control: ProducerControl, queues: Queues, host: Host, call: Calls, max_block: float
    ) -> None:
        """Take what is asked and waited for.

        Args:
            control: takes what callers want, and shows the topics that are known.
            queues: the producer's queues.
            host: knows the time and the control thread.
            call: reaches the control thread.
            max_block: seconds that a caller waits at most.
        """
        super().__init__(control.view, host.now)
        self._control = control
        self._queues = queues
        self._host = host
        self._call = call
        self._max_block = max_block

    def need(self, topic: str) -> Steps[None]:
        """Wait until the topic has queues to send to.

        Raises:
            KafkaTimeoutError: the topic had no queues within max.block.ms.
            BrokerError: the topic cannot be used.
            AuthenticationError, TlsError: brokers refuse this client.
            InvalidTopicException: there can be no such topic.
            UsageError: the producer does not run any more, or a delivery callback would wait.
        """
        yield from self._await(topic, lambda: self._queues.partition_count(topic))

    def ask_for(self, topic: str) -> None:
        """Have the control thread find a topic's partitions; wait for nothing.

        Raises:
            InvalidTopicException: there can be no such topic.
            UsageError: the producer does not run any more.
        """
        if self._queues.refuses:
            self._queues.raise_refusal()
        _check_sendable(topic)
        self._want(topic)

    def partitions(self, topic: str) -> Steps[list[PartitionInfo]]:
        """Return the metadata of the topic's partitions; wait if there are none.

        Metadata are dropped when the topic was not used for metadata.max.idle.ms; its queues stay.
        Raises the errors of `need`, and TypeError for what is no name: in a request it would end
        the control thread.
        """
        if not isinstance(topic, str):
            raise TypeError(f"topic must be str, not {type(topic).__name__}")
        self._queues.check_lives()
        view = self._view
        known = view.partition_infos(topic)
        if known:
            self._call(lambda now: self._control.touch_topics([topic], now))
            return known
        # Wait for the queues as well, so that a send that follows need not wait.
        yield from self._await(
            topic, lambda: view.partition_count(topic) and self._queues.partition_count(topic)
        )
        return view.partition_infos(topic)

    def _await(self, topic: str, is_known: Callable[[], object]) -> Steps[None]:
        self._queues.check_may_wait()
        if self._host.is_current:  # such as a log handler that sends to Kafka
            raise UsageError(
                f"the producer's own thread must not wait for metadata of topic {topic!r}: it "
                "would wait for itself"
            )
        _check_sendable(topic)
        yield from self.await_topic(topic, self._host.now() + self._max_block, is_known)

    def _want(self, topic: str) -> None:
        self._call(lambda now: self._control.want_topic(topic, now))

    def _give_up(self, topic: str) -> None:
        self._call(lambda now: self._control.give_up_topic(topic))

    def _check(self) -> None:
        self._queues.check_lives()

    def _ends(self) -> Callable[[], bool]:
        return lambda: self._queues.dead

    def _late(self, topic: str, began: float, deadline: float) -> KafkaTimeoutError:
        what = f"no metadata of topic {topic!r} after max.block.ms ({self._max_block * 1000:.0f})"
        return timeout_error(what, *self._view.why_waiting_for_topic(topic, self._now(), began))

    def _describe(self, topic: str, began: float, deadline: float, now: float) -> Waiting:
        text = self._view.describe_topic_wait(topic, now, began)
        return Waiting(f"{text}; waiting up to max.block.ms ({in_seconds(self._max_block)})")


def _check_sendable(topic: str) -> None:
    """Refuse, as a broker would, a name that no request can carry.

    Raises:
        InvalidTopicException: there can be no such topic.
    """
    try:
        checked_name(topic, "the name of a topic")
    except UsageError as error:
        raise InvalidTopicException(str(error)) from None
