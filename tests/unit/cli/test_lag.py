"""`kafka-fast lag` on the embedded broker: which partitions are listed, and what they count."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kafka_fast import Consumer, TopicPartition
from kafka_fast.cli.lag import looks
from kafka_fast.cli.main import main
from kafka_fast.errors import (
    CoordinatorLoadInProgress,
    GroupAuthorizationFailed,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from kafka_fast.testing.broker.groups.settings import GroupSettings
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    KAFKA_2_1,
    METADATA,
)
from tests.waiting import eventually

Run = Callable[..., tuple[int, list[list[str]], list[str]]]

COUNTS = (5, 10, 0)
"""Records of each partition of `orders` and `bills`."""

PROTOCOLS = ["classic", "consumer"]
UNREAD = "kafka-fast: 2 partitions have no committed offset: the lag counts from the "
FROM_BEGINNING = f"{UNREAD}beginning of the log (--reset latest: from its end)"
FROM_END = f"{UNREAD}end of the log (--reset earliest: from its beginning)"


@pytest.fixture(scope="module")
def shared() -> Iterator[EmbeddedKafka]:
    groups = GroupSettings(consumer_heartbeat_interval_ms=100, consumer_assignment_interval_ms=0)
    with EmbeddedKafka(auto_create=False, groups=groups) as kafka:
        for topic in ("orders", "bills"):
            kafka.create_topic(topic, len(COUNTS))
            for partition, count in enumerate(COUNTS):
                kafka.produce(topic, ["x"] * count, partition=partition)
        yield kafka


@pytest.fixture
def kafka(shared: EmbeddedKafka) -> Iterator[EmbeddedKafka]:
    yield shared
    shared.heal()


@pytest.fixture
def run(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command; return its status, the cells that it printed, and what it said."""

    def _run(*arguments: str) -> tuple[int, list[list[str]], list[str]]:
        quick = ["-X", "retry.backoff.ms=10", "-X", "default.api.timeout.ms=5000"]
        status = main(["lag", *arguments, "-b", kafka.bootstrap, *quick])
        shown = capsys.readouterr()
        said = shown.err.splitlines()
        assert all(line.startswith("kafka-fast: ") for line in said)
        return status, [line.split() for line in shown.out.splitlines()], said

    return _run


def commit(kafka: EmbeddedKafka, group: str, offsets: dict[tuple[str, int], int]) -> None:
    with Consumer(bootstrap_servers=kafka.bootstrap, group_id=group) as consumer:
        consumer.commit({TopicPartition(*partition): at for partition, at in offsets.items()})


@contextmanager
def member(kafka: EmbeddedKafka, group: str, topics: Any, protocol: str) -> Iterator[Consumer]:
    """A member of a group that has been assigned something, if there is anything."""
    more = {"pattern": topics} if isinstance(topics, str) else {"topics": topics}
    consumer = Consumer(
        bootstrap_servers=kafka.bootstrap,
        group_id=group,
        group_protocol=protocol,
        enable_auto_commit=False,
    )
    with consumer:
        consumer.subscribe(**more)
        eventually(lambda: consumer.poll(0.02) or consumer.assignment())
        yield consumer


def rows(topic: str, *cells: tuple[Any, Any, Any]) -> list[list[str]]:
    return [[topic, str(index), *map(str, row)] for index, row in enumerate(cells)]


HEAD = ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG"]


def test_every_partition_of_a_topic_counts(kafka: EmbeddedKafka, run: Run) -> None:
    """Regression: of three partitions the two without a commit were left out, unread as they are.

    The lag was told as 0.
    """
    commit(kafka, "one-of-three", {("orders", 0): 5})
    status, cells, said = run("one-of-three")
    assert status == 0
    table = rows("orders", (5, 5, 0), ("none", 10, 10), ("none", 0, 0))
    assert cells == [HEAD, *table, ["TOTAL", "10"]]
    assert said == [FROM_BEGINNING]
    status, cells, said = run("one-of-three", "--reset", "latest")
    assert cells == [HEAD, *rows("orders", (5, 5, 0), ("none", 10, 0), ("none", 0, 0)),
                     ["TOTAL", "0"]]  # fmt: skip
    assert said == [FROM_END]


