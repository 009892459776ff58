"""The producer over real sockets, against peers that do what one does not expect of a broker."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from kafka_fast import Producer
from kafka_fast.errors import KafkaTimeoutError, ProtocolError
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import METADATA, PRODUCE
from tests.waiting import TIMEOUT, eventually

TLS_ALERT = bytes.fromhex("15 03 03 00 02 02 46")  # fatal, protocol_version
HTTP = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"


@contextmanager
def peer(answer: bytes) -> Iterator[str]:
    """A server that answers whatever comes with these bytes, and hangs up."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(4096)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        host, port = server.getsockname()
        yield f"{host}:{port}"
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (TLS_ALERT, "a TLS listener: it needs security.protocol=SSL"),
        (TLS_ALERT[:5], "a TLS listener"),
        (HTTP, "an HTTP server"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "an SSH server"),
        (bytes.fromhex("ff ff ff fe 61 62 63 64 65"), "sent ff ff ff fe 61 62 63 64"),
    ],
)
def test_an_error_says_who_else_listens_at_the_port(answer: bytes, hint: str) -> None:
    with peer(answer) as address:
        properties = {"bootstrap.servers": address, "max.block.ms": 500}
        with Producer(properties) as producer, pytest.raises(KafkaTimeoutError) as caught:
            producer.send("t", b"v")
    assert hint in str(caught.value)
    cause = caught.value.__cause__
    assert isinstance(cause, ProtocolError)
    assert hint in str(cause)
    assert address in str(cause)


def test_a_topic_made_anew_while_requests_are_in_flight_costs_no_link() -> None:
    """Regression: answers name the topic by the id that the request had, not by the new one."""
    with EmbeddedKafka(brokers=2) as kafka:
        for node, topic in ((1, "u"), (2, "t")):
            kafka.create_topic(topic)
            kafka.move_leader(topic, 0, node)
        properties = {"bootstrap.servers": kafka.bootstrap, "metadata.max.age.ms": 50}
        with Producer(properties, **{"retry.backoff.ms": 20}) as producer:
            for topic in ("u", "t"):  # node 1's link comes first, and carries the metadata
                producer.send(topic, b"before").result(TIMEOUT)
            core = producer._core
            old = core.control.cluster.topic_id("t")
            links = core.plane.node_stats()[2]["links"]
            kafka.faults.delay(0.5, api=PRODUCE, count=1)
            future = producer.send("t", b"in flight")
            kafka.delete_topic("t")
            kafka.create_topic("t")
            kafka.move_leader("t", 0, 2)
            eventually(lambda: core.control.cluster.topic_id("t") not in (None, old))
            future.result(TIMEOUT)
            producer.send("t", b"after").result(TIMEOUT)
            assert core.plane.node_stats()[2]["links"] == links
            assert kafka.records("t")[-1].value == b"after"


def nonsense(answer: bytes) -> bytes:
    """Keep an answer's length and correlation id, and nothing else."""
    return answer[:8] + b"\xff" * (len(answer) - 8)


def test_troubles_with_links_are_counted_by_kind() -> None:
    with EmbeddedKafka() as kafka:
        kafka.create_topic("t")
        quick = {"retry.backoff.ms": 20, "reconnect.backoff.ms": 20, "metadata.max.age.ms": 100}
        with Producer({"bootstrap.servers": kafka.bootstrap}, **quick) as producer:
            producer.send("t", b"first").result(TIMEOUT)
            before = producer.metrics()
            assert (before["malformed_answers"], before["link_failures"]) == ({}, 0)
            kafka.faults.garble(nonsense, api=METADATA, count=1)
            eventually(lambda: producer.metrics()["malformed_answers"] == {"Metadata": 1})
            # Before its link is closed, the next request would go over the same one.
            eventually(lambda: producer.metrics()["links_closed"].get("by_us") == 1)
            kafka.faults.garble(nonsense, api=PRODUCE, count=1)
            producer.send("t", b"second").result(TIMEOUT)
            after = producer.metrics()
    assert after["links_closed"]["bad_response"] >= 1
    assert after["link_failures"] >= 2
