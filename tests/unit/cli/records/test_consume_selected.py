"""`kafka-fast consume`: headers, last records, and JSON lines that come back as they were."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_fast import Producer
from kafka_fast.cli.main import main
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.unit.cli.records.test_json_lines import DATA, HEADERS

Output = Callable[..., bytes]

START = 1_772_323_200_000
SIZES = (5, 3, 0)


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as kafka:
        kafka.create_topic("kept", len(SIZES))
        with Producer(bootstrap_servers=kafka.bootstrap) as producer:
            for partition, size in enumerate(SIZES):
                for number in range(size):
                    producer.send(
                        "kept",
                        f"{partition}.{number}".encode(),
                        partition=partition,
                        timestamp_ms=START + 10 * number + partition,
                        headers=[("parity", b"%d" % (number % 2)), ("first", None)][: number + 1],
                    )
        yield kafka


@pytest.fixture
def output(kafka: EmbeddedKafka, capfdbinary: pytest.CaptureFixture[bytes]) -> Output:
    """Run the command; return what it has written."""

    def run(*words: str, status: int = 0) -> bytes:
        capfdbinary.readouterr()
        assert main(["consume", *words, "-b", kafka.bootstrap]) == status
        return capfdbinary.readouterr().out

    return run


# ---- headers ----


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["-H", "parity"], b"0.0 0.1 0.2 0.3 0.4"),
        (["-H", "parity=1"], b"0.1 0.3"),
        (["-H", "parity=1", "-H", "first"], b"0.1 0.3"),
        (["-H", "parity=0", "--header", "first"], b"0.2 0.4"),
        (["-H", "first="], b""),
        (["-H", "none"], b""),
        (["-H", "parity=1", "-n", "1"], b"0.1"),
    ],
)
def test_records_with_a_header(output: Output, words: list[str], shown: bytes) -> None:
    assert output("kept", "-p", "0", "--until", "end", *words).split() == shown.split()


def test_headers_by_name(output: Output) -> None:
    shown = output("kept", "-p", "0", "--until", "2", "-F", r"%h{parity}:%h{first} %v\n")
    assert shown == b"0:null 0.0\n1:null 0.1\n"


# ---- the last records ----


def test_the_last_of_each_partition(output: Output) -> None:
    assert output("kept", "--tail", "2").split() == b"0.3 0.4 1.1 1.2".split()
    assert output("kept", "--tail", "99").split()[-4:] == b"0.4 1.0 1.1 1.2".split()
    assert output("kept", "--tail", "1", "-p", "1", "-F", "json").startswith(b'{"topic":"kept"')


def test_the_last_of_all(output: Output) -> None:
    assert output("kept", "--tail-together", "3").split() == b"1.2 0.3 0.4".split()
    assert output("kept", "--tail-together", "5").split() == b"1.1 0.2 1.2 0.3 0.4".split()


def test_the_last_with_a_header_are_looked_for_further_back(output: Output) -> None:
    assert output("kept", "--tail", "1", "-H", "parity=0").split() == b"0.4 1.2".split()
    assert output("kept", "--tail", "1", "-H", "parity=1").split() == b"0.3 1.1".split()
    assert output("kept", "--tail", "1", "-H", "none") == b""


def test_the_last_behind_a_gap(kafka: EmbeddedKafka, output: Output) -> None:
    """Offsets end in gaps, such as the ends of transactions."""
    topic = f"gaps-{uuid.uuid4().hex}"
    kafka.create_topic(topic, 1)
    kafka.produce(topic, ["a", "b", "c"])
    kafka.delete_records(topic, 0, 1)
    assert output(topic, "--tail", "9").split() == b"b c".split()
    kafka.delete_records(topic, 0, 3)
    assert output(topic, "--tail", "9") == b""


@pytest.mark.parametrize(
    "words", [["--from", "0"], ["--until", "end"], ["-n", "1"], ["--group", "g"]]
)
def test_what_cannot_stand_beside_a_tail(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["consume", "t", "--tail", "1", *words, "-b", "127.0.0.1:1"]) == 2
    assert "leave --" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        main(["consume", "t", "--tail", "1", "--tail-together", "1"])
    assert caught.value.code == 2


def test_a_topic_that_is_not_there(output: Output) -> None:
    assert output("nowhere", "--tail", "1", "-X", "default.api.timeout.ms=500", status=1) == b""


# ---- what cannot be read ----


def test_records_before_a_wrong_one_are_written(
    kafka: EmbeddedKafka, output: Output, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    topic = f"wrong-{uuid.uuid4().hex}"
    kafka.create_topic(topic, 1)
    kafka.produce(topic, ["1", "{}", "no", "2"])
    assert output(topic, "--until", "end", "--value-as", "json", status=1) == b"1\n{}\n"
    assert main(["consume", topic, "--tail", "2", "--value-as", "json", "-b", kafka.bootstrap]) == 1
    said = capfdbinary.readouterr().err.decode()
    assert f"kafka-fast: {topic}-0, offset 2: the value is no json: " in said


# ---- back and forth ----


def lines(block: bytes) -> list[dict[str, Any]]:
    """Return records without what another topic changes."""
    shown = [json.loads(line) for line in block.splitlines()]
    for line in shown:
        del line["topic"]
    return shown


RECORDS = st.lists(
    st.tuples(DATA, DATA, HEADERS, st.integers(0, 2**40), st.integers(0, 2)),
    min_size=1,
    max_size=8,
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(RECORDS)
def test_what_is_consumed_is_produced_as_it_was(
    kafka: EmbeddedKafka, output: Output, tmp_path: Path, records: list[Any]
) -> None:
    first, second = (f"{name}-{uuid.uuid4().hex}" for name in ("first", "second"))
    for topic in (first, second):
        kafka.create_topic(topic, 3)
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        for key, value, headers, timestamp, partition in records:
            producer.send(
                first,
                value,
                key,
                partition=partition,
                timestamp_ms=timestamp,
                headers=headers,
            )
    written = output(first, "--until", "end", "-F", "json")
    file = tmp_path / "records"
    file.write_bytes(written)
    words = ["produce", second, "-F", "json", "-f", str(file), "-b", kafka.bootstrap]
    assert main([*words, "--keep-partitions"]) == 0

    def ordered(block: bytes) -> list[dict[str, Any]]:
        return sorted(lines(block), key=lambda line: (line["partition"], line["offset"]))

    again = output(second, "--until", "end", "-F", "json")
    assert ordered(again) == ordered(written)
    assert len(ordered(again)) == len(records)


def test_a_line_may_be_longer_than_its_record(
    kafka: EmbeddedKafka, output: Output, tmp_path: Path
) -> None:
    """A record that fits into a request is six times as long in the worst case."""
    first, second = (f"long-{name}-{uuid.uuid4().hex}" for name in ("first", "second"))
    for topic in (first, second):
        kafka.create_topic(topic, 1)
    value = b"\x01" * 900_000
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        producer.send(first, value)
    file = tmp_path / "records"
    file.write_bytes(output(first, "--until", "end", "-F", "json"))
    assert file.stat().st_size > 5_000_000
    assert main(["produce", second, "-F", "json", "-f", str(file), "-b", kafka.bootstrap]) == 0
    assert [record.value for record in kafka.records(second, 0)] == [value]


def test_options_of_json_lines(
    kafka: EmbeddedKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = f"more-{uuid.uuid4().hex}"
    kafka.create_topic(topic, 2)
    file = tmp_path / "records"
    file.write_text('{"value": "a", "partition": 0, "headers": [{"name": "a", "value": "1"}]}\n')
    words = ["produce", topic, "-f", str(file), "-b", kafka.bootstrap]
    assert main([*words, "-F", "json", "-p", "1", "-H", "b=2"]) == 0
    (record,) = kafka.records(topic, 1)
    assert list(record.headers) == [("a", b"1"), ("b", b"2")]
    for more in (["-F", "json", "-K", ":"], ["-F", "json", "--null", ""], ["--keep-partitions"]):
        assert main([*words, *more]) == 2
    file.write_text('{"value": "a"}\nno\n')
    assert main([*words, "-F", "json"]) == 1
    assert "line 2: Expecting value" in capsys.readouterr().err
