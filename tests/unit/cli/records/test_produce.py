"""`kafka-fast produce` with a producer that only takes notes."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_fast.cli.main import main
from kafka_fast.cli.records import produce
from kafka_fast.errors import (
    ConfigError,
    DeliveryError,
    KafkaError,
    KafkaTimeoutError,
    Outcome,
    UsageError,
)


class FakeProducer:
    """Remembers what it was given; fails as it is told."""

    def __init__(self) -> None:
        self.config: dict[str, object] = {}
        self.sent: list[tuple[bytes | None, bytes | None]] = []
        self.calls: list[dict[str, Any]] = []
        self.flushes: list[float | None] = []
        self.closed: list[float | None] = []
        self.on_send: Callable[[], None] = lambda: None
        self.on_flush: Callable[[], int] = lambda: 0

    def __call__(self, config: dict[str, object]) -> FakeProducer:
        self.config = config
        return self

    def send_many(
        self, topic: str, values: list[bytes], *, keys: list[bytes] | None = None, **more: Any
    ) -> None:
        self.calls.append({"topic": topic, **more})
        self.on_send()
        self.sent += zip(keys or [None] * len(values), values, strict=True)

    def flush(self, timeout: float | None = None) -> int:
        self.flushes.append(timeout)
        return self.on_flush()

    def close(self, timeout: float | None = None) -> None:
        self.closed.append(timeout)


def _arguments(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    produce.add_parser(parser.add_subparsers())
    return parser.parse_args(["produce", *argv])


@pytest.fixture
def producer() -> FakeProducer:
    return FakeProducer()


@pytest.fixture
def run(tmp_path: Path, producer: FakeProducer) -> Callable[..., int]:
    """Run the command over some bytes in a file."""

    def _run(data: bytes, *argv: str) -> int:
        file = tmp_path / "lines"
        file.write_bytes(data)
        return produce.run(_arguments("orders", "-f", str(file), *argv), producer)

    return _run


def test_every_line_is_a_record(
    run: Callable[..., int], producer: FakeProducer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(b"a\n\n\xff\x00\r\nz") == 0
    assert producer.sent == [(None, b"a"), (None, b""), (None, b"\xff\x00\r"), (None, b"z")]
    assert producer.calls[0] == {"topic": "orders", "partitions": None, "headers": None}
    assert producer.config == {"bootstrap.servers": "localhost:9092"}
    assert (producer.flushes, producer.closed) == ([None], [None])
    assert capsys.readouterr() == ("", "")


def test_many_blocks(run: Callable[..., int], producer: FakeProducer) -> None:
    data = b"".join(b"%d\n" % i for i in range(400_000))
    assert run(data) == 0
    assert [value for _, value in producer.sent] == data.split(b"\n")[:-1]


def test_keys_headers_partition(run: Callable[..., int], producer: FakeProducer) -> None:
    assert run(b"k\tv\n\tw\n", "-K", r"\t", "-H", "a=1", "-H", "b=x=y", "-p", "3") == 0
    assert producer.sent == [(b"k", b"v"), (b"", b"w")]
    assert producer.calls[0]["headers"] == [("a", b"1"), ("b", b"x=y")]
    assert producer.calls[0]["partitions"] == 3


def test_nulls(run: Callable[..., int], producer: FakeProducer) -> None:
    data = b"k\tNULL\nNULL\tv\nk\tNULL2\nk\t\n"
    assert run(data, "-K", r"\t", "--null", "NULL") == 0
    assert producer.sent == [(b"k", None), (None, b"v"), (b"k", b"NULL2"), (b"k", b"")]
    producer.sent.clear()
    assert run(b"a\n\nb\n", "--null", "") == 0
    assert producer.sent == [(None, b"a"), (None, None), (None, b"b")]


@pytest.mark.parametrize(
    ("text", "separator"),
    [(":", b":"), (r"\t", b"\t"), (r"\0", b"\0"), (r"\x1f", b"\x1f"), (r"\\", b"\\"),
     (r"\\t", rb"\t"), ("→", "→".encode())],
)  # fmt: skip
def test_separators(text: str, separator: bytes) -> None:
    assert _arguments("t", "-K", text).key_separator == separator


@pytest.mark.parametrize("wrong", [("-K", ""), ("-H", "novalue"), ("-X", "=5"), ("-p", "x")])
def test_wrong_arguments(wrong: tuple[str, str]) -> None:
    with pytest.raises(SystemExit) as caught:
        _arguments("t", *wrong)
    assert caught.value.code == 2


def test_configuration(run: Callable[..., int], producer: FakeProducer) -> None:
    assert run(b"a", "-b", "h:1", "-X", "linger.ms=20", "-X", "acks=1") == 0
    assert producer.config == {"bootstrap.servers": "h:1", "linger.ms": "20", "acks": "1"}
    assert run(b"a", "-X", "metadata.broker.list=h:2") == 0
    assert producer.config == {"metadata.broker.list": "h:2"}


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["-X", "acks=1", "-X", "acks=0"], "acks is given twice"),
        (["-b", "a:1", "-X", "bootstrap.servers=b:1"], "given twice"),
        (["-b", "a:1", "-X", "metadata.broker.list=b:1"], "given twice"),
        (["-X", "lingr.ms=1"], "did you mean 'linger.ms'"),
        (["-b", "a:x"], "'a:x' is not host:port"),
        (["-X", "transactional.id=t"], "transactional.id: this command sends without"),
    ],
)
def test_wrong_configuration_opens_nothing(
    run: Callable[..., int], producer: FakeProducer, argv: list[str], text: str
) -> None:
    with pytest.raises(ConfigError, match=text.replace("(", r"\(")):
        run(b"a", *argv)
    assert producer.config == {}


def test_failed_deliveries_are_counted(
    run: Callable[..., int], producer: FakeProducer, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        first = KafkaError("broker said no")
        raise DeliveryError("2 records", outcome=Outcome.REJECTED, count=2, first=first)

    producer.on_flush = fail
    assert run(b"a\nb\nc\n") == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", "kafka-fast: 2 of 3 records were not delivered: broker said no\n")
    assert producer.closed == [None]


def test_a_send_that_fails_ends_the_run(
    run: Callable[..., int], producer: FakeProducer, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise KafkaTimeoutError("no metadata of orders for 60 s")

    producer.on_send = fail
    assert run(b"a\nb\n") == 1
    assert "2 of 2 records were not delivered: no metadata of orders" in capsys.readouterr().err
    assert producer.flushes == [None]


def test_a_line_without_key_ends_the_run_and_delivers_what_was_before(
    run: Callable[..., int],
    producer: FakeProducer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafka_fast.cli.records.lines.BLOCK_SIZE", 4)
    assert run(b"k:v\nkv\n", "-K", ":") == 1
    assert producer.sent == [(b"k", b"v")]
    assert producer.flushes == [None]
    assert capsys.readouterr().err == (
        "kafka-fast: line 2: no key separator b':' in it (records delivered before it: 1)\n"
    )


def test_ctrl_c_flushes_what_was_read(
    run: Callable[..., int], producer: FakeProducer, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    producer.on_send = interrupt
    producer.on_flush = lambda: 2
    assert run(b"a\nb\nc\n") == 130
    assert producer.flushes == [produce.INTERRUPT_FLUSH]
    assert producer.closed == [0.0]
    err = capsys.readouterr().err
    assert "3 of 3 records were not delivered" in err
    assert "interrupted after 3 records" in err


def test_ctrl_c_while_waiting_counts_what_is_pending(
    run: Callable[..., int], producer: FakeProducer, capsys: pytest.CaptureFixture[str]
) -> None:
    answers: list[BaseException | int] = [KeyboardInterrupt(), 2]

    def flush() -> int:
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    producer.on_flush = flush
    assert run(b"a\nb\nc\n") == 130
    assert "2 of 3 records were not delivered" in capsys.readouterr().err


def test_ctrl_c_twice_does_not_wait(run: Callable[..., int], producer: FakeProducer) -> None:
    answers: list[BaseException | int] = [KeyboardInterrupt(), KeyboardInterrupt(), 1]

    def flush() -> int:
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    producer.on_flush = flush
    assert run(b"a\n") == 130
    assert producer.flushes == [None, produce.INTERRUPT_FLUSH, 0.0]


def test_standard_input(monkeypatch: pytest.MonkeyPatch, producer: FakeProducer) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"a\nb")
    os.close(write_end)
    with os.fdopen(read_end) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert produce.run(_arguments("orders"), producer) == 0
        assert not stdin.closed
    assert producer.sent == [(None, b"a"), (None, b"b")]


def test_no_standard_input(monkeypatch: pytest.MonkeyPatch, producer: FakeProducer) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="no standard input"):
        produce.run(_arguments("orders"), producer)


def test_progress_on_a_terminal(
    run: Callable[..., int], monkeypatch: pytest.MonkeyPatch, producer: FakeProducer
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert run(b"a\nb\n") == 0
    assert "2 records, 0.0 MB (100%)" in terminal.getvalue()


def test_a_missing_file_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["produce", "orders", "-f", "/does/not/exist"]) == 1
    assert "/does/not/exist" in capsys.readouterr().err