def test_all_is_committed(kafka: EmbeddedKafka, run: Run) -> None:
    commit(kafka, "all", {("orders", 0): 1, ("orders", 1): 10, ("orders", 2): 0})
    status, cells, said = run("all")
    assert (status, said) == (0, [])
    assert cells == [HEAD, *rows("orders", (1, 5, 4), (10, 10, 0), (0, 0, 0)), ["TOTAL", "4"]]


def test_the_beginning_of_a_log_that_was_cut(kafka: EmbeddedKafka, run: Run) -> None:
    kafka.create_topic("cut", 2)
    kafka.produce("cut", ["x"] * 8, partition=0)
    kafka.delete_records("cut", 0, 6)
    assert run("nobody", "cut")[1][1:] == [*rows("cut", ("none", 8, 2), ("none", 0, 0)),
                                           ["TOTAL", "2"]]  # fmt: skip


def test_topics_that_are_named(kafka: EmbeddedKafka, run: Run) -> None:
    commit(kafka, "named", {("orders", 1): 4})
    status, cells, _ = run("named", "bills")
    assert (status, [row[0] for row in cells]) == (0, ["TOPIC", *["bills"] * 3, "TOTAL"])
    assert cells[-1] == ["TOTAL", "15"]
    assert run("named", "orders", "bills")[1][-1] == ["TOTAL", str(5 + 6 + 15)]
    status, cells, said = run("named", "no-such-topic")
    assert (status, cells) == (1, [])
    assert said == ["kafka-fast: there is no topic 'no-such-topic' (yet), or it may not be seen"]
    status, cells, said = run("nobody-yet", "orders")
    assert (status, cells[-1]) == (0, ["TOTAL", "15"])
    assert said[0] == "kafka-fast: there is no group nobody-yet (yet)"


