"""A web service under uvicorn and uvloop on real Kafka: reloaded under load, killed, ended.

    visitors ── POST ──► app ── send_and_wait ──► topic "in" ──► the app's consumer ──► topic "out"

Each copy in "out" has the process that made it as its key.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.producing import new_topic, read_log
from tests.waiting import eventually

PATIENCE = 60.0
PARTITIONS = 3

APP = """
import asyncio
import os
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException

from kafka_fast import KafkaError, WakeupError
from kafka_fast.aio import Consumer, Producer

BOOTSTRAP, IN, OUT = os.environ["BOOTSTRAP"], os.environ["TOPIC_IN"], os.environ["TOPIC_OUT"]
GROUP = {
    "group.id": IN,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "session.timeout.ms": 6000,
}


async def copy(consumer, producer):
    consumer.subscribe([IN])
    try:
        async for records in consumer.batches(50):
            for record in records:
                await producer.send(OUT, record.value, key=str(os.getpid()))
            await producer.flush()
            await consumer.commit(records)
    except WakeupError:
        pass


@asynccontextmanager
async def lifespan(app):
    async with (
        Producer(bootstrap_servers=BOOTSTRAP) as app.state.producer,
        Consumer(GROUP, bootstrap_servers=BOOTSTRAP) as consumer,
    ):
        copying = asyncio.create_task(copy(consumer, app.state.producer))
        yield
        consumer.wakeup()
        await copying


app = FastAPI(lifespan=lifespan)


@app.post("/{value}")
async def accept(value: str):
    try:
        await app.state.producer.send_and_wait(IN, value)
    except KafkaError as error:
        raise HTTPException(503, str(error)) from error
    return {"pid": os.getpid(), "loop": type(asyncio.get_running_loop()).__module__}
"""


class Server:
    """uvicorn in a process group of its own, and what it prints."""

    def __init__(self, folder: Path, environment: dict[str, str], *options: str) -> None:
        command = [sys.executable, "-m", "uvicorn", "app:app", "--loop", "uvloop", "--port", "0"]
        self.process = subprocess.Popen(
            [*command, *options],
            cwd=folder,
            env={**os.environ, **environment, "PYTHONPATH": str(Path(__file__).parents[3])},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.wait_for("Application startup complete", 1)
        self.wait_for("Uvicorn running on", 1)
        (address,) = set(re.findall(r"http://127\.0\.0\.1:\d+", self.output))
        self.address = str(address)

    @property
    def output(self) -> str:
        return "".join(self.lines)

    def wait_for(self, text: str, times: int) -> None:
        """Wait until a text was printed so often."""
        eventually(lambda: self.output.count(text) >= times, text, timeout=PATIENCE)

    def end(self, number: signal.Signals) -> int:
        """Send a signal to all its processes; return the exit status of the first."""
        os.killpg(self.process.pid, number)
        status = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return status

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout:
            self.lines.extend(self.process.stdout)


@contextmanager
def ended(server: Server) -> Iterator[Server]:
    """Kill a server that a failing test leaves behind."""
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.end(signal.SIGKILL)


class Visitors:
    """Post numbers one after the other, and keep those that were accepted."""

    def __init__(self) -> None:
        self.accepted: list[bytes] = []
        self.pids: set[int] = set()
        self.unknown: set[bytes] = set()
        """Numbers without an answer: the server went away."""
        self._next = 0
        self._client = httpx.Client(timeout=PATIENCE, headers={"Connection": "close"})

    def visit(self, server: Server, count: int) -> None:
        """Post some numbers; each must be accepted, or the server was on its way out."""
        for _ in range(count):
            value = b"%d" % self._next
            self._next += 1
            try:
                answer = self._client.post(f"{server.address}/{value.decode()}")
            except httpx.TransportError:
                self.unknown.add(value)
                continue
            assert answer.status_code == 200, answer.text
            assert answer.json()["loop"] == "uvloop"
            self.pids.add(answer.json()["pid"])
            self.accepted.append(value)


def read_all(kafka: RealKafka, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    return [
        (record.key, record.value)
        for partition in range(PARTITIONS)
        for record in read_log(kafka.bootstrap, topic, partition)
    ]


@pytest.mark.timeout(300)
def test_a_service_that_is_reloaded_killed_and_ended(real_kafka: RealKafka, tmp_path: Path) -> None:
    topic_in = new_topic(real_kafka, partitions=PARTITIONS)
    topic_out = new_topic(real_kafka, partitions=PARTITIONS)
    (tmp_path / "app.py").write_text(APP)
    environment = {
        "BOOTSTRAP": real_kafka.bootstrap,
        "TOPIC_IN": topic_in,
        "TOPIC_OUT": topic_out,
    }
    visitors = Visitors()

    def copied() -> set[bytes | None]:
        return {value for _, value in read_all(real_kafka, topic_out)}

    def all_are_copied() -> bool:
        return copied() >= set(visitors.accepted)

    with ended(Server(tmp_path, environment, "--reload")) as server:
        visitors.visit(server, 30)
        eventually(all_are_copied, "copies", timeout=PATIENCE)
        visiting = threading.Thread(target=visitors.visit, args=(server, 300))
        visiting.start()
        (tmp_path / "app.py").write_text(f"{APP}\n# changed\n")
        server.wait_for("Application startup complete", 2)
        visiting.join(PATIENCE)
        visitors.visit(server, 30)
        eventually(all_are_copied, "copies", timeout=PATIENCE)
        assert len(visitors.pids) == 2, server.output
        # A reload ends in order: what was handled was committed.
        values = Counter(value for _, value in read_all(real_kafka, topic_out))
        assert set(values.values()) == {1}

        visiting = threading.Thread(target=visitors.visit, args=(server, 200))
        visiting.start()
        before = len(visitors.accepted)
        eventually(lambda: len(visitors.accepted) > before + 20, "visits", timeout=PATIENCE)
        assert server.end(signal.SIGKILL) == -signal.SIGKILL
        visiting.join(PATIENCE)
        assert visitors.unknown

    with ended(Server(tmp_path, environment)) as server:
        visitors.visit(server, 30)
        eventually(all_are_copied, "copies", timeout=PATIENCE)
        assert server.end(signal.SIGTERM) in (0, -signal.SIGTERM)  # uvicorn ends by it, lately
        assert "Application shutdown complete" in server.output
        assert "Traceback" not in server.output
        assert "Warning" not in server.output

    log = [value for _, value in read_all(real_kafka, topic_in)]
    assert len(set(log)) == len(log)
    assert set(visitors.accepted) <= set(log) <= {*visitors.accepted, *visitors.unknown}
    copies = read_all(real_kafka, topic_out)
    assert {value for _, value in copies} == set(log)
    # Only what the killed process had not committed is there again, from the one after it.
    again = [value for value, times in Counter(value for _, value in copies).items() if times > 1]
    for value in again:
        assert len({key for key, of in copies if of == value}) == 2, value
