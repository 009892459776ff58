"""`kafka-fast consume` and `kafka-fast lag` as processes, on real Kafka."""

from __future__ import annotations

import base64
import itertools
import json
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

import confluent_kafka
import pytest

from kafka_fast import Consumer, Producer, TopicPartition
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.consuming import (
    FIRST_TIMESTAMP_MS,
    PROTOCOLS,
    WITH_CONSUMER_PROTOCOL,
    write,
)
from tests.integration.producing import TIMEOUT, new_topic
from tests.waiting import eventually

pytestmark = pytest.mark.broker

ROOT = Path(__file__).parents[3]
COUNT = 100
VALUES = [b"0:%d" % number for number in range(COUNT)]
ISO = datetime.fromtimestamp((FIRST_TIMESTAMP_MS + 40) / 1000, timezone.utc).isoformat()

INTERRUPTED = 130


class Command:
    """`kafka-fast` on one cluster."""

    def __init__(self, kafka: RealKafka) -> None:
        self.bootstrap = kafka.bootstrap

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run it to its end."""
        words = self._words(arguments)
        return subprocess.run(words, capture_output=True, cwd=ROOT, timeout=TIMEOUT)

    def output(self, *arguments: str) -> bytes:
        """Run it to an end without complaints; return what it wrote."""
        run = self(*arguments)
        assert (run.returncode, run.stderr) == (0, b"")
        return run.stdout

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run it beside the test."""
        words = self._words(arguments)
        with subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def _words(self, arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "kafka_fast", *arguments, "-b", self.bootstrap]


@pytest.fixture
def command(real_kafka: RealKafka) -> Command:
    return Command(real_kafka)


@pytest.fixture(scope="module")
def topic(real_kafka: RealKafka) -> str:
    """A hundred records, a millisecond apart."""
    name = new_topic(real_kafka)
    write(real_kafka, name, COUNT)
    return name


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


def lines(block: bytes) -> list[bytes]:
    return block.splitlines()


def next_lines(pipe: IO[bytes] | None, count: int) -> list[bytes]:
    assert pipe is not None
    return [pipe.readline().rstrip(b"\n") for _ in range(count)]


# ---- points ----


@pytest.mark.parametrize(
    ("start", "until", "wanted"),
    [
        (None, "end", VALUES),
        ("beginning", "end", VALUES),
        ("90", "end", VALUES[90:]),
        ("beginning", "3", VALUES[:3]),
        ("5", "8", VALUES[5:8]),
        (f"@{FIRST_TIMESTAMP_MS + 97}", "end", VALUES[97:]),
        (ISO, f"@{FIRST_TIMESTAMP_MS + 42}", VALUES[40:42]),
    ],
)
def test_ranges(
    command: Command, topic: str, start: str | None, until: str, wanted: list[bytes]
) -> None:
    begin = [] if start is None else ["--from", start]
    assert lines(command.output("consume", topic, *begin, "--until", until)) == wanted


@pytest.mark.parametrize(
    ("start", "first"), [("beginning", 0), ("42", 42), (f"@{FIRST_TIMESTAMP_MS + 50}", 50)]
)
def test_a_maximum_ends_what_has_no_end(
    command: Command, topic: str, start: str, first: int
) -> None:
    values = lines(command.output("consume", topic, "--from", start, "--max", "5"))
    assert values == VALUES[first : first + 5]


def test_times_before_now(real_kafka: RealKafka, command: Command) -> None:
    name = new_topic(real_kafka)
    now = int(time.time() * 1000)
    ages = {"week": 7 * 86_400, "hours": 3 * 3_600, "minutes": 5 * 60, "soon": -600}
    with Producer(bootstrap_servers=real_kafka.bootstrap) as producer:
        for word, seconds in ages.items():
            producer.send(name, word, timestamp_ms=now - seconds * 1000)

    def shown(*arguments: str) -> list[bytes]:
        return lines(command.output("consume", name, *arguments))

    assert shown("--from", "-1d", "--until", "now") == [b"hours", b"minutes"]
    assert shown("--from", "-8d", "--until", "-1h30m") == [b"week", b"hours"]
    assert shown("--from=-90m", "--until", "end") == [b"minutes", b"soon"]
    assert shown("--from", "now", "--max", "1") == [b"soon"]


