"""The embedded broker behind sockets: ports, threads, and what happens to connections."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_fast.errors import ConfigError, TopicAlreadyExists, UsageError
from kafka_fast.protocol.apis.records.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import METADATA
from tests.integration.scenarios.wire import (
    ClosedError,
    WireClient,
    batch,
    connected,
    produce_request,
)
from tests.waiting import killed


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=2, partitions=2) as made:
        made.create_topic("t")
        yield made


def addresses(kafka: EmbeddedKafka) -> list[str]:
    return kafka.bootstrap.split(",")


def refused(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 5).close()
    except ConnectionRefusedError:
        return True
    return False


def test_records_can_be_looked_at(kafka: EmbeddedKafka) -> None:
    with connected(addresses(kafka)[0]) as client:
        client.produce("t", batch(3, value=b"hello"))
    assert [record.value for record in kafka.records("t")] == [b"hello"] * 3
    assert kafka.end_offset("t", 0) == 3
    assert kafka.records("t", 1) == []


def test_commands_raise_in_the_thread_that_gave_them(kafka: EmbeddedKafka) -> None:
    with pytest.raises(TopicAlreadyExists):
        kafka.create_topic("t")
    with pytest.raises(ValueError, match="no node 5"):
        kafka.pause(5)


def test_a_killed_broker_refuses_and_comes_back_on_its_port(kafka: EmbeddedKafka) -> None:
    first = addresses(kafka)[0]
    client = WireClient(first)
    kafka.kill(1)
    assert client.is_closed()
    client.close()
    assert refused(first)
    assert kafka.leader("t", 0) == 2
    kafka.restart(1)
    with connected(first) as again:
        assert [node.node_id for node in again.metadata().brokers] == [1, 2]
    assert kafka.bootstrap.split(",")[0] == first


def test_a_paused_broker_is_silent(kafka: EmbeddedKafka) -> None:
    with connected(addresses(kafka)[0]) as client:
        kafka.pause(1)
        correlation_id = client.send(produce_request("t", [(0, batch())]), 12)
        assert kafka.end_offset("t", 0) == 0
        kafka.resume(1)
        assert client.receive()[:4] == struct.pack(">i", correlation_id)
    assert kafka.end_offset("t", 0) == 1


def test_a_moved_leader_and_heal(kafka: EmbeddedKafka) -> None:
    kafka.move_leader("t", 0, 2)
    assert kafka.leader("t", 0) == 2
    kafka.set_in_sync("t", 0, [2])
    kafka.forget_producer("t", 0, 99)
    kafka.delete_records("t", 0, 0)
    kafka.faults.drop(api=METADATA, close=True)
    kafka.kill(2)
    kafka.pause(1)
    kafka.heal()
    for address in addresses(kafka):
        with connected(address) as client:
            assert len(client.metadata().brokers) == 2
    kafka.delete_topic("t")


def test_a_large_answer_to_a_slow_reader(kafka: EmbeddedKafka) -> None:
    value = os.urandom(900_000)
    with connected(addresses(kafka)[0]) as client:
        for _ in range(8):
            client.produce("t", batch(value=value))
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 27)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 27,
            topics=[FetchTopic(topic="t", partitions=[asked])],
        )
        sent = [client.send(request, 12) for _ in range(4)]
        with connected(addresses(kafka)[0]) as other:  # the thread does not wait for the reader
            assert other.metadata().brokers
        for correlation_id in sent:
            frame = client.receive()
            assert frame[:4] == struct.pack(">i", correlation_id)
            assert len(frame) > 8 * len(value)


def test_a_client_that_goes_away_with_an_answer_open(kafka: EmbeddedKafka) -> None:
    first = addresses(kafka)[0]
    with connected(first) as client:
        client.produce("t", batch(value=os.urandom(1_000_000)))
    for _ in range(5):
        with connected(first) as leaving:
            asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 27)
            topics = [FetchTopic(topic="t", partitions=[asked])]
            leaving.send(FetchRequest(max_bytes=1 << 27, topics=topics), 12)
    with connected(first) as client:
        assert client.metadata().brokers


def test_stop_closes_everything_and_twice_is_fine() -> None:
    before = set(threading.enumerate())
    kafka = EmbeddedKafka()
    with pytest.raises(UsageError, match="has not been started"):
        _ = kafka.bootstrap
    kafka.start()
    address = kafka.bootstrap
    with pytest.raises(UsageError, match="runs already"):
        kafka.start()
    client = WireClient(address)
    kafka.stop()
    kafka.stop()
    with pytest.raises(ClosedError):
        client.receive()
    client.close()
    assert refused(address)
    with pytest.raises(UsageError, match="does not run"):
        kafka.records("t")
    begun = set(threading.enumerate()) - before
    assert not [one for one in begun if one.name == "kf-embedded-broker"]


def test_it_starts_again_empty() -> None:
    kafka = EmbeddedKafka()
    with kafka:
        kafka.create_topic("t")
        kafka.on_cluster(lambda cluster: cluster.plant_bytes("t", 0, b"x", count=3))
        assert kafka.end_offset("t", 0) == 3
    with kafka:
        kafka.create_topic("t")
        assert kafka.end_offset("t", 0) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"brokers": 0}, "make no cluster"),
        ({"brokers": 2, "ports": [1]}, "1 ports for 2 brokers"),
        ({"host": "0.0.0.0"}, "not loopback"),
        ({"host": "example.org"}, "not loopback"),
        ({"topic_config": {"segment.kilobytes": "1"}}, "no topic setting"),
        ({"topic_config": {"min.insync.replicas": "none"}}, "not a number"),
    ],
)
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        EmbeddedKafka(**options)  # type: ignore[arg-type]


def test_a_port_that_is_taken_gives_back_the_others() -> None:
    with EmbeddedKafka() as kafka:
        taken = int(kafka.bootstrap.rpartition(":")[2])
        other = EmbeddedKafka(brokers=2, ports=[0, taken])
        with pytest.raises(OSError, match="in use"):
            other.start()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_runs_as_a_process_until_a_signal(number: int) -> None:
    code = "from kafka_fast.testing.broker.serving.server import run; run(port=0, brokers=2)"
    root = Path(__file__).parents[5]
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True
    )
    with process, killed(process):
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("embedded broker for tests")
        bootstrap = line.rpartition(" ")[2].strip()
        with connected(bootstrap.split(",")[1]) as client:
            assert len(client.metadata().brokers) == 2
        process.send_signal(number)
        assert process.wait(10) == 0
