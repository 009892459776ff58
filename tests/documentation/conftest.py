"""The brokers that the pages are followed on: both set as a newcomer has them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.conftest import started
from tests.documentation.pages import ROOT
from tests.waiting import eventually


class CommandBroker(NamedTuple):
    """A `kafka-fast broker` that runs.

    Attributes:
        port: where it listens.
        said: what it has printed.
    """

    port: int
    said: str


@pytest.fixture(scope="session")
def stock_kafka(request: pytest.FixtureRequest) -> Iterator[RealKafka]:
    """Real Kafka as it is delivered, with no property that only a test would set."""
    with started(1, request.config.getoption("--kafka-version"), stock=True) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def command_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandBroker]:
    """What the pages tell newcomers to start."""
    output = tmp_path_factory.mktemp("broker") / "said"
    with output.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "kafka_fast", "broker", "--port", "0"],
            cwd=ROOT,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    try:
        text = eventually(lambda: first_line(output), "the broker's address")
        yield CommandBroker(int(text.rpartition(":")[2]), text)
    finally:
        process.terminate()
        assert process.wait(30) == 0


def first_line(output: Path) -> str:
    line, end, _ = output.read_text().partition("\n")
    return line + end if end else ""