def test_nulls_go_there_and_back(real_kafka: RealKafka, command: Command) -> None:
    name = new_topic(real_kafka)
    words = command._words(("produce", name, "-K", ":", "--null", "NULL"))
    subprocess.run(words, input=b"k:v\ngone:NULL\nNULL:\n", cwd=ROOT, timeout=TIMEOUT, check=True)
    form = ["--until", "end", "--format", r"%k=%v\n"]
    assert lines(command.output("consume", name, *form)) == [b"k=v", b"gone=null", b"null="]


def test_from_the_end_it_waits_for_what_comes(real_kafka: RealKafka, command: Command) -> None:
    name = new_topic(real_kafka)
    write(real_kafka, name, 10)
    numbers = itertools.count(10)
    with command.running("consume", name) as process:
        assert process.stdout is not None
        out = process.stdout

        def is_heard() -> bool:
            write(real_kafka, name, 1, first=next(numbers))
            return bool(select.select([out], [], [], 0.1)[0])

        eventually(is_heard, "a record to be shown")
        (shown,) = next_lines(out, 1)
    assert 10 <= int(shown.split(b":")[1]) < next(numbers), "nothing of what was there before"


# ---- the last records ----


def test_the_last_records_behind_the_ends_of_transactions(
    real_kafka: RealKafka, command: Command
) -> None:
    name = new_topic(real_kafka, 2)
    transactional = confluent_kafka.Producer(
        {"bootstrap.servers": real_kafka.bootstrap, "transactional.id": name}
    )
    transactional.init_transactions()
    for number in range(6):  # each transaction ends in an offset that is no record
        transactional.begin_transaction()
        transactional.produce(
            name, b"%d" % number, partition=0, headers=[("number", b"%d" % number)]
        )
        transactional.commit_transaction()
    now = int(time.time() * 1000)
    with Producer(bootstrap_servers=real_kafka.bootstrap) as producer:
        for number in range(3):
            later = now + 60_000 * (number + 1)
            producer.send(name, f"later {number}", partition=1, timestamp_ms=later)

    def shown(*arguments: str) -> list[bytes]:
        return lines(command.output("consume", name, *arguments))

    assert shown("--tail", "3") == [b"3", b"4", b"5", b"later 0", b"later 1", b"later 2"]
    assert shown("--tail", "3", "-X", "isolation.level=read_committed", "-p", "0") == [
        b"3",
        b"4",
        b"5",
    ]
    assert shown("--tail-together", "4") == [b"5", b"later 0", b"later 1", b"later 2"]
    assert shown("--tail", "1", "--header", "number=1") == [b"1"]
    assert shown("--until", "end", "-H", "number", "-n", "2", "-F", r"%h{number}\n") == [b"0", b"1"]


# ---- formats ----


def test_lines_of_json_are_sent_as_they_were(real_kafka: RealKafka, command: Command) -> None:
    first, second = new_topic(real_kafka, 2), new_topic(real_kafka, 2)
    with Producer(bootstrap_servers=real_kafka.bootstrap) as producer:
        producer.send(first, b"\xff", key="k", partition=0, timestamp_ms=1_234)
        producer.send(first, None, key=b"", partition=1, headers=[("h", None), ("h", b"\xfe")])
        producer.send(first, b"", partition=1, headers=[("", b"")], timestamp_ms=0)
    written = command.output("consume", first, "--until", "end", "-F", "json")
    words = command._words(("produce", second, "-F", "json", "--keep-partitions"))
    subprocess.run(words, input=written, cwd=ROOT, timeout=TIMEOUT, check=True)
    again = command.output("consume", second, "--until", "end", "-F", "json")
    assert sorted(lines(again.replace(second.encode(), first.encode()))) == sorted(lines(written))
    assert len(lines(again)) == 3


