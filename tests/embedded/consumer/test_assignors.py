"""Users' assignors that take long, hang, or return nonsense."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kafka_fast import Consumer, TopicPartition
from kafka_fast.consumer import Assignor, GroupMember, GroupTopics
from kafka_fast.errors import AssignorError
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import HEARTBEAT
from tests.embedded.consuming import MakeConsumer, fill, partitions_of, poll_until
from tests.embedded.producing import new_topic
from tests.waiting import TIMEOUT, eventually

DRIVERS = True  # every test runs with threads and with asyncio


class Slow(Assignor):
    """Waits in one of its methods until the test lets it go on."""

    name = "slow"
    is_cooperative = False

    def __init__(self, method: str = "assign") -> None:
        self.method = method
        self.called = threading.Event()
        self.may_return = threading.Event()
        self.threads: list[str] = []

    def _pass(self, method: str) -> None:
        self.threads.append(threading.current_thread().name)
        if method == self.method:
            self.called.set()
            assert self.may_return.wait(TIMEOUT)

    def assign(
        self, topics: GroupTopics, members: Sequence[GroupMember]
    ) -> dict[str, list[TopicPartition]]:
        self._pass("assign")
        return {
            members[0].member_id: [
                TopicPartition(topic, partition.partition)
                for topic in topics
                for partition in topics[topic]
            ]
        }

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        self._pass("user_data")
        return None

    def handle_assignment(
        self, partitions: frozenset[TopicPartition], generation: int, user_data: bytes | None
    ) -> None:
        self._pass("handle_assignment")


@pytest.fixture(params=["user_data", "assign", "handle_assignment"])
def slow(request: pytest.FixtureRequest) -> Iterator[Slow]:
    assignor = Slow(request.param)
    yield assignor
    assignor.may_return.set()


def subscribe(consumer: Consumer, topic: str, assignor: Slow) -> None:
    """Subscribe, and poll until the assignor is at work."""
    consumer.subscribe([topic])

    def is_called() -> bool:
        consumer.poll(0.01)
        return assignor.called.is_set()

    eventually(is_called, "a call of the assignor")


def test_the_control_thread_goes_on_while_an_assignor_is_at_work(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer, slow: Slow
) -> None:
    """Regression: nothing else was done meanwhile; no metadata, no connection, no commit."""
    topic = new_topic(kafka, "slow", 2)
    fill(kafka, topic, 10)
    consumer = consumer_on(
        group_id=topic, partition_assignment_strategy=[slow], heartbeat_interval_ms=50
    )
    subscribe(consumer, topic, slow)
    other = new_topic(kafka, "other", 3)
    assert len(consumer.partitions_for(other, timeout=TIMEOUT)) == 3
    ends = consumer.end_offsets(partitions_of(topic, 2), timeout=TIMEOUT)
    assert sum(ends.values()) == 10
    if slow.method != "user_data":  # it is a member then, and has to say so
        beats: list[float] = []
        kafka.faults.script(HEARTBEAT, lambda response, node: beats.append(0.0))
        eventually(lambda: len(beats) > 2, "heartbeats")
    slow.may_return.set()
    poll_until([consumer], lambda: len(consumer.assignment()) == 2)
    assert set(slow.threads) == {"kf-assignor"}


def test_a_consumer_can_be_closed_while_an_assignor_hangs(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer, slow: Slow
) -> None:
    topic = new_topic(kafka, "hangs", 2)
    consumer = consumer_on(group_id=topic, partition_assignment_strategy=[slow])
    subscribe(consumer, topic, slow)
    consumer.close()
    assert not slow.may_return.is_set()


class Odd(Slow):
    """Returns, or raises, what an assignor should not."""

    name = "odd"

    def __init__(self, result: Any) -> None:
        super().__init__("")
        self.result = result

    def assign(self, topics: GroupTopics, members: Sequence[GroupMember]) -> Any:
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


@pytest.mark.parametrize(
    "result",
    [None, {"somebody": ["t-0"]}, {7: []}, [("a", "b")], SystemExit("of the whole process")],
    ids=repr,
)
def test_nonsense_of_an_assignor_is_an_error_of_poll(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer, result: Any
) -> None:
    """Regression: the control thread ended, and the consumer was of no use any more."""
    topic = new_topic(kafka, "odd", 2)
    consumer = consumer_on(group_id=topic, partition_assignment_strategy=[Odd(result)])
    consumer.subscribe([topic])
    with pytest.raises(AssignorError, match="the assignor 'odd' has failed"):
        poll_until([consumer], lambda: False)
    assert len(consumer.partitions_for(topic, timeout=TIMEOUT)) == 2  # its threads go on
