"""`kafka-fast topics describe` on the embedded broker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kafka_fast.cli.main import main
from kafka_fast.testing.broker.serving.server import EmbeddedKafka


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=2, auto_create=False) as kafka:
        kafka.create_topic("orders", 2)
        kafka.create_topic("audit", 1)
        kafka.set_in_sync("orders", 1, [kafka.leader("orders", 1)])
        yield kafka


def test_text(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", "describe", "-b", kafka.bootstrap]) == 0
    assert capsys.readouterr().out == (
        "TOPIC     PARTITION    LEADER    REPLICAS    ISR    OFFLINE\n"
        "audit             0         1    1,2         1,2    -\n"
        "orders            0         1    1,2         1,2    -\n"
        "orders            1         2    2,1         2      -\n"
    )


def test_what_is_not_in_sync(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["topics", "describe", "--under-replicated", "-b", kafka.bootstrap]
    assert main([*arguments, "-o", "json"]) == 0
    (topic,) = json.loads(capsys.readouterr().out)["topics"]
    assert topic.pop("id") is not None
    epoch = topic["partitions"][0].pop("leader_epoch")
    assert epoch >= 0
    assert topic == {
        "topic": "orders",
        "internal": False,
        "partitions": [
            {
                "partition": 1,
                "leader": 2,
                "replicas": [2, 1],
                "isr": [2],
                "offline": [],
                "elr": None,
                "last_known_elr": None,
            }
        ],
    }
    assert main([*arguments, "audit"]) == 0
    assert capsys.readouterr().err == "kafka-fast: there is no such partition\n"
    assert main(["topics", "describe", "--unavailable", "-b", kafka.bootstrap]) == 0
    assert capsys.readouterr().err == "kafka-fast: there is no such partition\n"


def test_what_has_no_leader(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedKafka(brokers=2, auto_create=False) as kafka:
        kafka.create_topic("single", 2, 1)
        kafka.kill(2)
        assert main(["topics", "describe", "--unavailable", "-b", kafka.bootstrap]) == 0
        assert capsys.readouterr().out == (
            "TOPIC     PARTITION    LEADER    REPLICAS    ISR    OFFLINE\n"
            "single            1         -    2           2      2\n"
        )


def test_by_id(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", "audit", "-o", "json", "-b", kafka.bootstrap]) == 0
    topic_id = json.loads(capsys.readouterr().out)["topics"][0]["id"]
    arguments = ["topics", "describe", "--by-id", topic_id, "-o", "wide", "-b", kafka.bootstrap]
    assert main(arguments) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split("    ")[-1] == "ID"
    assert row.startswith("audit ")
    assert row.endswith(topic_id)
    assert main(["topics", "describe", "--by-id", "none", "-b", kafka.bootstrap]) == 2
    assert "none" in capsys.readouterr().err


def test_one_that_is_not_there(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", "describe", "audit", "nothing", "-b", kafka.bootstrap]) == 1
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 2
    assert told.err == (
        "kafka-fast: UNKNOWN_TOPIC_OR_PARTITION (3): Metadata of topic 'nothing': there is no such "
        "topic\n"
    )
    assert main(["topics", "describe", "aud.*", "-b", kafka.bootstrap]) == 2