def test_numbers_of_javas_serializers(real_kafka: RealKafka, command: Command) -> None:
    name = new_topic(real_kafka)
    numbers = {"key_serializer": "LongSerializer", "value_serializer": "DoubleSerializer"}
    with Producer(bootstrap_servers=real_kafka.bootstrap, **numbers) as producer:
        producer.send(name, 0.5, key=-7)
    form = ["--until", "end", "--key-as", "long", "--value-as", "double", "--format", "%k=%v"]
    assert command.output("consume", name, *form) == b"-7=0.5"
    run = command("consume", name, "--until", "end", "--value-as", "integer")
    assert (run.returncode, run.stdout) == (1, b"")
    assert f"{name}-0, offset 0: the value is no integer".encode() in run.stderr


def test_formats(real_kafka: RealKafka, command: Command) -> None:
    name = new_topic(real_kafka)
    with Producer(bootstrap_servers=real_kafka.bootstrap) as producer:
        headers = [("h", b"1"), ("empty", None)]
        producer.send(name, "grün", key="k", headers=headers, timestamp_ms=1_234)
        producer.send(name, b"\xff\x00", timestamp_ms=1_235)
        producer.send(name, None, key="gone", timestamp_ms=1_236)

    def shown(form: str) -> bytes:
        return command.output("consume", name, "--until", "end", "--format", form)

    assert shown("value") == "grün\n".encode() + b"\xff\x00\nnull\n"
    assert shown("hex") == b"6b\t6772c3bc6e\nnull\tff00\n676f6e65\tnull\n"
    expected = [f"{name} 0 0 1234 k h=1,empty=null%", f"{name} 0 1 1235 null %"]
    expected.append(f"{name} 0 2 1236 gone %")
    assert lines(shown(r"%t %p %o %T %k %h%%\n")) == [text.encode() for text in expected]
    first, second, third = map(json.loads, lines(shown("json")))
    assert first == {
        "topic": name,
        "partition": 0,
        "offset": 0,
        "timestamp_ms": 1_234,
        "key": "k",
        "value": "grün",
        "headers": [{"name": "h", "value": "1"}, {"name": "empty", "value": None}],
    }
    assert second["value_base64"] == base64.b64encode(b"\xff\x00").decode()
    assert (third["key"], third["value"]) == ("gone", None)


# ---- groups and lag ----


def test_a_group_commits_what_was_written_and_lag_tells(
    command: Command, topic: str, group: str
) -> None:
    member = ["consume", topic, "--group", group, "--from", "beginning", "--max"]
    assert lines(command.output(*member, "60")) == VALUES[:60]
    assert lines(command.output(*member, "3")) == VALUES[60:63]
    head, row, total = lines(command.output("lag", group))
    assert head.split() == [b"TOPIC", b"PARTITION", b"COMMITTED", b"END", b"LAG"]
    assert row.split() == [topic.encode(), b"0", b"63", b"100", b"37"]
    assert total.split() == [b"TOTAL", b"37"]
    assert lines(command.output("lag", group, topic)) == [head, row, total]


@WITH_CONSUMER_PROTOCOL
def test_a_member_of_the_consumer_protocol(command: Command, topic: str, group: str) -> None:
    more = ["--from", "beginning", "-X", "group.protocol=consumer", "--max", "10"]
    assert lines(command.output("consume", topic, "--group", group, *more)) == VALUES[:10]
    assert lines(command.output("consume", topic, "--group", group, *more)) == VALUES[10:20]
    _, row, _ = lines(command.output("lag", group))
    assert row.split() == [topic.encode(), b"0", b"20", b"100", b"80"]


