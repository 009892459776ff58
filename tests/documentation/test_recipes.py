"""The cookbook's recipes when the work fails: the program ends, or says so, and loses no record."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kafka_fast import Producer
from kafka_fast.errors import TopicAuthorizationFailed
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import PRODUCE
from tests.documentation.pages import ROOT, blocks
from tests.waiting import TIMEOUT, eventually, killed

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as one:
        yield one


def save(page: str, kafka: EmbeddedKafka, folder: Path) -> None:
    """Save the files of a recipe, for this broker."""
    for block in blocks(page):
        if block.title:
            text = block.text.replace("localhost:9092", kafka.bootstrap)
            (folder / block.title).write_text(text)


def start(folder: Path, *command: str) -> subprocess.Popen[str]:
    """Start a program in a folder; what it says goes to the file `said`."""
    with (folder / "said").open("w") as said:
        return subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            stdout=said,
            stderr=subprocess.STDOUT,
            text=True,
            env=ENVIRONMENT,
        )


def said(folder: Path) -> str:
    return (folder / "said").read_text()


def committed(kafka: EmbeddedKafka, group: str, topic: str) -> int:
    offsets = kafka.on_cluster(lambda cluster: dict(cluster.committed(group)))
    return offsets.get((topic, 0), 0)


def produce(kafka: EmbeddedKafka, topic: str, *values: bytes) -> None:
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        for value in values:
            producer.send_nowait(topic, value)


def test_a_fastapi_application_ends_if_its_task_fails(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """Regression: it went on and counted nothing, and its end committed the record that failed."""
    save("docs/cookbook/fastapi.md", kafka, tmp_path)
    process = start(tmp_path, "-m", "uvicorn", "app:app", "--port", "0")
    with killed(process):
        eventually(lambda: "Uvicorn running" in said(tmp_path), "the application")
        produce(kafka, "visits", b"home", b"prices", b"\xff", b"home")
        status = process.wait(TIMEOUT)
    text = said(tmp_path)
    assert status not in (0, -signal.SIGKILL), text
    assert "counting has failed" in text
    assert "UnicodeDecodeError" in text
    assert committed(kafka, "visit-counter", "visits") == 2, text


def test_a_fastapi_application_commits_what_it_has_counted(
    kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    save("docs/cookbook/fastapi.md", kafka, tmp_path)
    process = start(tmp_path, "-m", "uvicorn", "app:app", "--port", "0")
    with killed(process):
        running = eventually(lambda: _address(said(tmp_path)), "the application")
        produce(kafka, "visits", b"home", b"prices")
        eventually(lambda: sum(httpx.get(f"{running}/visits").json().values()) == 2, "the visits")
        process.send_signal(signal.SIGTERM)
        process.wait(TIMEOUT)
    assert "Traceback" not in said(tmp_path), said(tmp_path)
    assert committed(kafka, "visit-counter", "visits") == 2


def _address(text: str) -> str:
    _, banner, rest = text.partition("Uvicorn running on ")
    return rest.split()[0] if banner and rest else ""


def test_a_worker_ends_if_a_dead_letter_cannot_be_written(
    kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    save("docs/cookbook/worker.md", kafka, tmp_path)
    kafka.faults.error(PRODUCE, TopicAuthorizationFailed, topic="jobs.dead")
    produce(kafka, "jobs", b'{"do": "mail", "to": "Ada"}', b"this is no JSON", b'{"do": "mail"}')
    process = start(tmp_path, "worker.py")
    with killed(process):
        status = process.wait(TIMEOUT)
    text = said(tmp_path)
    assert status == 1, text
    assert "mail to Ada" in text
    assert "DeliveryError" in text
    assert committed(kafka, "workers", "jobs") == 1


@pytest.mark.slow  # Celery takes its time to start and to end
def test_a_celery_worker_says_what_its_children_could_not_deliver(
    kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    save("docs/cookbook/celery.md", kafka, tmp_path)
    for name in ("queue", "results"):
        (tmp_path / name).mkdir()
    kafka.create_topic("shipments", 1)
    kafka.create_topic("bills", 1)
    kafka.faults.error(PRODUCE, TopicAuthorizationFailed, topic="shipments")
    celery = ("-m", "celery", "--app", "tasks")
    process = start(tmp_path, *celery, "worker", "--concurrency", "2", "--loglevel", "ERROR")
    with killed(process):
        subprocess.run([sys.executable, "order.py"], cwd=tmp_path, env=ENVIRONMENT, check=True)
        process.send_signal(signal.SIGTERM)
        process.wait(TIMEOUT)
    text = said(tmp_path)
    assert "close_producer" in text, text
    assert "DeliveryError" in text, text
