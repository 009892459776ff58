"""`kafka-fast consume` and `lag` as processes, on the embedded broker."""

from __future__ import annotations

import array
import fcntl
import json
import shlex
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from kafka_fast import Consumer, Producer, TopicPartition
from kafka_fast.cli.main import main
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.waiting import eventually, killed

ROOT = Path(__file__).parents[4]
COUNT = 20_000
FULL = 60_000
"""Bytes in a pipe of 64 KiB that has no room for the rest of a block."""
LINES = [b"value %d" % number for number in range(COUNT)]
SIZES = (5, 10, 0)
"""Records of each partition of `split`."""


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as kafka:
        kafka.create_topic("lines", 1)
        with Producer(bootstrap_servers=kafka.bootstrap) as producer:
            producer.send_many("lines", LINES).result(30)
        kafka.create_topic("split", len(SIZES))
        with Producer(bootstrap_servers=kafka.bootstrap) as producer:
            for partition, size in enumerate(SIZES):
                producer.send_many("split", LINES[:size], partitions=partition).result(30)
        yield kafka


def command(kafka: EmbeddedKafka, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "kafka_fast", *arguments, "-b", kafka.bootstrap]


def output(kafka: EmbeddedKafka, *arguments: str) -> bytes:
    run = subprocess.run(
        command(kafka, "consume", *arguments), capture_output=True, cwd=ROOT, timeout=60
    )
    assert (run.returncode, run.stderr) == (0, b"")
    return run.stdout


@pytest.mark.parametrize("more", [["--until", "now"], ["-n", str(COUNT)]])
def test_a_time_before_kafka(kafka: EmbeddedKafka, more: list[str]):
    assert output(kafka, "lines", "--from", "1970-01-02", *more) == b"\n".join(LINES) + b"\n"


@pytest.mark.parametrize(
    ("arguments", "reset"),
    [
        ([], None),
        (["--from", "end"], None),
        (["--from", "beginning"], "earliest"),
        (["--from", "7"], "earliest"),
        (["--from", "-1h"], "earliest"),
        (["--from", "7", "-X", "auto.offset.reset=none"], "none"),
    ],
)
def test_where_it_goes_on_if_records_are_deleted_under_it(
    arguments: list[str], reset: str | None, monkeypatch: pytest.MonkeyPatch
):
    """Regression: it jumped to the end, over all that was there."""

    class AskedError(Exception):
        """With the configuration."""

    def ask(config: dict[str, object]) -> None:
        raise AskedError(config)

    monkeypatch.setattr("kafka_fast.cli.records.consume.Consumer", ask)
    with pytest.raises(AskedError) as caught:
        main(["consume", "lines", *arguments])
    assert caught.value.args[0].get("auto.offset.reset") == reset


