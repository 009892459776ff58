"""`kafka-fast topics list`, which is also `kafka-fast topics`, on the embedded broker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kafka_fast.cli.main import main
from kafka_fast.consumer import Consumer
from kafka_fast.errors import TopicAuthorizationFailed
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import METADATA


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(auto_create=False) as kafka:
        kafka.create_topic("orders", 12)
        kafka.create_topic("a-topic-with-a-longer-name", 3)
        yield kafka


@pytest.mark.parametrize("words", [["topics"], ["topics", "list"], ["topics", "-o", "text"]])
def test_names_and_partitions(
    words: list[str], kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "-b", kafka.bootstrap]) == 0
    assert capsys.readouterr().out == (
        "TOPIC                         PARTITIONS\n"
        "a-topic-with-a-longer-name             3\n"
        "orders                                12\n"
    )
    assert main(["topics", "orders", "-b", kafka.bootstrap]) == 0
    assert capsys.readouterr().out.split() == ["TOPIC", "PARTITIONS", "orders", "12"]


def test_an_object_for_programs(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", "-o", "json", "-b", kafka.bootstrap]) == 0
    told = json.loads(capsys.readouterr().out)
    ids = [entry.pop("id") for entry in told["topics"]]
    assert all(len(topic_id) == 22 for topic_id in ids)
    assert told == {
        "topics": [
            {
                "topic": "a-topic-with-a-longer-name",
                "partitions": 3,
                "replication_factor": 1,
                "internal": False,
            },
            {"topic": "orders", "partitions": 12, "replication_factor": 1, "internal": False},
        ]
    }
    assert main(["topics", "orders", "nothing", "-o", "json", "-b", kafka.bootstrap]) == 1
    assert json.loads(capsys.readouterr().out)["errors"] == [
        {
            "topic": "nothing",
            "error": "UNKNOWN_TOPIC_OR_PARTITION",
            "message": "UNKNOWN_TOPIC_OR_PARTITION (3): Metadata of topic 'nothing': there is no "
            "such topic",
        }
    ]


def test_more_columns(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", "list", "orders", "-o", "wide", "-b", kafka.bootstrap]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head == "TOPIC     PARTITIONS    REPLICAS    INTERNAL    ID"
    assert row[:-22] == "orders            12           1    no          "


def test_internal_topics(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    with Consumer(bootstrap_servers=kafka.bootstrap, group_id="g") as consumer:
        consumer.subscribe(["orders"])
        consumer.poll(0)
    assert main(["topics", "--internal", "-b", kafka.bootstrap]) == 0
    rows = capsys.readouterr().out.splitlines()
    with Consumer(bootstrap_servers=kafka.bootstrap) as consumer:
        assert len(rows) == 1 + len(consumer.topics(internal=True))


def test_nothing_to_list(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedKafka() as empty:
        assert main(["topics", "-b", empty.bootstrap]) == 0
        told = capsys.readouterr()
        assert (told.out, told.err) == (
            "", "kafka-fast: there is no topic that this client may see\n"
        )  # fmt: skip
        assert main(["topics", "-b", empty.bootstrap, "-o", "json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"topics": []}


def test_a_topic_that_does_not_exist(
    kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named; the others are listed, and nothing is created."""
    assert main(["topics", "orders", "nothing", "-b", kafka.bootstrap]) == 1
    told = capsys.readouterr()
    assert told.out.split() == ["TOPIC", "PARTITIONS", "orders", "12"]
    assert "topic 'nothing': there is no such topic" in told.err
    assert main(["topics", "ord.*", "-b", kafka.bootstrap]) == 2
    assert "'ord.*' is no name of a topic" in capsys.readouterr().err
    with Consumer(bootstrap_servers=kafka.bootstrap) as consumer:
        assert consumer.topics() == {"a-topic-with-a-longer-name", "orders"}


def test_a_topic_that_may_not_be_seen(
    kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka.faults.error(METADATA, TopicAuthorizationFailed, topic="orders", count=None)
    assert main(["topics", "-b", kafka.bootstrap]) == 0
    told = capsys.readouterr()
    assert told.out.split()[2:] == ["a-topic-with-a-longer-name", "3"]
