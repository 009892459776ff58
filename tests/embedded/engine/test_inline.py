"""Both planes on one thread, for finding out whether a failure is one of two threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_fast import Consumer, Producer, TopicPartition, UsageError
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.consuming import read
from tests.embedded.producing import TIMEOUT

VARIABLE = "KAFKA_FAST_DATA_PLANE"


def data_threads() -> int:
    names = [Path(task, "comm").read_text() for task in Path("/proc/self/task").iterdir()]
    return names.count("kf-data\n")


def test_everything_runs_without_the_data_planes_thread(
    kafka: EmbeddedKafka, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = data_threads()
    monkeypatch.setenv(VARIABLE, "inline")
    config = {"bootstrap.servers": kafka.bootstrap, "retry.backoff.ms": 20}
    values = [b"%d" % number for number in range(2_000)]
    with (
        Producer(config, compression_type="lz4", linger_ms=2) as producer,
        Consumer(config, auto_offset_reset="earliest") as consumer,
    ):
        consumer.assign([TopicPartition(topic, 0)])
        for value in values[:1_000]:
            producer.send_nowait(topic, value)
        producer.flush(TIMEOUT)
        kafka.move_leader(topic, 0, 2)
        producer.send_many(topic, values[1_000:]).result(TIMEOUT)
        assert [record.value for record in read(consumer, 2_000)] == values
        assert producer.send(topic, b"last").result(TIMEOUT).offset == 2_000
        assert data_threads() == threads
        assert "to node 2, " in producer.debug_dump()


def test_other_words_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "in line")
    with pytest.raises(UsageError, match="'in line'"):
        Producer({"bootstrap.servers": "127.0.0.1:1"})