def test_nothing_to_list(run: Run) -> None:
    status, cells, said = run("nobody")
    assert (status, cells) == (1, [])
    assert said == [
        "kafka-fast: group nobody has committed nothing, and has no members that subscribe"
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_members_subscribe_to_is_listed(kafka: EmbeddedKafka, run: Run, protocol: str) -> None:
    """Also before anything is committed; and what was committed before in another topic."""
    group = f"subscribed-{protocol}"
    commit(kafka, group, {("bills", 0): 5, ("bills", 1): 10, ("bills", 2): 0})
    with member(kafka, group, ["orders", "not-yet"], protocol) as consumer:
        status, cells, said = run(group)
        table = rows("bills", (5, 5, 0), (10, 10, 0), (0, 0, 0))
        table += rows("orders", ("none", 5, 5), ("none", 10, 10), ("none", 0, 0))
        assert (status, cells) == (0, [HEAD, *table, ["TOTAL", "15"]])
        assert said[0].startswith("kafka-fast: there is no topic 'not-yet' (yet)")
        consumer.commit({TopicPartition("orders", 1): 7})
        assert run(group)[1][-1] == ["TOTAL", "8"]
        assert consumer.assignment(), "nobody was disturbed"
    assert run(group)[1][-1] == ["TOTAL", "8"], "by the commits alone"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pattern(kafka: EmbeddedKafka, run: Run, protocol: str) -> None:
    group = f"pattern-{protocol}"
    with member(kafka, group, "ord.*", protocol):
        assert run(group)[1] == [
            HEAD,
            *rows("orders", ("none", 5, 5), ("none", 10, 10), ("none", 0, 0)),
            ["TOTAL", "15"],
        ]


def test_json(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    commit(kafka, "in-json", {("orders", 1): 4})
    assert main(["lag", "in-json", "--output", "json", "-b", kafka.bootstrap]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    report = json.loads(shown.out)
    partitions = report.pop("partitions")
    assert report == {"group": "in-json", "state": "Empty", "total_lag": 11}
    assert partitions == [
        {"topic": "orders", "partition": index, "beginning": 0, "committed": at, "end": end,
         "lag": behind}
        for index, (at, end, behind) in enumerate([(None, 5, 5), (4, 10, 6), (None, 0, 0)])
    ]  # fmt: skip


def test_a_topic_that_is_gone(kafka: EmbeddedKafka, run: Run) -> None:
    kafka.create_topic("gone", 1)
    commit(kafka, "stale", {("gone", 0): 4, ("orders", 0): 4})
    kafka.faults.error(METADATA, UnknownTopicOrPartition, topic="gone")
    status, cells, said = run("stale")
    assert status == 0
    assert cells[1] == ["gone", "0", "4", "-", "-"]
    assert cells[-1] == ["TOTAL", "11"]
    assert said[0] == "kafka-fast: there is no topic 'gone' any more, or it may not be seen"


def test_a_group_that_rebalances(
    kafka: EmbeddedKafka, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka tells no subscriptions meanwhile: the command waits a moment, and then says so."""
    commit(kafka, "moving", {("bills", 0): 5})
    told: list[int] = []

    def rebalancing(answer: Any, node_id: int) -> None:
        told.append(node_id)
        for group in answer.groups:
            if len(told) <= most:
                group.group_state = "PreparingRebalance"

    most = 1_000
    kafka.faults.script(DESCRIBE_GROUPS, rebalancing)
    monkeypatch.setattr(looks, "REBALANCE_WAIT", 0.0)
    status, cells, said = run("moving")
    assert (status, cells[-1]) == (0, ["TOTAL", "10"])
    assert said[0].startswith("kafka-fast: group moving is rebalancing: what its members")
    monkeypatch.setattr(looks, "REBALANCE_WAIT", 60.0)
    told.clear()
    most = 2
    status, cells, said = run("moving")
    assert (status, len(said), len(told)) == (0, 1, 3)


@pytest.mark.parametrize("api", [DESCRIBE_GROUPS, CONSUMER_GROUP_DESCRIBE])
def test_what_may_not_be_seen_is_said(kafka: EmbeddedKafka, run: Run, api: int) -> None:
    commit(kafka, "hidden", {("bills", 0): 5, ("bills", 1): 10, ("bills", 2): 0})
    error = GroupAuthorizationFailed if api == DESCRIBE_GROUPS else TopicAuthorizationFailed
    kafka.faults.error(api, error)
    status, cells, said = run("hidden")
    assert (status, cells[-1]) == (0, ["TOTAL", "0"])
    assert said[0].startswith(
        f"kafka-fast: what the members of group hidden subscribe to is not known: {error.name}"
    )


def test_errors_that_pass_are_tried_again(kafka: EmbeddedKafka, run: Run) -> None:
    commit(kafka, "patient", {("bills", 0): 5})
    rules = [
        kafka.faults.error(api, CoordinatorLoadInProgress, count=2)
        for api in (CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS)
    ]
    status, cells, said = run("patient")
    assert (status, cells[-1], len(said)) == (0, ["TOTAL", "10"], 1)
    assert [rule.strikes for rule in rules] == [2, 2]


def test_an_old_broker(kafka: EmbeddedKafka, run: Run) -> None:
    """Before KIP-848 and flexible versions."""
    kafka.faults.limit_versions(KAFKA_2_1)
    with member(kafka, "old", ["orders"], "classic"):
        assert run("old")[1][-1] == ["TOTAL", "15"]


def test_no_broker(capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["-X", "default.api.timeout.ms=100"]
    assert main(["lag", "g", "-b", "127.0.0.1:1", *quick]) == 1
    assert "refused" in capsys.readouterr().err


def test_json_for_a_terminal_that_has_only_ascii(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the name of a group ended in a traceback where the locale does not have it."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    commit(kafka, "grüße", {("orders", 1): 4})
    assert main(["lag", "grüße", "--output", "json", "-b", kafka.bootstrap]) == 0
    out.seek(0)
    assert json.loads(out.read())["group"] == "grüße"
