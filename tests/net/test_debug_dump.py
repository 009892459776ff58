"""What clients tell of their connections."""

from __future__ import annotations

from kafka_fast import Consumer, Producer, TopicPartition
from kafka_fast.testing.broker.server import EmbeddedKafka
from tests.net.producing import TIMEOUT


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
            dump = consumer.debug_dump()
            assert "to node 1, " in dump
            assert " sent correlation=" in dump
            assert "secret" not in dump
