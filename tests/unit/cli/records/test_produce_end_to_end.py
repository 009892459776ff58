"""`kafka-fast produce` with the real producer, into the embedded broker."""

from __future__ import annotations

import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_fast.cli.main import main
from kafka_fast.errors import ErrorCode
from kafka_fast.testing.broker.serving.server import EmbeddedKafka

ROOT = Path(__file__).parents[4]
PRODUCE = 0


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as kafka:
        yield kafka


def test_a_file(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    lines = [b"%d\tvalue %d" % (i % 7, i) for i in range(50_000)]
    file = tmp_path / "lines"
    file.write_bytes(b"\n".join(lines))
    argv = ["produce", "file", "-b", kafka.bootstrap, "-f", str(file), "-K", r"\t", "-H", "h=1"]
    assert main([*argv, "-X", "compression.type=gzip"]) == 0
    records = kafka.records("file", 0)
    assert [b"\t".join((record.key or b"", record.value or b"")) for record in records] == lines
    assert list(records[0].headers) == [("h", b"1")]


def test_a_pipe(kafka: EmbeddedKafka) -> None:
    command = [sys.executable, "-m", "kafka_fast", "produce", "pipe", "-b", kafka.bootstrap]
    run = subprocess.run(command, input=b"a\n\nb\xff", capture_output=True, cwd=ROOT, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")
    assert [record.value for record in kafka.records("pipe", 0)] == [b"a", b"", b"b\xff"]


def test_ctrl_c_delivers_what_was_read(kafka: EmbeddedKafka) -> None:
    kafka.create_topic("interrupted", partitions=1)
    command = [sys.executable, "-m", "kafka_fast", "produce", "interrupted", "-b", kafka.bootstrap]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            process.stdin.write(b"a\nb\n")
            process.stdin.flush()
            while kafka.end_offset("interrupted", 0) < 2:  # read, sent and written
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == 130
            assert process.stderr.read() == b"kafka-fast: interrupted after 2 records\n"
        finally:
            process.kill()
    assert [record.value for record in kafka.records("interrupted", 0)] == [b"a", b"b"]


def test_a_warning_is_a_line_for_the_user(
    kafka: EmbeddedKafka,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(
        "kafka_fast.net.threaded_host.codecs_available", lambda: {"gzip": "package"}
    )
    warnings.simplefilter("default")
    file = tmp_path / "lines"
    file.write_bytes(b"a\n")
    argv = ["produce", "slowly", "-b", kafka.bootstrap, "-f", str(file), "-q"]
    shown = warnings.showwarning
    assert main([*argv, "-X", "compression.type=gzip"]) == 0
    assert warnings.showwarning is shown
    assert capfd.readouterr().err == (
        "kafka-fast: this build has no library for gzip: a Python package compresses, which is "
        "slow; `kafka-fast info` says how to mend it\n"
    )


def test_what_the_broker_refuses_is_counted(
    kafka: EmbeddedKafka, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    kafka.create_topic("refused", partitions=1)
    kafka.faults.error(PRODUCE, ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic="refused", count=1)
    file = tmp_path / "lines"
    file.write_bytes(b"a\nb\n")
    assert main(["produce", "refused", "-b", kafka.bootstrap, "-f", str(file)]) == 1
    assert "2 of 2 records were not delivered" in capfd.readouterr().err


def test_no_broker(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"a\n")
    argv = ["produce", "t", "-b", "127.0.0.1:1", "-f", str(file), "-X", "max.block.ms=100"]
    assert main(argv) == 1
    assert "1 of 1 records were not delivered" in capfd.readouterr().err
