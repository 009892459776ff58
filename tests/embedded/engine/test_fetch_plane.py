"""Fetching over sockets from the embedded broker, by the data plane alone.

That it needs no GIL is proved by the order of events, not by a clock: a C call keeps the GIL until
a relay in another process has seen the whole topic pass by. With one batch in each answer, that
takes as many requests as there are batches; had Python to run for one of them, the call would
never return.
"""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_fast import Producer
from kafka_fast.testing import EmbeddedKafka

ROOT = Path(__file__).parents[3]
HANGS_AFTER = 60.0
PARTITIONS = 3
BATCHES = 20
VALUE = bytes(20_000)

SCRIPT = """
import ctypes, hashlib, socket, sys
from kafka_fast.consumer._fetch_carrier import carry_fetch
from kafka_fast.control.consumer.consumer_messages import NameStream, ProgramFetch, StartStream
from kafka_fast.dataplane.fetch._chunk import chunk_done
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.dataplane.fetch._streams import Streams
from kafka_fast.dataplane.core._wake import Wake
from kafka_fast.net._pump import Machine, Pump
from kafka_fast.protocol import frame
from kafka_fast.record import read_batches

port, version, partitions, records = map(int, sys.argv[1:])
machine = Machine()
plane = DataPlane(machine, max_frame=1 << 26, request_timeout=30.0)
streams = Streams(plane, buffer_bytes=1 << 26, max_bytes=1 << 26, partition_max_bytes=1)
pump = Pump(plane, machine)
wake = Wake(plane)
pump.add_link(1, 1, socket.create_connection(("127.0.0.1", port)).detach())
parts = frame.fetch_parts(version, "c", max_wait_ms=100, min_bytes=1, max_bytes=1,
                          read_committed=False)
carry_fetch(ProgramFetch(1, version, parts.prefix, parts.suffix), streams)
for partition in range(partitions):
    streams.add_stream(partition, "t", partition)
    field = frame.fetch_topic_prefix(version, "t", bytes(16))
    carry_fetch(NameStream(partition, version, field), streams)
    carry_fetch(StartStream(partition, 1, 0, 0, -1), streams)
pump.start()
ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(1), 1)  # keeps the GIL
offsets = [0] * partitions
while sum(offsets) < records:
    seen = wake.count
    if not streams.has_chunks:
        wake.wait(seen, 30.0)
    for chunk in streams.take_chunks(100):
        assert chunk.asked_offset == offsets[chunk.stream_id]
        for batch in read_batches(chunk.data).batches:
            batch.check_crc()
        offsets[chunk.stream_id] = chunk.next_offset
        chunk_done(chunk)
stats = streams.stats()
assert stats["buffered_bytes"] == 0, stats
print(stats["fetches"], stats["sessions_begun"], *offsets)
pump.stop()
"""


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as kafka:
        kafka.create_topic("t", partitions=PARTITIONS)
        with Producer({"bootstrap.servers": kafka.bootstrap, "batch.size": 1}) as producer:
            for number in range(BATCHES * PARTITIONS):
                producer.send("t", VALUE, partition=number % PARTITIONS).result()
        yield kafka


def relay(
    listener: socket.socket, bootstrap: str, enough: int, reader: subprocess.Popen[str]
) -> None:
    """Pass bytes on between the reader and the broker; tell the reader when it has got enough."""
    assert reader.stdin is not None
    host, port = bootstrap.split(":")
    passed = 0
    told = False
    listener.settimeout(HANGS_AFTER)
    client, _ = listener.accept()
    with client, socket.create_connection((host, int(port))) as broker:
        selector = selectors.DefaultSelector()
        selector.register(client, selectors.EVENT_READ, broker)
        selector.register(broker, selectors.EVENT_READ, client)
        while True:
            ready = selector.select(HANGS_AFTER)
            assert ready, f"{passed} bytes passed, then nothing"
            for key, _ in ready:
                data = key.fileobj.recv(1 << 20)  # type: ignore[union-attr]
                if not data:
                    return
                key.data.sendall(data)
                passed += len(data) if key.fileobj is broker else 0
            if passed >= enough and not told:
                told = True
                reader.stdin.write("x")
                reader.stdin.flush()


@pytest.mark.parametrize("version", [6, 12])
def test_a_topic_is_fetched_while_a_c_call_keeps_the_gil(
    kafka: EmbeddedKafka, version: int
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        arguments = [listener.getsockname()[1], version, PARTITIONS, BATCHES * PARTITIONS]
        reader = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            relay(listener, kafka.bootstrap, BATCHES * PARTITIONS * len(VALUE), reader)
            out, err = reader.communicate(timeout=HANGS_AFTER)
        finally:
            reader.kill()
            reader.wait()
    assert reader.returncode == 0, err
    fetches, sessions, *offsets = map(int, out.split())
    assert offsets == [BATCHES] * PARTITIONS
    assert fetches >= BATCHES * PARTITIONS
    assert sessions == (1 if version >= 7 else 0)
