"""Producers made in children of `multiprocessing`, which run no atexit function if forked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.processes import ROOT
from tests.waiting import TIMEOUT

RECORDS = 2_000

SCRIPT = f"""
import concurrent.futures, multiprocessing, sys
from kafka_fast import Producer

kept = []

def send(bootstrap, keep):
    producer = Producer(bootstrap_servers=bootstrap, linger_ms=1000)
    for number in range({RECORDS}):
        producer.send_nowait("t", b"%d" % number)
    if keep:
        kept.append(producer)

def use_process(context, *args):
    child = context.Process(target=send, args=args)
    child.start()
    child.join()
    assert child.exitcode == 0, child.exitcode

def use_pool(context, *args):
    pool = context.Pool(1)
    pool.apply(send, args)
    pool.close()
    pool.join()

def use_executor(context, *args):
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
        executor.submit(send, *args).result()

if __name__ == "__main__":
    bootstrap, method = sys.argv[1:]
    context = multiprocessing.get_context(method)
    for use in use_process, use_pool, use_executor:
        use(context, bootstrap, True)
    use_process(context, bootstrap, False)
"""


@pytest.fixture(name="kafka")
def embedded_kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=1) as kafka:
        kafka.create_topic("t", 1)
        yield kafka


FORK = pytest.mark.not_under("thread", "a forked child must not start threads there")


@pytest.mark.parametrize("method", [pytest.param("fork", marks=FORK), "forkserver", "spawn"])
def test_children_deliver_what_they_accepted(
    kafka: EmbeddedKafka, tmp_path: Path, method: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-X", "dev", script, kafka.bootstrap, method],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert kafka.end_offset("t", 0) == 4 * RECORDS, done.stderr
    assert "not delivered" not in done.stderr
