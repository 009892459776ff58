"""`kafka-fast txn` on real Kafka, with the examples of command-line.md about one that hangs."""

from __future__ import annotations

import fnmatch
import json
import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from kafka_fast.cli.main import main
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.conftest import started
from tests.documentation.pages import ROOT, blocks
from tests.integration.scenarios.wire import batch, connected, produce_request
from tests.waiting import eventually

pytestmark = [pytest.mark.broker, pytest.mark.needs_kafka("3.0", "transactions are described")]

TIMEOUT = 30.0
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def kafka(request: pytest.FixtureRequest) -> Iterator[RealKafka]:
    """A broker that takes records of transactions that no coordinator knows."""
    overrides = {"transaction.partition.verification.enable": False}
    with started(1, request.config.getoption("--kafka-version"), overrides) as made:
        yield made


def test_a_transaction(kafka: RealKafka, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"billing-{uuid.uuid4().hex}"
    kafka.create_topic(name, 2)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": kafka.bootstrap, "transactional.id": name}
    )
    producer.init_transactions(TIMEOUT)
    producer.begin_transaction()
    producer.produce(name, b"x", partition=1)
    assert producer.flush(TIMEOUT) == 0

    def told(*words: str, status: int = 0) -> list[dict[str, Any]]:
        assert main(["txn", *words, "-b", kafka.bootstrap, "-o", "json"]) == status
        listed: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["transactions"]
        return listed

    mine = next(one for one in told() if one["transactional_id"] == name)
    assert mine["state"] == "Ongoing"
    assert mine in told("list", "--state", "ongoing", "--producer-id", str(mine["producer_id"]))
    (described,) = told("describe", name, "nobody", status=1)
    assert described["partitions"] == [{"topic": name, "partition": 1}]
    assert described["producer_id"] == mine["producer_id"]
    assert told("hanging", "--topic", name, "--max-timeout", "0s") == []
    producer.commit_transaction(TIMEOUT)
    done = ["list", "--state", "complete-commit"]
    eventually(lambda: name in {one["transactional_id"] for one in told(*done)}, "the commit")


def test_the_page(kafka: RealKafka, capsys: pytest.CaptureFixture[str]) -> None:
    """A transaction that hangs is found and aborted, word by word."""
    topic = f"orders-{uuid.uuid4().hex}"
    kafka.create_topic(topic, 1)
    records = batch(
        producer=(123_456_789, 5, 0),
        is_transactional=True,
        timestamp=int(time.time() * 1000) - HOUR_MS,
    )
    with connected(kafka.bootstrap) as client:
        request = produce_request(topic, [(0, records)], transactional_id="nobody")
        assert client.ask(request, 9).responses[0].partition_responses[0].error_code == 0
    texts = [
        block.text
        for block in blocks("docs/command-line.md")
        if block.how == f"elsewhere, {Path(__file__).relative_to(ROOT)}"
    ]
    assert len(texts) == 4
    for commands, shown in zip(texts[::2], texts[1::2], strict=True):
        told = ""
        for command in commands.splitlines():
            words = command.replace("orders", topic).split()[1:]
            assert main([*words, "-b", kafka.bootstrap]) == 0
            captured = capsys.readouterr()
            told += captured.out + captured.err
        plain = [re.sub(" +", " ", text.replace(topic, "orders")) for text in (told, shown)]
        assert fnmatch.fnmatchcase(plain[0], plain[1].replace("...", "*"))
    assert main(["txn", "hanging", "--topic", topic, "-b", kafka.bootstrap]) == 0
    assert capsys.readouterr().err == "kafka-fast: no transaction hangs there\n"