def test_seconds_are_suspected(kafka: EmbeddedKafka, capsys):
    for more in ([], ["--until", "end"]):
        arguments = ["consume", "lines", "--from", "@1700000000", *more]
        assert main([*arguments, "-b", kafka.bootstrap]) == 2
        assert "seconds instead of milliseconds?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("1700000000", "; as a time it is @1700000000000, which is 2023-11-14T22:13:20Z"),
        ("1700000000000", "; as a time it is @1700000000000, which is 2023-11-14T22:13:20Z"),
        ("1700000000000000", "; as a time it is @1700000000000, which is 2023-11-14T22:13:20Z"),
        ("99999", ""),
    ],
)
def test_a_time_without_its_sign(kafka: EmbeddedKafka, given: str, meant: str, capsys):
    """Regression: with --until it was an empty range."""
    for more in ([], ["--until", "end"]):
        arguments = ["consume", "lines", "--from", given, *more]
        assert main([*arguments, "-b", kafka.bootstrap]) == 1
        assert capsys.readouterr().err.endswith(f"{meant}\n" if meant else ")\n")
    arguments = ["lines", "--from", str(COUNT - 1), "--until", given]
    run = subprocess.run(
        command(kafka, "consume", *arguments), capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert (run.returncode, run.stdout) == (0, f"value {COUNT - 1}\n")
    said = f"kafka-fast: --until {given} is an offset, beyond the log{meant}\n"
    assert run.stderr == (said if meant else "")


@pytest.mark.parametrize("more", [[], ["--until", "end"], ["--group", "g"]])
def test_a_pattern_among_the_topics(kafka: EmbeddedKafka, more: list[str], capsys):
    assert main(["consume", "^li.*", *more, "-b", kafka.bootstrap]) == 2
    assert "'^li.*' is no name of a topic: kafka-fast topics lists them" in capsys.readouterr().err


def test_what_is_there_now(kafka: EmbeddedKafka):
    assert output(kafka, "lines", "--until", "end") == b"\n".join(LINES) + b"\n"


def test_bounds_and_a_maximum(kafka: EmbeddedKafka):
    some = output(kafka, "lines", "--from", "10", "--until", "20", "-F", "json")
    assert [json.loads(line)["offset"] for line in some.splitlines()] == list(range(10, 20))
    assert output(kafka, "lines", "--from", "7", "-n", "3") == b"value 7\nvalue 8\nvalue 9\n"
    assert output(kafka, "lines", "--until", "end", "--max", "2", "-F", "%o ") == b"0 1 "


@pytest.mark.parametrize("start", ["beginning", "0", "@0"])
def test_only_some_partitions(kafka: EmbeddedKafka, start: str):
    """Each once, whether the command ends there or reads on."""
    chosen = ["split", "--from", start, "-p", "1", "-F", "%p:%o "]
    assert output(kafka, *chosen, "-n", "10") == b"".join(b"1:%d " % at for at in range(10))
    both = output(kafka, *chosen, "--partition", "2", "-p", "0", "-p", "1", "-n", "15").split()
    assert sorted(both) == sorted(
        [b"0:%d" % at for at in range(5)] + [b"1:%d" % at for at in range(10)]
    )


def test_a_range_of_some_partitions(kafka: EmbeddedKafka):
    assert output(kafka, "split", "--until", "end", "-p", "0") == b"\n".join(LINES[:5]) + b"\n"
    assert output(kafka, "split", "--until", "end", "-p", "2", "--partition", "2") == b""
    some = output(kafka, "split", "--from", "3", "--until", "7", "-p1", "-p0", "-F", "%p:%o ")
    assert sorted(some.split()) == [b"0:3", b"0:4", b"1:3", b"1:4", b"1:5", b"1:6"]


def test_the_end_of_some_partitions(kafka: EmbeddedKafka):
    """What came to others is not read, nor what was there before."""
    kafka.create_topic("late", 3)
    arguments = command(kafka, "consume", "late", "-p", "2", "-F", "%p:%v\n", "-n", "1")
    with (
        subprocess.Popen(arguments, stdout=subprocess.PIPE, cwd=ROOT) as process,
        Producer(bootstrap_servers=kafka.bootstrap) as producer,
    ):

        def has_come() -> bool:
            for partition in (0, 1, 2):
                producer.send("late", b"late", partition=partition).result(30)
            return process.poll() is not None

        try:
            eventually(has_come, "a record of partition 2")
        finally:
            process.kill()
        assert process.stdout is not None
        assert process.stdout.read() == b"2:late\n"
    assert process.returncode == 0


@pytest.mark.parametrize("more", [[], ["--from", "0"], ["--until", "end"]])
def test_a_partition_that_does_not_exist(kafka: EmbeddedKafka, more: list[str], capsys):
    """Regression: it was waited for in silence."""
    chosen = ["consume", "split", "-p", "0", "-p", "3", *more]
    assert main([*chosen, "-b", kafka.bootstrap]) == 1
    assert "there is no partition split-3 (its topic has 3)" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["-1", "one", "2147483648", "\N{SUPERSCRIPT TWO}"])
