"""What clients tell of their connections."""

from __future__ import annotations

import re

from kafka_fast import Consumer, Producer, TopicPartition
from kafka_fast.errors import OffsetNotAvailable
from kafka_fast.testing.broker.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import LIST_OFFSETS
from tests.net.producing import TIMEOUT
from tests.waiting import eventually


def test_debug_dump_tells_what_the_links_did_and_no_payload() -> None:
    with EmbeddedKafka() as kafka, Producer({"bootstrap.servers": kafka.bootstrap}) as producer:
        producer.send("t", b"secret payload").result(TIMEOUT)
        dump = producer.debug_dump()
        assert "to node 1, 0 in flight" in dump
        assert " sent correlation=1 batch=1 " in dump
        assert "secret" not in dump


def test_a_consumer_tells_what_its_links_did() -> None:
    with EmbeddedKafka() as kafka:
        with Producer({"bootstrap.servers": kafka.bootstrap}) as producer:
            producer.send("t", b"secret payload").result(TIMEOUT)
        with Consumer(
            {"bootstrap.servers": kafka.bootstrap, "auto.offset.reset": "earliest"}
        ) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            assert consumer.poll(TIMEOUT).values() == [b"secret payload"]
            consumer.pause(TopicPartition("t", 0))
            dump = consumer.debug_dump()
            assert "to node 1, " in dump
            assert " sent correlation=" in dump
            assert "secret" not in dump
            said = r"^t-0: FETCHING for [\d.]+ m?s, from offset 0 over link \d+ to node 1 at "
            assert re.search(said, dump, re.MULTILINE)
            assert "\nt-0: handed over up to offset 1, paused\n" in dump


def test_a_consumer_tells_why_it_does_not_read() -> None:
    with EmbeddedKafka() as kafka, Consumer(bootstrap_servers=kafka.bootstrap) as consumer:
        kafka.create_topic("t", 1)
        kafka.faults.error(LIST_OFFSETS, OffsetNotAvailable)
        consumer.assign([TopicPartition("t", 0)])
        said = (
            r"^t-0: AWAITS_OFFSET for [\d.]+ m?s, no position; it looks up where to start, "
            r"but its leader answers OFFSET_NOT_AVAILABLE \(78\)"
        )
        eventually(lambda: re.search(said, consumer.debug_dump(), re.MULTILINE), "the reason")
        assert "\nt-0: no position yet\n" in consumer.debug_dump()