def test_a_group_that_nobody_knows(command: Command, topic: str, group: str) -> None:
    run = command("lag", group)
    assert (run.returncode, run.stdout) == (1, b"")
    complaint = f"group {group} has committed nothing, and has no members that subscribe"
    assert run.stderr == f"kafka-fast: {complaint}\n".encode()


@pytest.fixture(scope="module")
def uneven(real_kafka: RealKafka) -> str:
    """Three partitions, with 10, 20 and 30 records."""
    name = new_topic(real_kafka, partitions=3)
    for partition in range(3):
        write(real_kafka, name, 10 * (partition + 1), partition=partition)
    return name


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_lag_of_partitions_without_a_commit(
    real_kafka: RealKafka, command: Command, uneven: str, group: str, protocol: str
) -> None:
    """Regression: a group that had committed one partition of three had a lag of 0.

    It is told while the group has a member, when it has none any more, and of a topic to which its
    member subscribes but of which nothing is committed.
    """
    other = new_topic(real_kafka, partitions=2)
    write(real_kafka, other, 7)
    config = {"bootstrap.servers": real_kafka.bootstrap, "group.id": group}
    with Consumer(
        config, group_protocol=protocol, auto_offset_reset="earliest", enable_auto_commit=False
    ) as consumer:
        consumer.subscribe([uneven, other])
        eventually(lambda: consumer.poll(0.1) and len(consumer.assignment()) == 5)
        consumer.commit({TopicPartition(uneven, 1): 20})

        def told() -> dict[str, Any] | None:
            """Kafka describes a group as it was last written, a moment behind."""
            report = json.loads(command.output("lag", group, "-o", "json"))
            return report if report["state"] == "Stable" else None

        active = eventually(told)
        assert consumer.assignment(), "nobody was disturbed"
    assert [row["committed"] for row in active["partitions"] if row["topic"] == uneven] == [
        None, 20, None,
    ]  # fmt: skip
    assert active["total_lag"] == 10 + 0 + 30 + 7
    run = command("lag", group)
    assert run.returncode == 0
    head, *rows, total = [line.split() for line in lines(run.stdout)]
    assert head == [b"TOPIC", b"PARTITION", b"COMMITTED", b"END", b"LAG"]
    name = uneven.encode()
    assert rows == [
        [name, b"0", b"none", b"10", b"10"],
        [name, b"1", b"20", b"20", b"0"],
        [name, b"2", b"none", b"30", b"30"],
    ], "without members only the topics of commits are known"
    assert total == [b"TOTAL", b"40"]
    assert run.stderr.startswith(b"kafka-fast: 2 partitions have no committed offset")
    latest = lines(command("lag", group, "--reset", "latest").stdout)
    assert latest[-1].split() == [b"TOTAL", b"0"]
    named = lines(command("lag", group, other).stdout)
    assert named[-1].split() == [b"TOTAL", b"7"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_lag_of_a_pattern(
    real_kafka: RealKafka, command: Command, uneven: str, group: str, protocol: str
) -> None:
    config = {"bootstrap.servers": real_kafka.bootstrap, "group.id": group}
    with Consumer(config, group_protocol=protocol, enable_auto_commit=False) as consumer:
        consumer.subscribe(pattern=f"{uneven[:-1]}.*")
        eventually(lambda: consumer.poll(0.1) or len(consumer.assignment()) == 3)

        def told() -> bool:
            run = command("lag", group)
            return run.returncode == 0 and lines(run.stdout)[-1].split() == [b"TOTAL", b"60"]

        eventually(told)


def test_the_topics(
    real_kafka: RealKafka, command: Command, topic: str, uneven: str, group: str
) -> None:
    with Consumer(bootstrap_servers=real_kafka.bootstrap, group_id=group) as consumer:
        consumer.commit({TopicPartition(topic, 0): 1})  # makes the topic of committed offsets
    head, *rows = (line.split() for line in lines(command.output("topics")))
    assert head == [b"TOPIC", b"PARTITIONS"]
    assert [topic.encode(), b"1"] in rows
    assert [uneven.encode(), b"3"] in rows
    assert not any(name.startswith(b"__") for name, _ in rows)
    all_rows = lines(command.output("topics", "--internal"))
    assert any(line.startswith(b"__consumer_offsets ") for line in all_rows)
    (listed,) = json.loads(command.output("topics", uneven, "-o", "json"))["topics"]
    assert (listed["topic"], listed["partitions"], listed["internal"]) == (uneven, 3, False)


@pytest.mark.parametrize("more", [[], ["--until", "end"], ["--from", "beginning", "--max", "1"]])
def test_a_topic_that_does_not_exist(command: Command, more: list[str]) -> None:
    """It says soon that it waits in vain."""
    run = command("consume", "no-such-topic", *more, "-X", "default.api.timeout.ms=3600000")
    assert (run.returncode, run.stdout) == (1, b"")
    *before, last = lines(run.stderr)
    assert last == b"kafka-fast: UNKNOWN_TOPIC_OR_PARTITION (3): there is no topic 'no-such-topic'"
    assert all(line.startswith(b"kafka-fast: there is no topic 'no-such-topic'") for line in before)


def test_a_member_waits_for_its_topic(real_kafka: RealKafka, command: Command, group: str) -> None:
    name = f"late-{group}"
    fast = ["-X", "metadata.max.age.ms=500", "--from", "beginning", "--max", "5"]
    with command.running("consume", name, "--group", group, *fast) as process:
        (complaint,) = next_lines(process.stderr, 1)
        assert complaint.startswith(f"kafka-fast: there is no topic '{name}' (yet)".encode())
        real_kafka.create_topic(name, 1)
        write(real_kafka, name, 5)
        assert next_lines(process.stdout, 5) == VALUES[:5]
        assert process.wait(TIMEOUT) == 0


def test_the_lag_in_a_topic_that_does_not_exist(command: Command, topic: str, group: str) -> None:
    member = ["consume", topic, "--group", group, "--from", "beginning", "--max"]
    assert lines(command.output(*member, "60")) == VALUES[:60]
    run = command("lag", group, "no-such-topic", "-X", "default.api.timeout.ms=3600000")
    assert (run.returncode, run.stdout) == (1, b"")
    complaint = "kafka-fast: there is no topic 'no-such-topic' (yet), or it may not be seen\n"
    assert run.stderr == complaint.encode()


# ---- ends ----


@pytest.mark.parametrize("is_member", [False, True])
def test_ctrl_c(
    real_kafka: RealKafka, command: Command, topic: str, group: str, *, is_member: bool
) -> None:
    more = ["--group", group] if is_member else []
    with command.running("consume", topic, "--from", "beginning", *more) as process:
        assert next_lines(process.stdout, COUNT) == VALUES
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, rest, errors) == (INTERRUPTED, b"", b"")
    if is_member:
        partition = TopicPartition(topic, 0)
        with Consumer(bootstrap_servers=real_kafka.bootstrap, group_id=group) as consumer:
            committed = consumer.committed([partition])[partition]
        assert committed is not None
        assert committed.offset == COUNT


@pytest.mark.parametrize("more", [[], ["--until", "end"]])
def test_a_reader_that_leaves_is_no_error(
    real_kafka: RealKafka, command: Command, more: list[str]
) -> None:
    name = new_topic(real_kafka)
    with Producer(bootstrap_servers=real_kafka.bootstrap, batch_size=100_000) as producer:
        producer.send_many(name, [b"x" * 1_000] * 5_000).result(TIMEOUT)
    with command.running("consume", name, "--from", "beginning", *more) as process:
        assert next_lines(process.stdout, 1) == [b"x" * 1_000]
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(TIMEOUT) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