def test_a_partition_is_a_number(kafka: EmbeddedKafka, number: str, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["consume", "lines", "-p", number, "-b", kafka.bootstrap])
    assert caught.value.code == 2
    assert f"{number!r} is no number of a partition" in capsys.readouterr().err


def test_a_group_commits_what_was_written_and_lag_tells(kafka: EmbeddedKafka, capsys):
    group = ["lines", "--group", "readers", "--from", "beginning", "-n"]
    assert output(kafka, *group, "12000") == b"\n".join(LINES[:12_000]) + b"\n"
    assert output(kafka, *group, "2") == b"value 12000\nvalue 12001\n"
    assert main(["lag", "readers", "-b", kafka.bootstrap]) == 0
    head, row, total = capsys.readouterr().out.splitlines()
    assert head.split() == ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG"]
    assert row.split() == ["lines", "0", "12002", "20000", "7998"]
    assert total.split() == ["TOTAL", "7998"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_between_two_records(kafka: EmbeddedKafka, number: int, status: int):
    group = f"stopped-{number}"
    arguments = command(kafka, "consume", "lines", "--from", "beginning", "--group", group)
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        read = b"".join(process.stdout.readline() for _ in range(COUNT))
        process.send_signal(number)
        rest, errors = process.communicate(timeout=20)
    assert read.splitlines() == LINES
    assert (process.returncode, rest, errors) == (status, b"", b"")
    with Consumer(bootstrap_servers=kafka.bootstrap, group_id=group) as consumer:
        partition = TopicPartition("lines", 0)
        committed = consumer.committed([partition])[partition]
    assert committed is not None
    assert committed.offset == COUNT


def test_a_reader_that_leaves_is_no_error(kafka: EmbeddedKafka):
    arguments = command(kafka, "consume", "lines", "--from", "beginning")
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"value 0\n"
        process.stdout.close()
        assert process.wait(timeout=20) == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    "arguments",
    [
        ["lines", "--group", "g", "--until", "end"],
        ["lines", "--group", "g", "--from", "12"],
        ["lines", "--from", "@5", "--until", "7"],
        ["lines", "--from", "end", "--until", "end"],
        ["lines", "--from", "7", "--until", "5"],
        ["lines", "--from", "@7", "--until", "@5"],
        ["lines", "-F", "%x"],
        ["lines", "-F", "JSON"],
        ["lines", "-X", "no.such=1"],
        ["lines", "--group", "g", "-X", "group_id=h"],
        ["lines", "-X", "group.id=g", "--until", "end"],
        ["lines", "--group", "g", "--from", "end", "-X", "auto.offset.reset=earliest"],
        ["lines", "-X", "value.deserializer=StringDeserializer"],
        ["lines", "--partition", "0", "--group", "g"],
        ["lines", "--partition", "0", "-X", "group.id=g"],
        ["lines", "split", "--partition", "0"],
        ["lines", "split", "--partition", "0", "--until", "end"],
    ],
)
def test_misuse(kafka: EmbeddedKafka, arguments: list[str], capsys):
    assert main(["consume", *arguments, "-b", kafka.bootstrap]) == 2
    assert capsys.readouterr().err.startswith("kafka-fast: ")


def test_the_maximum_is_a_number(kafka: EmbeddedKafka, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["consume", "lines", "-n", "few", "-b", kafka.bootstrap])
    assert caught.value.code == 2
    assert "'few' is no number of records" in capsys.readouterr().err


def test_the_group_of_a_lag_is_named_once(kafka: EmbeddedKafka, capsys):
    assert main(["lag", "g", "-X", "group.id=h", "-b", kafka.bootstrap]) == 2
    assert "given twice: 'g' and 'h'" in capsys.readouterr().err


