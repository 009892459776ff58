"""A quota of real Kafka: it answers at once and says how long to wait (KIP-219), and we do."""

from __future__ import annotations

import socket
import struct
import time

import pytest

from kafka_fast import Producer
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.producing import TIMEOUT, new_topic, read_log
from tests.waiting import eventually

ALTER_CLIENT_QUOTAS = 49
RATE = 10_000
"""Bytes per second that the client may send; the broker measures over ten seconds."""
SIZE = 60_000
"""Of a record: two of them are 2 s too many."""


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def limit(kafka: RealKafka, client_id: str, rate: float) -> None:
    """Give a client a quota; no client library at hand can, so the request is written here."""
    entry = struct.pack(">i", 1) + text("client-id") + text(client_id)
    change = struct.pack(">i", 1) + text("producer_byte_rate") + struct.pack(">d?", rate, False)
    body = struct.pack(">i", 1) + entry + change + b"\0"  # not only to validate
    request = struct.pack(">hhih", ALTER_CLIENT_QUOTAS, 0, 1, -1) + body
    host, _, port = kafka.node(1).address.rpartition(":")
    with socket.create_connection((host, int(port)), TIMEOUT) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answer:
            size = struct.unpack(">i", answer.read(4))[0]
            _, _, count, code = struct.unpack(">iiih", answer.read(size)[:14])
    assert (count, code) == (1, 0)


@pytest.mark.needs_kafka("2.6", "quotas without ZooKeeper (KIP-546)")
def test_the_pause_that_a_quota_asks_for_is_kept(real_kafka: RealKafka) -> None:
    topic = new_topic(real_kafka)
    limit(real_kafka, topic, RATE)
    sent: list[bytes] = []
    start = 0.0
    with Producer(bootstrap_servers=real_kafka.bootstrap, client_id=topic) as producer:

        def pause_asked_for() -> int:
            """Send one request more: several in flight would each be asked to wait."""
            nonlocal start
            sent.append(b"%d" % len(sent) + bytes(SIZE))
            start = time.monotonic()  # the first pause may be over when it is counted
            producer.send(topic, sent[-1]).result(TIMEOUT)
            return producer.metrics()["throttle_ms"]

        # The broker answers before it applies the quota, and counts what comes after that.
        asked = eventually(pause_asked_for, "a pause", timeout=TIMEOUT) / 1_000
        sent.append(b"after the pause")
        producer.send(topic, sent[-1]).result(TIMEOUT)
        assert time.monotonic() - start > 0.8 * asked
    assert [one.value for one in read_log(real_kafka.bootstrap, topic, 0)] == sent
