"""`configs`, `topics alter` and `topics offsets` on real Kafka, as on command-line.md."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path

import pytest

from kafka_fast import Producer
from kafka_fast.cli.main import main
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.documentation.pages import ROOT, blocks
from tests.waiting import eventually

pytestmark = [pytest.mark.broker, pytest.mark.needs_kafka("2.3", "single settings are changed")]


def test_the_page(real_kafka: RealKafka, capsys: pytest.CaptureFixture[str]) -> None:
    topic = f"orders-{uuid.uuid4().hex}"
    real_kafka.create_topic(topic, 2)
    with Producer(bootstrap_servers=real_kafka.bootstrap) as producer:
        for _ in range(5):
            producer.send(topic, b"x", partition=0)
    texts = [
        block.text
        for block in blocks("docs/command-line.md")
        if block.how == f"elsewhere, {Path(__file__).relative_to(ROOT)}"
    ]

    def told(command: str) -> str:
        words = command.replace("orders", topic).split()[1:]
        assert main([*words, "-b", real_kafka.bootstrap]) == 0
        captured = capsys.readouterr()
        return re.sub(" +", " ", (captured.out + captured.err).replace(topic, "orders"))

    def is_told(commands: str, shown: str) -> bool:
        return "".join(map(told, commands.splitlines())) == re.sub(" +", " ", shown)

    altered, offsets, described, again = zip(texts[::2], texts[1::2], strict=True)
    assert is_told(*altered)
    assert is_told(*offsets)
    capsys.readouterr()
    assert main(["topics", "alter", topic, "--delete-config", "cleanup.policy",
                 "-b", real_kafka.bootstrap]) == 0  # fmt: skip
    capsys.readouterr()
    eventually(lambda: is_told(*described), "what the page shows")
    assert is_told(*again)


@pytest.mark.needs_kafka("4.1", "groups and subscriptions are listed")
@pytest.mark.parametrize(
    ("kind", "setting", "value"),
    [
        ("broker", "log.cleaner.threads", "2"),
        ("broker-logger", "kafka.server.KafkaApis", "DEBUG"),
        ("group", "consumer.session.timeout.ms", "50000"),
        ("client-metrics", "interval.ms", "5000"),
    ],
)
def test_each_kind(
    real_kafka: RealKafka,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    setting: str,
    value: str,
) -> None:
    name = "1" if kind.startswith("broker") else f"configured-{uuid.uuid4().hex}"
    on = ["-b", real_kafka.bootstrap, "-o", "json"]

    def value_now(*names: str) -> str | None:
        words = ["configs", "describe", kind, *names, "--setting", setting, "--all", *on]
        assert main(words) == 0
        resources = json.loads(capsys.readouterr().out)["resources"]
        mine = next(one for one in resources if one["name"] == name)
        return next((one["value"] for one in mine["configs"]), None)

    before = value_now(name)
    alter = ["configs", "alter", kind, name, *on]
    assert main([*alter, "--set", f"{setting}={value}", "--dry-run"]) == 0
    assert main([*alter, "--set", f"{setting}={value}"]) == 0
    capsys.readouterr()
    eventually(lambda: value_now() == value, "the new value")
    assert main([*alter, "--delete", setting]) == 0
    capsys.readouterr()
    eventually(lambda: value_now(name) == before, "the value before")


def test_what_is_refused(real_kafka: RealKafka, capsys: pytest.CaptureFixture[str]) -> None:
    topic = f"refused-{uuid.uuid4().hex}"
    real_kafka.create_topic(topic, 1)
    words = ["configs", "alter", "topic", topic, "nothing", "-b", real_kafka.bootstrap]
    assert main([*words, "--set", "retention.ms=soon"]) == 1
    assert "INVALID_CONFIG" in capsys.readouterr().err
    assert main([*words, "--set", "retention.ms=1000", "-o", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in report["resources"]] == [topic]
    assert [(one["name"], one["error"]) for one in report["errors"]] == [
        ("nothing", "UNKNOWN_TOPIC_OR_PARTITION")
    ]