@pytest.mark.parametrize("offset", [3, COUNT + 1])
def test_an_offset_that_is_not_there_is_not_passed_over(kafka: EmbeddedKafka, offset: int, capsys):
    """Regression: reading went on at the end, as auto.offset.reset has it."""
    kafka.create_topic("shrunk", 1)
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        producer.send_many("shrunk", LINES[:10]).result(30)
    kafka.delete_records("shrunk", 0, 5)
    try:
        status = main(["consume", "shrunk", "--from", str(offset), "-b", kafka.bootstrap])
    finally:
        kafka.delete_topic("shrunk")
    assert status == 1
    err = capsys.readouterr().err
    assert err == f"kafka-fast: offset {offset} is not in shrunk-0 (5 to 10)\n"


def test_an_offset_that_some_partitions_do_not_reach(kafka: EmbeddedKafka, capsys):
    kafka.create_topic("uneven", 4)
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        for partition, size in enumerate((5, 10, 0, 7)):
            producer.send_many("uneven", LINES[:size], partitions=partition).result(30)
    uneven = ["uneven", "--from", "7"]
    assert main(["consume", *uneven, "-b", kafka.bootstrap]) == 1
    assert capsys.readouterr().err == (
        "kafka-fast: offset 7 is not in uneven-0 (0 to 5), uneven-2 (0 to 0): choose others with "
        "--partition\n"
    )
    assert output(kafka, *uneven, "-p", "1", "-p", "3", "-n", "1") == b"value 7\n"


def test_a_group_in_the_configuration_is_the_group(kafka: EmbeddedKafka):
    group = ["lines", "-X", "group.id=by-key", "--from", "beginning", "-n", "2"]
    assert output(kafka, *group) == b"value 0\nvalue 1\n"
    assert output(kafka, *group) == b"value 2\nvalue 3\n"


def test_a_reader_that_leaves_while_nothing_comes(kafka: EmbeddedKafka):
    """Regression: it was noticed with the next record, which may never come."""
    arguments = command(kafka, "consume", "lines", "--from", str(COUNT - 1))
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == LINES[-1] + b"\n"
        process.stdout.close()
        assert process.wait(timeout=20) == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        ("consume lines --until end", 1, b"no standard output"),
        ("lag nobody", 1, b"nothing"),
        ("config linger.ms", 0, b""),
    ],
)
def test_a_closed_output(kafka: EmbeddedKafka, arguments: str, status: int, complaint: bytes):
    words = arguments.split()
    words += [] if words[0] == "config" else ["-b", kafka.bootstrap]
    line = shlex.join([sys.executable, "-m", "kafka_fast", *words])
    run = subprocess.run(["sh", "-c", f"{line} >&-"], stderr=subprocess.PIPE, cwd=ROOT, timeout=60)
    assert run.returncode == status
    assert complaint in run.stderr
    assert b"Traceback" not in run.stderr


@pytest.mark.parametrize("more", [[], ["--until", "end"], ["--group", "g"]])
def test_ctrl_c_while_no_broker_is_there(more: list[str]):
    arguments = [sys.executable, "-m", "kafka_fast", "consume", "lines", "-b", "127.0.0.1:1", *more]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, cwd=ROOT) as process, killed(process):
        assert process.stderr is not None
        assert b"refused" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        assert b"kafka-fast" not in process.stderr.read()


@pytest.mark.parametrize("more", [["--from", "beginning"], ["--until", "end"]])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_does_not_cut_what_is_being_written(
    kafka: EmbeddedKafka, more: list[str], number: int, status: int
):
    arguments = command(kafka, "consume", "lines", "-F", "json", *more)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, cwd=ROOT) as process, killed(process):
        assert process.stdout is not None
        out = process.stdout
        eventually(lambda: waiting_in(out) >= FULL, "the pipe to be full")
        process.send_signal(number)
        written = process.communicate(timeout=20)[0]
    assert process.returncode == status
    assert written.endswith(b"}\n")
    offsets = [json.loads(line)["offset"] for line in written.splitlines()]
    assert offsets == list(range(len(offsets)))
    assert len(offsets) < COUNT


def waiting_in(pipe: IO[bytes]) -> int:
    """Return how many bytes can be read."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]
