"""The examples' plain reader: what it finds, and what it says where there is nothing to find."""

from __future__ import annotations

import importlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka_fast import Producer
from kafka_fast.errors import KafkaConnectionError, ProtocolError
from kafka_fast.testing import EmbeddedKafka
from kafka_fast.testing.broker.versions import KAFKA_2_1


@pytest.fixture
def readback(examples: Path) -> Any:
    return importlib.import_module("readback")


@contextmanager
def peer(answer: bytes) -> Iterator[str]:
    """Run a server that answers a first request with `answer` and hangs up; give its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                client.recv(1024)
                client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize("version", ["newest", "2.1"])
def test_what_was_produced_is_read(readback: Any, version: str) -> None:
    with EmbeddedKafka(brokers=3) as kafka:
        if version == "2.1":
            kafka.faults.limit_versions(KAFKA_2_1)
        with readback.Kafka(kafka.bootstrap) as cluster:
            cluster.create_topic("t", partitions=4)
            assert cluster.partition_count("t") == 4
            assert list(cluster.read("t")) == []
            expected = [(b"%d" % i, b"value %d" % i) for i in range(1000)]
            with Producer(bootstrap_servers=kafka.bootstrap, compression_type="gzip") as producer:
                for key, value in expected:
                    producer.send_nowait("t", value, key)
            rows = [
                pair
                for keys, values in cluster.read("t")
                for pair in zip(keys, values, strict=True)
            ]
            assert sorted(rows) == sorted(expected)


def test_the_first_broker_that_answers_is_taken(readback: Any) -> None:
    with EmbeddedKafka() as kafka, peer(b"") as other:
        with readback.Kafka(f"nonsense,{kafka.bootstrap},{other}") as cluster:
            cluster.create_topic("t", partitions=1)
        socket.create_connection(other.split(":")).close()


@pytest.mark.parametrize("address", ["localhost", ":9092", "host:port", "host:65536", "host:-1"])
def test_what_is_no_address(readback: Any, address: str) -> None:
    with pytest.raises(KafkaConnectionError, match=f"'{address}' is not host:port"):
        readback.Kafka(address)


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid", "empty..label"])
def test_nobody_is_there(readback: Any, host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(KafkaConnectionError, match=f"no broker at {host}:{port}: "):
        readback.Kafka(f"{host}:{port}")


def test_somebody_else_is_there(readback: Any) -> None:
    with (
        peer(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address,
        readback.Kafka(address) as cluster,
        pytest.raises(ProtocolError, match=f"{address} is no Kafka broker"),
    ):
        cluster.create_topic("t", partitions=1)


def test_the_peer_hangs_up(readback: Any) -> None:
    with (
        peer(b"") as address,
        readback.Kafka(address) as cluster,
        pytest.raises(KafkaConnectionError, match=f"no answer from {address}: "),
    ):
        cluster.create_topic("t", partitions=1)
