"""`kafka-fast consume` and `lag` as processes, on the embedded broker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_fast import Consumer, Producer, TopicPartition
from kafka_fast.cli.main import main
from kafka_fast.errors import UnknownTopicOrPartition
from kafka_fast.testing.broker.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import METADATA

ROOT = Path(__file__).parents[3]
COUNT = 20_000
LINES = [b"value %d" % number for number in range(COUNT)]


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as kafka:
        kafka.create_topic("lines", 1)
        with Producer(bootstrap_servers=kafka.bootstrap) as producer:
            producer.send_many("lines", LINES).result(30)
        yield kafka


def command(kafka: EmbeddedKafka, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "kafka_fast", *arguments, "-b", kafka.bootstrap]


def output(kafka: EmbeddedKafka, *arguments: str) -> bytes:
    run = subprocess.run(
        command(kafka, "consume", *arguments), capture_output=True, cwd=ROOT, timeout=60
    )
    assert (run.returncode, run.stderr) == (0, b"")
    return run.stdout


def test_what_is_there_now(kafka: EmbeddedKafka):
    assert output(kafka, "lines", "--until", "end") == b"\n".join(LINES) + b"\n"


def test_bounds_and_a_maximum(kafka: EmbeddedKafka):
    some = output(kafka, "lines", "--from", "10", "--until", "20", "-F", "json")
    assert [json.loads(line)["offset"] for line in some.splitlines()] == list(range(10, 20))
    assert output(kafka, "lines", "--from", "7", "-n", "3") == b"value 7\nvalue 8\nvalue 9\n"
    assert output(kafka, "lines", "--until", "end", "--max", "2", "-F", "%o ") == b"0 1 "


def test_a_group_commits_what_was_written_and_lag_tells(kafka: EmbeddedKafka, capsys):
    group = ["lines", "--group", "readers", "--from", "beginning", "-n"]
    assert output(kafka, *group, "12000") == b"\n".join(LINES[:12_000]) + b"\n"
    assert output(kafka, *group, "2") == b"value 12000\nvalue 12001\n"
    assert main(["lag", "readers", "-b", kafka.bootstrap]) == 0
    head, row, total = capsys.readouterr().out.splitlines()
    assert head.split() == ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG"]
    assert row.split() == ["lines", "0", "12002", "20000", "7998"]
    assert total.split() == ["7998"]
    assert main(["lag", "nobody", "-b", kafka.bootstrap]) == 1
    assert "committed nothing" in capsys.readouterr().err


def test_the_lag_in_a_topic_that_is_gone(kafka: EmbeddedKafka, capsys):
    """Brokers forget its offsets, but not all of them at once."""
    kafka.create_topic("gone", 3)
    with Consumer(bootstrap_servers=kafka.bootstrap, group_id="stale") as consumer:
        consumer.commit(
            {
                TopicPartition("gone", 0): 4,
                TopicPartition("gone", 2): 5,
                TopicPartition("lines", 0): COUNT - 1,
            }
        )
    kafka.faults.error(METADATA, UnknownTopicOrPartition, topic="gone")
    try:
        status = main(["lag", "stale", "-b", kafka.bootstrap, "-X", "default.api.timeout.ms=2000"])
    finally:
        kafka.heal()
    shown = capsys.readouterr()
    assert status == 0
    assert shown.err == "kafka-fast: there is no topic 'gone' any more, or it may not be seen\n"
    assert [line.split() for line in shown.out.splitlines()[1:]] == [
        ["gone", "0", "4", "-", "-"],
        ["gone", "2", "5", "-", "-"],
        ["lines", "0", str(COUNT - 1), str(COUNT), "1"],
        ["1"],
    ]


def test_ctrl_c_ends_it_between_two_records(kafka: EmbeddedKafka):
    arguments = command(kafka, "consume", "lines", "--from", "beginning", "--group", "stopped")
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as it:
        assert it.stdout is not None
        read = b"".join(it.stdout.readline() for _ in range(COUNT))
        it.send_signal(signal.SIGINT)
        rest, errors = it.communicate(timeout=20)
    assert read.splitlines() == LINES
    assert (it.returncode, rest, errors) == (130, b"", b"")
    with Consumer(bootstrap_servers=kafka.bootstrap, group_id="stopped") as consumer:
        partition = TopicPartition("lines", 0)
        committed = consumer.committed([partition])[partition]
    assert committed is not None
    assert committed.offset == COUNT


def test_a_reader_that_leaves_is_no_error(kafka: EmbeddedKafka):
    arguments = command(kafka, "consume", "lines", "--from", "beginning")
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as it:
        assert it.stdout is not None
        assert it.stderr is not None
        assert it.stdout.readline() == b"value 0\n"
        it.stdout.close()
        assert it.wait(timeout=20) == 0
        assert it.stderr.read() == b""


@pytest.mark.parametrize(
    "arguments",
    [
        ["lines", "--group", "g", "--until", "end"],
        ["lines", "--group", "g", "--from", "12"],
        ["lines", "--from", "@5", "--until", "7"],
        ["lines", "--from", "end", "--until", "end"],
        ["lines", "-F", "%x"],
        ["lines", "-X", "no.such=1"],
    ],
)
def test_misuse(kafka: EmbeddedKafka, arguments: list[str], capsys):
    assert main(["consume", *arguments, "-b", kafka.bootstrap]) == 2
    assert capsys.readouterr().err.startswith("kafka-fast: ")
