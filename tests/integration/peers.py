"""Other people's clients as the consumer's tests use them: they write, commit, and look it up.

All of it concerns partition 0 of a topic. Their own warnings are theirs: tests that use them
ignore warnings.
"""

from __future__ import annotations

import asyncio
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import aiokafka
import confluent_kafka

from kafka_fast import Producer
from kafka_fast.testing._kafka.broker_jars import class_path, find_tool
from tests.integration.producing import TIMEOUT

T = TypeVar("T")

Row = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""Timestamp, key, value and headers."""

RECORDS = 300
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NOTE = "theirs"
"""The metadata of what they commit."""

JAVA_SOURCE = Path(__file__).with_name("JavaPeer.java")
FIRST_TIMESTAMP_MS = 1_700_000_000_000
DAY_MS = 86_400_000


def rows() -> list[Row]:
    """Return records of every shape, whose time goes forwards and backwards."""
    shapes: list[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]] = [
        (None, b"", ()),
        (b"", b"value", ()),
        (b"key", None, (("a", b"1"), ("a", b""), ("ü", b"\xff"))),
        (None, b"x" * 3_000, ()),
        (b"\x00" * 300, b"\x01" * 700, (("h", b"v" * 200),)),
    ]
    return [
        (FIRST_TIMESTAMP_MS + number * 7 % 11 * DAY_MS + number, *shapes[number % len(shapes)])
        for number in range(RECORDS)
    ]


class Peer(ABC):
    """One of them."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @abstractmethod
    def write(self, topic: str, codec: str) -> None:
        """Write `rows` with its producer; return when they are in the log."""

    @abstractmethod
    def commit(self, group: str, topic: str, offset: int) -> None:
        """Commit for an empty group, with `NOTE`."""

    @abstractmethod
    def committed(self, group: str, topic: str) -> int:
        """Return what is committed, as it is told."""

    def close(self) -> None:  # noqa: B027  only one of them keeps anything
        """Stop what runs."""


class Confluent(Peer):
    """librdkafka."""

    def write(self, topic: str, codec: str) -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self.bootstrap, "compression.type": codec}
        )
        for timestamp, key, value, headers in rows():
            producer.produce(
                topic, value, key, partition=0, headers=list(headers), timestamp=timestamp
            )
        assert producer.flush(TIMEOUT) == 0

    def commit(self, group: str, topic: str, offset: int) -> None:
        place = confluent_kafka.TopicPartition(topic, 0, offset, NOTE)
        self._ask(group, lambda consumer: consumer.commit(offsets=[place], asynchronous=False))

    def committed(self, group: str, topic: str) -> int:
        # A note that does not end as a C string does is beyond that client.
        places = [confluent_kafka.TopicPartition(topic, 0)]
        (place,) = self._ask(group, lambda consumer: consumer.committed(places, TIMEOUT))
        return int(place.offset)

    def _ask(self, group: str, question: Callable[[confluent_kafka.Consumer], T]) -> T:
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": group}
        )
        try:
            return question(consumer)
        finally:
            consumer.close()


class Aiokafka(Peer):
    """aiokafka."""

    def write(self, topic: str, codec: str) -> None:
        async def run() -> None:
            kind = None if codec == "none" else codec
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=self.bootstrap, compression_type=kind
            )
            await producer.start()
            try:
                sent = [
                    await producer.send(
                        topic, value, key, 0, timestamp_ms=timestamp, headers=list(headers)
                    )
                    for timestamp, key, value, headers in rows()
                ]
                await asyncio.gather(*sent)
            finally:
                await producer.stop()

        asyncio.run(run())

    def commit(self, group: str, topic: str, offset: int) -> None:
        at = {aiokafka.TopicPartition(topic, 0): (offset, NOTE)}
        self._ask(group, topic, lambda consumer: consumer.commit(at))

    def committed(self, group: str, topic: str) -> int:
        place = aiokafka.TopicPartition(topic, 0)
        return int(self._ask(group, topic, lambda consumer: consumer.committed(place)))

    def _ask(
        self,
        group: str,
        topic: str,
        question: Callable[[aiokafka.AIOKafkaConsumer], Coroutine[Any, Any, T]],
    ) -> T:
        async def run() -> T:
            consumer = aiokafka.AIOKafkaConsumer(
                bootstrap_servers=self.bootstrap, group_id=group, enable_auto_commit=False
            )
            await consumer.start()
            try:
                consumer.assign([aiokafka.TopicPartition(topic, 0)])
                return await question(consumer)
            finally:
                await consumer.stop()

        return asyncio.run(run())


class KafkaPython(Peer):
    """kafka-python, which warns already when it is imported."""

    def write(self, topic: str, codec: str) -> None:
        from kafka import KafkaProducer

        kind = None if codec == "none" else codec
        producer = KafkaProducer(bootstrap_servers=self.bootstrap, compression_type=kind)
        for timestamp, key, value, headers in rows():
            producer.send(
                topic, value, key, headers=list(headers), partition=0, timestamp_ms=timestamp
            )
        producer.flush(TIMEOUT)
        producer.close()

    def commit(self, group: str, topic: str, offset: int) -> None:
        from kafka import TopicPartition
        from kafka.structs import OffsetAndMetadata

        at = {TopicPartition(topic, 0): OffsetAndMetadata(offset, NOTE, -1)}
        self._ask(group, lambda consumer: consumer.commit(at))

    def committed(self, group: str, topic: str) -> int:
        from kafka import TopicPartition

        return int(self._ask(group, lambda consumer: consumer.committed(TopicPartition(topic, 0))))

    def _ask(self, group: str, question: Callable[[Any], T]) -> T:
        from kafka import KafkaConsumer

        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap, group_id=group, enable_auto_commit=False
        )
        try:
            return question(consumer)
        finally:
            consumer.close()


class Java(Peer):
    """Apache's own client, in one JVM that takes commands."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        jars = f"{class_path()}/*"
        quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m"]
        self._process = subprocess.Popen(
            [find_tool("java"), *quick, "-cp", jars, str(JAVA_SOURCE), bootstrap],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def write(self, topic: str, codec: str) -> None:
        lines = [f"write {topic} {codec} {RECORDS}"]
        for timestamp, key, value, headers in rows():
            words = [_hex(key), _hex(value)]
            words += [
                word for name, content in headers for word in (_hex(name.encode()), _hex(content))
            ]
            lines.append(" ".join([str(timestamp), *words]))
        assert self._ask("\n".join(lines)) == str(RECORDS)

    def commit(self, group: str, topic: str, offset: int) -> None:
        assert self._ask(f"commit {group} {topic} {offset} {NOTE}") == str(offset)

    def committed(self, group: str, topic: str) -> int:
        return int(self._ask(f"committed {group} {topic}"))

    def close(self) -> None:
        self._process.communicate(timeout=TIMEOUT)

    def _ask(self, command: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("="):
                return line[1:].strip()
        raise AssertionError("the Java client has ended: its last words are on standard error")


def write_rows(bootstrap: str, topic: str, codec: str) -> None:
    """Write `rows` with our own producer."""
    with Producer(bootstrap_servers=bootstrap, compression_type=codec) as producer:
        for timestamp, key, value, headers in rows():
            producer.send(topic, value, key, headers=headers, partition=0, timestamp_ms=timestamp)


def _hex(data: bytes | None) -> str:
    return "-" if data is None else f"x{data.hex()}"


PEERS: dict[str, type[Peer]] = {
    "Java": Java,
    "confluent-kafka": Confluent,
    "aiokafka": Aiokafka,
    "kafka-python": KafkaPython,
}
