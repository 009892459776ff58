"""`kafka-fast groups` on real Kafka, with the examples of command-line.md word by word."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_fast import Consumer, Producer, TopicPartition
from kafka_fast.cli.main import main
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.documentation.pages import ROOT, blocks
from tests.waiting import eventually

pytestmark = [pytest.mark.broker, pytest.mark.needs_kafka("4.0", "the consumer protocol")]


@pytest.fixture
def names(real_kafka: RealKafka) -> dict[str, str]:
    """What the page's names are here: a topic, a group with a member, and one with offsets."""
    mark = uuid.uuid4().hex
    names = {name: f"{name}-{mark}" for name in ("orders", "audit", "billing", "nobody")}
    real_kafka.create_topic(names["orders"], 2)
    with Producer(bootstrap_servers=real_kafka.bootstrap) as producer:
        for _ in range(5):
            producer.send(names["orders"], b"x", partition=0)
    commit(real_kafka, names, 3)
    return names


def commit(kafka: RealKafka, names: dict[str, str], offset: int) -> None:
    with Consumer(bootstrap_servers=kafka.bootstrap, group_id=names["billing"]) as consumer:
        consumer.commit({TopicPartition(names["orders"], 0): offset})


@contextmanager
def auditor(kafka: RealKafka, names: dict[str, str]) -> Iterator[Consumer]:
    with Consumer(
        bootstrap_servers=kafka.bootstrap,
        group_id=names["audit"],
        group_protocol="consumer",
        client_id="ada",
    ) as consumer:
        consumer.subscribe([names["orders"]])
        eventually(lambda: consumer.poll(0.05) or consumer.assignment(), "an assignment")
        yield consumer


def test_the_page(
    real_kafka: RealKafka, names: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [
        block.text
        for block in blocks("docs/command-line.md")
        if block.how == f"elsewhere, {Path(__file__).relative_to(ROOT)}"
    ]

    def told(command: str) -> str:
        words = [names.get(word, word) for word in command.split()[1:]]
        assert main([*words, "-b", real_kafka.bootstrap]) == 0
        captured = capsys.readouterr()
        text = captured.out + captured.err
        for name, other in names.items():
            text = text.replace(other, name)
        return re.sub(" +", " ", text)

    with auditor(real_kafka, names):
        for commands, shown in zip(texts[:6:2], texts[1:6:2], strict=True):
            lines = "".join(told(command) for command in commands.splitlines()).splitlines()
            # Other tests have left groups on this broker, which count in the total, too.
            own = [line for line in shown.splitlines() if not line.startswith("TOTAL")]
            assert {re.sub(" +", " ", line) for line in own} <= {*lines}
    for commands, shown in zip(texts[6::2], texts[7::2], strict=True):
        assert "".join(map(told, commands.splitlines())) == re.sub(" +", " ", shown)
    assert len(texts) == 12


def test_a_member_is_named_and_removed(
    real_kafka: RealKafka, names: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    on = ["-b", real_kafka.bootstrap]
    group = names["audit"]
    with auditor(real_kafka, names):
        reset = ["groups", "reset", group, "--to", "latest", "--topic", names["orders"]]
        assert main([*reset, "--yes", *on]) == 1
        assert "NON_EMPTY_GROUP" in capsys.readouterr().err
        assert main(["groups", "delete", group, "--yes", *on]) == 1
        assert "NON_EMPTY_GROUP" in capsys.readouterr().err
        assert main(["groups", "lag", group, "-o", "json", *on]) == 0
        assert json.loads(capsys.readouterr().out)["group"] == group
        assert main(["groups", "members", group, "-o", "json", *on]) == 0
        (member,) = json.loads(capsys.readouterr().out)["members"]
        assert [one["partition"] for one in member["partitions"]] == [0, 1]
        assert main(["groups", "members", group, "--remove", "nobody", "--yes", *on]) == 1
        assert "has no member 'nobody'" in capsys.readouterr().err
    assert main(["groups", "members", group, *on]) == 0


def test_a_plan_of_another_day(
    real_kafka: RealKafka,
    names: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reset = ["groups", "reset", names["billing"], "-b", real_kafka.bootstrap, "-o", "json"]
    file = str(tmp_path / "plan.json")
    assert main([*reset, "--to", "latest", "--dry-run", "--export", file]) == 0
    commit(real_kafka, names, 1)
    assert main([*reset, "--plan", file, "--yes"]) == 0
    (planned, done) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (planned.pop("dry_run"), done.pop("dry_run")) == (True, False)
    assert done["partitions"][0]["to"] == planned["partitions"][0]["to"] == 5


def test_the_csv_of_several_groups(
    real_kafka: RealKafka,
    names: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    on = ["-b", real_kafka.bootstrap, "-o", "json"]
    groups, topic = [names["billing"], names["nobody"]], names["orders"]
    file = tmp_path / "plan.csv"
    words = ["--to", "1", "--partition", f"{topic}:0", "--dry-run", "--export", str(file)]
    assert main(["groups", "reset", *groups, *words, *on]) == 0
    assert file.read_text() == "".join(f"{group},{topic},0,1\n" for group in groups)
    file.write_text(file.read_text().replace("0,1\n", "0,99\n", 1))
    assert main(["groups", "reset", "--plan", str(file), "--yes", *on]) == 0
    _, done = map(json.loads, capsys.readouterr().out.splitlines())
    assert [one["partitions"][0]["to"] for one in done["groups"]] == [5, 1]
    assert main(["lag", groups[1], *on]) == 0
    assert json.loads(capsys.readouterr().out)["total_lag"] == 4
