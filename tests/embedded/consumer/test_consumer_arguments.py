"""What a consumer is given that it cannot use: an error of that very call, and nothing else."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from kafka_fast import Consumer, OffsetAndMetadata, TopicPartition, UsageError, read_range
from kafka_fast.errors import (
    InvalidTopicException,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import METADATA
from tests.embedded.consuming import MakeConsumer, fill, read
from tests.waiting import TIMEOUT

DRIVERS = True  # every test runs with threads and with asyncio

Call = Callable[[Consumer, TopicPartition], Any]

BOTH = pytest.mark.parametrize("protocol", ["classic", "consumer"])

TYPES: dict[str, Call] = {
    "assign a number": lambda c, p: c.assign([3]),  # type: ignore[list-item]
    "assign a name": lambda c, p: c.assign(["topic"]),  # type: ignore[list-item]
    "assign one": lambda c, p: c.assign(p),  # type: ignore[arg-type]
    "assign bytes": lambda c, p: c.assign([(b"t", 0)]),  # type: ignore[list-item]
    "assign a part": lambda c, p: c.assign([(p.topic, 0.5)]),  # type: ignore[list-item]
    "subscribe": lambda c, p: c.subscribe([3]),  # type: ignore[list-item]
    "poll None": lambda c, p: c.poll(None),  # type: ignore[arg-type]
    "poll text": lambda c, p: c.poll("1"),  # type: ignore[arg-type]
    "seek": lambda c, p: c.seek(p, 1.5),  # type: ignore[arg-type]
    "seek text": lambda c, p: c.seek(p, "1"),  # type: ignore[arg-type]
    "seek time": lambda c, p: c.seek_to_timestamp(1.5, p),  # type: ignore[arg-type]
    "pause": lambda c, p: c.pause([p]),  # type: ignore[arg-type]
    "position": lambda c, p: c.position("topic"),  # type: ignore[arg-type]
    "commit": lambda c, p: c.commit({p: "5"}),  # type: ignore[dict-item]
    "commit a note": lambda c, p: c.commit({p: OffsetAndMetadata(1, -1, None)}),  # type: ignore[arg-type]
    "committed": lambda c, p: c.committed("topic"),  # type: ignore[arg-type]
    "end_offsets": lambda c, p: c.end_offsets([p.topic]),  # type: ignore[list-item]
    "offsets_for_times": lambda c, p: c.offsets_for_times({p: "now"}),  # type: ignore[dict-item]
    "partitions_for": lambda c, p: c.partitions_for(3),  # type: ignore[arg-type]
    "enforce_rebalance": lambda c, p: c.enforce_rebalance(7),  # type: ignore[arg-type]
    "close": lambda c, p: c.close("soon"),  # type: ignore[arg-type]
}

VALUES: dict[str, Call] = {
    "subscribe to nothing and no pattern": lambda c, p: c.subscribe(),
    "assign no name": lambda c, p: c.assign([TopicPartition(" ", 0)]),
    "assign a negative number": lambda c, p: c.assign([TopicPartition(p.topic, -1)]),
    "assign a large number": lambda c, p: c.assign([TopicPartition(p.topic, 2**31)]),
    "poll": lambda c, p: c.poll(-1),
    "poll for NaN": lambda c, p: c.poll(float("nan")),
    "poll for none": lambda c, p: c.poll(0, 0),
    "seek": lambda c, p: c.seek(p, -1),
    "seek far": lambda c, p: c.seek(p, 2**63),
    "seek epoch": lambda c, p: c.seek(p, OffsetAndMetadata(0, 2**31)),
    "seek elsewhere": lambda c, p: c.seek(TopicPartition("other", 0), 0),
    "seek time": lambda c, p: c.seek_to_timestamp(-1),
    "pause elsewhere": lambda c, p: c.pause(TopicPartition("other", 0)),
    "commit": lambda c, p: c.commit({p: -1}),
    "commit a list": lambda c, p: c.commit([p]),  # type: ignore[arg-type]
    "committed": lambda c, p: c.committed([p], timeout=-1),
    "end_offsets": lambda c, p: c.end_offsets([TopicPartition("", 0)]),
    "offsets_for_times": lambda c, p: c.offsets_for_times({p: -1}),
    "partitions_for": lambda c, p: c.partitions_for(""),
    "assign what is no UTF-8": lambda c, p: c.assign([TopicPartition("\udcff", 0)]),
    "assign a long name": lambda c, p: c.assign([TopicPartition("t" * 2**15, 0)]),
    "subscribe to what is no UTF-8": lambda c, p: c.subscribe(["\udcff"]),
    "commit what is no UTF-8": lambda c, p: c.commit({TopicPartition("\udcff", 0): 1}),
    "commit a note": lambda c, p: c.commit({p: OffsetAndMetadata(1, -1, "\udcff")}),
    "committed of what is no UTF-8": lambda c, p: c.committed([TopicPartition("\udcff", 0)]),
    "end_offsets of what is no UTF-8": lambda c, p: c.end_offsets([TopicPartition("\udcff", 0)]),
    "rebalance for what is no UTF-8": lambda c, p: c.enforce_rebalance("\udcff"),
    "partitions_for what is no UTF-8": lambda c, p: c.partitions_for(["\udcff"]),
}


class TestArguments:
    @pytest.fixture
    def consumer(self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str) -> Consumer:
        fill(kafka, topic, 10)
        one = consumer_on(group_id="arguments")
        one.assign([TopicPartition(topic, 0)])
        return one

    def check(self, call: Call, kind: type[Exception], consumer: Consumer, topic: str) -> None:
        """The call fails, and what the consumer reads is what it would have read."""
        partition = TopicPartition(topic, 0)
        with pytest.raises(kind):
            call(consumer, partition)
        assert consumer.assignment() == {partition}
        assert not consumer.paused()
        assert len(read(consumer, 10)) == 10

    @pytest.mark.parametrize("call", TYPES.values(), ids=TYPES)
    def test_of_a_wrong_type(self, consumer: Consumer, topic: str, call: Call) -> None:
        """Regression: a name that was no str, or a seek to 1.5, ended the control thread."""
        self.check(call, TypeError, consumer, topic)

    @pytest.mark.parametrize("call", VALUES.values(), ids=VALUES)
    def test_of_a_wrong_value(self, consumer: Consumer, topic: str, call: Call) -> None:
        """Regression: a name that is no UTF-8 ended the control thread."""
        self.check(call, UsageError, consumer, topic)

    def test_other_kinds_of_numbers_and_pairs(self, consumer: Consumer, topic: str) -> None:
        numpy = pytest.importorskip("numpy")
        partition = TopicPartition(topic, 0)
        consumer.seek((topic, numpy.int32(0)), numpy.int64(7))  # type: ignore[arg-type]
        assert [record.offset for record in read(consumer, 3)] == [7, 8, 9]
        consumer.commit({(topic, numpy.int64(0)): numpy.int64(4)})  # type: ignore[dict-item]
        assert consumer.committed([partition]) == {partition: OffsetAndMetadata(4)}

    def test_of_ranges(self, kafka: EmbeddedKafka, topic: str) -> None:
        for wrong in ({"start": 1.5}, {"end": {TopicPartition(topic, 0): "9"}}, {"topics": [3]}):
            arguments: dict[str, Any] = {"topics": topic, "bootstrap_servers": kafka.bootstrap}
            with pytest.raises(TypeError):
                read_range(**{**arguments, **wrong})


class TestNothingToRead:
    def test_polls_and_loops_say_so(self, consumer_on: MakeConsumer) -> None:
        """As in Java: it is a mistake, and a loop would wait forever."""
        consumer = consumer_on(group_id="idle")
        for use in (consumer.poll, lambda: next(iter(consumer)), lambda: next(consumer.batches())):
            with pytest.raises(UsageError, match="nothing to read"):
                use()
        consumer.subscribe(["t"])
        consumer.poll(0)
        consumer.unsubscribe()
        with pytest.raises(UsageError, match="nothing to read"):
            consumer.poll()

    def test_a_subscription_to_nothing_ends_the_one_before(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str
    ) -> None:
        consumer = consumer_on(group_id="nothing")
        consumer.subscribe([topic])
        fill(kafka, topic, 5)
        read(consumer, 5)
        consumer.subscribe([])
        assert consumer.assignment() == consumer.subscription() == set()
        consumer.assign([TopicPartition(topic, 0)])


class TestTopicsThatCannotBeRead:
    @BOTH
    def test_a_subscription_is_told_and_the_others_are_read(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str, protocol: str
    ) -> None:
        """Regression: nobody ever heard that a name was not valid, or a topic not ours to read."""
        fill(kafka, topic, 10)
        consumer = consumer_on(group_id=f"group-of-{topic}", group_protocol=protocol)
        consumer.subscribe([topic, "not/valid"])
        with pytest.raises(InvalidTopicException, match="not/valid"):
            read(consumer, 11)
        consumer.seek_to_beginning()
        assert len(read(consumer, 10)) == 10

    @BOTH
    def test_it_is_told_again_only_if_it_still_holds(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str, protocol: str
    ) -> None:
        consumer = consumer_on(group_id=f"group-of-{topic}", group_protocol=protocol)
        for _ in range(2):
            rule = kafka.faults.error(METADATA, TopicAuthorizationFailed, topic=topic)
            consumer.subscribe([topic])
            with pytest.raises(TopicAuthorizationFailed, match=topic):
                consumer.poll(TIMEOUT)
            consumer.unsubscribe()  # first: else the next answer may say that all is well by now
            rule.cancel()
        consumer.subscribe([topic])
        fill(kafka, topic, 10)
        assert len(read(consumer, 10)) == 10

    def test_an_assignment_is_told_also_if_the_error_is_known(
        self, consumer_on: MakeConsumer
    ) -> None:
        consumer = consumer_on(group_id="g")
        for _ in range(2):
            consumer.assign([TopicPartition("not/valid", 0)])
            with pytest.raises(InvalidTopicException, match="not/valid"):
                consumer.poll(TIMEOUT)
            consumer.unsubscribe()

    def test_one_that_does_not_exist_is_waited_for_with_a_warning(
        self,
        kafka: EmbeddedKafka,
        consumer_on: MakeConsumer,
        topic: str,
        caplog: pytest.LogCaptureFixture,
        short_waits: float,
    ) -> None:
        consumer = consumer_on(
            group_id=f"group-of-{topic}", allow_auto_create_topics=False, metadata_max_age_ms=100
        )
        consumer.subscribe(["absent"])
        with caplog.at_level(logging.WARNING, "kafka_fast.consumer"):
            while "absent" not in caplog.text:
                consumer.poll(0.05)
            for _ in range(5):
                consumer.poll(0.1)
        assert caplog.text.count("there is no topic 'absent'") == 1
        assert UnknownTopicOrPartition.retriable
        kafka.create_topic("absent", 1)
        fill(kafka, "absent", 3)
        assert len(read(consumer, 3)) == 3
        kafka.delete_topic("absent")
