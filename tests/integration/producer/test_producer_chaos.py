"""The promise of the defaults, where it is hardest to keep: three real brokers that fail.

Two producers send all the time, one as a user gets it, one compressing and impatient, while the
leader is killed, frozen, and every broker is restarted. Then librdkafka reads everything back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from kafka_fast import Producer
from kafka_fast.errors import DeliveryError, KafkaError
from kafka_fast.testing._kafka.real_kafka import RealKafka
from kafka_fast.types import RecordMetadata
from tests.integration.producing import TIMEOUT, Tally, new_topic, read_log, say
from tests.waiting import eventually

PARTITIONS = 6
PAUSE = 10.0
VALUE_SIZE = 100
RECORDS = 520_000
"""In all; the senders go on until they have that many and the last fault is over."""
BURST = 200
TICK = 0.05
SHOWN = ("records_acked", "records_failed", "retries", "punts", "requests", "expired_batches")

IMPATIENT = {
    "compression.type": "lz4",
    "request.timeout.ms": 2_000,
    "metadata.max.age.ms": 3_000,
    "linger.ms": 20,
}


@dataclass
class Load:
    """One producer with one thread, which sends keyed and unkeyed records in turn."""

    producer: Producer
    keyed: Tally
    unkeyed: Tally
    enough: threading.Event = field(default_factory=threading.Event)
    error: KafkaError | None = None
    thread: threading.Thread | None = None

    def start(self) -> None:
        self.thread = threading.Thread(target=self._run, name="load")
        self.thread.start()

    def join(self) -> None:
        """Let the thread end; deliver everything."""
        assert self.thread is not None
        self.enough.set()
        self.thread.join()
        if self.error is not None:
            raise self.error
        assert self.producer.flush() == 0

    def close(self) -> None:
        """Leave nothing running."""
        self.enough.set()
        if self.thread is not None:
            self.thread.join()
        self.producer.close()

    @property
    def sent(self) -> int:
        return self.keyed.sent + self.unkeyed.sent

    def acked(self) -> int:
        return int(self.producer.metrics()["records_acked"])

    def _run(self) -> None:
        try:
            while not (self.enough.is_set() and self.sent >= RECORDS // 2):
                for _ in range(BURST):
                    self._send(self.keyed)
                    self._send(self.unkeyed)
                self.enough.wait(TICK)
        except KafkaError as error:
            self.error = error

    def _send(self, tally: Tally) -> None:
        number = tally.sent
        value, key = tally.next_record(VALUE_SIZE)

        def told(error: DeliveryError | None, metadata: RecordMetadata) -> None:
            tally.take(number, error, metadata)

        self.producer.send_nowait(tally.topic, value, key, on_delivery=told)


def kill_leader(kafka: RealKafka, topic: str, progress: Callable[[], None]) -> None:
    node = kafka.node(kafka.leader(topic, 0))
    node.kill()
    progress()
    node.start()
    kafka.wait_isr(topic)


def pause_leader(kafka: RealKafka, topic: str, progress: Callable[[], None]) -> None:
    node = kafka.node(kafka.leader(topic, 0))
    node.pause()
    until = time.monotonic() + PAUSE
    progress()
    eventually(lambda: time.monotonic() >= until, "the end of the pause")
    node.resume()
    kafka.wait_isr(topic)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_nothing_is_lost_duplicated_or_moved_while_brokers_fail(
    real_kafka_cluster: RealKafka, request: pytest.FixtureRequest
) -> None:
    kafka = real_kafka_cluster
    loads = []
    for config in ({}, IMPATIENT):
        tallies = [
            Tally(new_topic(kafka, PARTITIONS, replication=3), PARTITIONS, keyed)
            for keyed in (True, False)
        ]
        load = Load(Producer({"bootstrap.servers": kafka.bootstrap, **config}), *tallies)
        request.addfinalizer(load.close)
        loads.append(load)
    topic = loads[0].keyed.topic

    def progress() -> None:
        """Wait until both producers have a second's worth of records acknowledged anew."""
        before = [load.acked() for load in loads]
        for load, count in zip(loads, before, strict=True):
            eventually(lambda load=load, count=count: load.acked() > count + 10 * BURST, "progress")

    start = time.monotonic()
    for load in loads:
        load.start()
    try:
        progress()
        for name, fault in {
            "killed": kill_leader,
            "paused": pause_leader,
            "all restarted": lambda *_: kafka.rolling_restart(topic),
        }.items():
            began = time.monotonic()
            fault(kafka, topic, progress)
            say(f"{name}: {time.monotonic() - began:.1f} s")
        progress()
    finally:
        for load in loads:
            load.join()
    say(f"sent: {time.monotonic() - start:.1f} s")
    wrong = {}
    for load in loads:
        metrics = load.producer.metrics()
        say(f"{load.sent} records; { {key: metrics[key] for key in SHOWN} }")
        load.producer.close()
        for tally in (load.keyed, load.unkeyed):
            faults = tally.compare(kafka.bootstrap)
            say(f"{tally.topic}: {tally.sent} sent, {len(tally.acked)} acked, {dict(faults)}")
            # A batch that the broker knows to have been written long ago has no offset to tell.
            faults.pop("offset not told", None)
            if faults:
                wrong[tally.topic] = faults
    say(f"checked: {time.monotonic() - start:.1f} s")
    assert sum(load.sent for load in loads) >= RECORDS
    assert not wrong


@pytest.mark.slow
def test_records_wait_for_enough_replicas(
    real_kafka_cluster: RealKafka, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = real_kafka_cluster
    caplog.set_level(logging.INFO, "kafka_fast.producer")
    topic = new_topic(kafka, replication=3, min_insync_replicas="3")
    leader = kafka.leader(topic, 0)
    follower = next(node for node in kafka.nodes if node.node_id != leader)
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        producer.send(topic, b"0").result(TIMEOUT)
        follower.kill()
        futures = [producer.send(topic, b"%d" % number) for number in range(1, 200)]
        eventually(lambda: "NOT_ENOUGH_REPLICAS" in caplog.text, "the leader's refusal")
        assert not futures[-1].done()
        follower.start()
        assert [future.result(TIMEOUT).offset for future in futures] == list(range(1, 200))
    read = [one.value for one in read_log(kafka.bootstrap, topic, 0)]
    assert read == [b"%d" % number for number in range(200)]
