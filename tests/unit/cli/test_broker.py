"""`kafka-fast broker`: a process that speaks Kafka until it is told to end."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_fast.cli.main import main

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_runs_until_a_signal(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "kafka_fast", "broker", "--port", "0", "--brokers", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            addresses = line.rsplit(" ", 1)[1].strip().split(",")
            assert len(addresses) == 2
            for address in addresses:
                host, port = address.split(":")
                socket.create_connection((host, int(port)), timeout=10).close()
            process.send_signal(number)
            assert process.wait(timeout=20) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("wrong", [("--port", "65536"), ("--brokers", "0"), ("--partitions", "x")])
def test_wrong_arguments(wrong: tuple[str, str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["broker", *wrong])
    assert caught.value.code == 2


def test_refuses_to_listen_to_the_world(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", "--host", "0.0.0.0", "--port", "0"]) == 2
    assert "insecure" in capsys.readouterr().err


def test_a_port_in_use_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Regression: nothing said which port, nor what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["broker", "--port", str(port)]) == 1
    assert capsys.readouterr().err == (
        f"kafka-fast: port {port} of 127.0.0.1 is in use: choose another one with --port, or 0 for "
        "a free one\n"
    )


def test_an_address_of_another_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", "--host", "192.0.2.1", "--insecure-bind", "--port", "9"]) == 1
    assert capsys.readouterr().err.startswith("kafka-fast: 192.0.2.1:9: ")
