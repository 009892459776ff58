"""CPU, threads, file descriptors and memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_fast import Producer
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.producing import MIB, TIMEOUT, attempt, entries
from tests.memory import resident_bytes
from tests.support.null_broker import NullBroker
from tests.waiting import eventually


def test_waiting_for_brokers_costs_no_cpu(kafka: EmbeddedKafka, topic: str) -> None:
    producer = Producer(bootstrap_servers=kafka.bootstrap)
    producer.send(topic, b"x").result(TIMEOUT)
    for node_id in (1, 2, 3):
        kafka.kill(node_id)
    for _ in range(100):
        producer.send_nowait(topic, b"pending")
    before = resource.getrusage(resource.RUSAGE_SELF)
    assert producer.flush(3.0) == 100
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 0.3, f"{spent:.3f} s of CPU in 3 s without brokers"
    for node_id in (1, 2, 3):
        kafka.restart(node_id)
    producer.close()
    assert kafka.end_offset(topic, 0) == 101


def test_nothing_is_left_of_closed_producers(kafka: EmbeddedKafka, topic: str) -> None:
    def use() -> None:
        with Producer(bootstrap_servers=kafka.bootstrap, compression_type="lz4") as producer:
            producer.send_nowait(topic, b"x", on_delivery=lambda error, metadata: None)

    # Other libraries' threads (arrays, Arrow) may be here; they are no business of ours.
    tasks = entries("/proc/self/task")
    use()
    # The broker lives in this process, and closes its ends a moment later.
    eventually(lambda: entries("/proc/self/task") <= tasks)
    fds = len(entries("/proc/self/fd"))
    for _ in range(50):
        use()
    eventually(lambda: len(entries("/proc/self/fd")) <= fds + 4)
    eventually(lambda: entries("/proc/self/task") <= tasks)
    assert kafka.end_offset(topic, 0) == 51


# Python's own threads have small stacks here: neighbours may share a mapping.
STACKS = """
import sys, threading
threading.stack_size(1 << 20)

from pathlib import Path
from kafka_fast import Producer
from kafka_fast.net.tls._tls import library_version
from kafka_fast.record import codecs_available
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.certificates import CertificateAuthority
from tests.embedded.engine.test_resources import TIMEOUT, eventually, room_on_stack
from tests.embedded.tls.harness import server_context

authority = CertificateAuthority(Path(sys.argv[1]))
context = server_context(authority.issue("localhost", "127.0.0.1", common_name="broker"))
secure = {"security_protocol": "SSL", "ssl_ca_location": str(authority.certificate)}
# Python compresses, and speaks TLS, where the build has no library for that.
has_lz4, has_tls = codecs_available()["lz4"] == "native", library_version() is not None
names = ["kf-data", *["kf-codec"] * has_lz4, *["kf-tls"] * has_tls]
with EmbeddedKafka(brokers=1, tls=context) as kafka:
    with Producer(bootstrap_servers=kafka.bootstrap, compression_type="lz4", **secure) as producer:
        producer.send("t", b"x").result(TIMEOUT)
        for name in names:
            print(name, eventually(lambda: room_on_stack(name), f"{name} waits"))
"""
GIB = 1 << 30


@pytest.mark.not_under("thread", "it gives threads stacks of its own")
@pytest.mark.not_under("emulator", "what waits, and on which stack, is the emulator's thread")
def test_native_threads_have_a_stack_of_one_size_everywhere(tmp_path: Path) -> None:
    """Regression: they had the C library's default: what `ulimit -s` says or, in musl, 128 KiB."""
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    done = subprocess.run(
        [sys.executable, "-c", STACKS, str(tmp_path)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (GIB, most)),
    )
    assert done.returncode == 0, done.stderr
    rooms = dict(line.split() for line in done.stdout.splitlines())
    assert "kf-data" in rooms
    assert all(0.75 * MIB < int(room) < 0.5 * GIB for room in rooms.values()), rooms


def room_on_stack(thread: str) -> int:
    """Return how far a thread of this process is from the end of its mapping; 0 if it runs."""
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text() == f"{thread}\n":
            _, *waits = (task / "syscall").read_text().split()
            if waits:
                stack_pointer = int(waits[-2], 16)
                for line in Path("/proc/self/maps").read_text().splitlines():
                    start, end = (int(place, 16) for place in line.split()[0].split("-"))
                    if start <= stack_pointer < end:
                        return stack_pointer - start
    return 0


@pytest.mark.not_under("address", "its own memory counts as well")
@pytest.mark.not_under("thread", "its own memory counts as well")
def test_memory_is_bounded_at_a_broker_that_stands_still() -> None:
    buffer_memory = 32 * MIB
    with NullBroker(partitions=4) as broker:
        producer = Producer(
            bootstrap_servers=broker.bootstrap, buffer_memory=buffer_memory, max_block_ms=1
        )
        eventually(lambda: attempt(lambda: producer.partitions_for("t")))
        before = resident_bytes()
        broker.stop_reading()
        accepted = refused = 0
        while refused < 2_000:
            if attempt(lambda: producer.send_nowait("t", b"x" * 100)):
                accepted += 1
            else:
                refused += 1
        grown = resident_bytes() - before
        assert accepted * 100 > buffer_memory // 2
        assert grown <= buffer_memory + 64 * MIB
        broker.resume_reading()
        assert producer.flush(TIMEOUT) == 0
        assert broker.stats().records == accepted
        producer.close()
