"""Members on real Kafka whose process cannot run Python while the group rebalances: they stay.

script: joins ─► C code keeps the GIL for two session timeouts ─► polls again, commits
test:                └─► a second member joins                        └─► both have their share
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest

from kafka_fast import Consumer
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.embedded import processes

pytestmark = [pytest.mark.broker, pytest.mark.slow]

SESSION_MS = 6_000  # what Kafka allows at least to classic members
PARTITIONS = 4
TIMEOUT = 60.0

SCRIPT = """
bootstrap, topic, hold_ms, *given = sys.argv[1:]
config = {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
consumer = Consumer({**config, **dict(pair.split("=") for pair in given)})
consumer.subscribe([topic], listener=Diary())
def poll_until(count):
    while len(consumer.assignment()) != count:
        consumer.poll(0.05)
poll_until(4)
member_id = consumer.group_metadata().member_id
print("holds the GIL", flush=True)
ctypes.PyDLL(None).usleep(int(hold_ms) * 1000)
Diary.heard.clear()
poll_until(2)
consumer.commit({partition: 0 for partition in consumer.assignment()})
print("lost" in Diary.heard, consumer.group_metadata().member_id == member_id, flush=True)
sys.stdin.readline()
consumer.close()
"""


@pytest.fixture(scope="module")
def kafka() -> Iterator[RealKafka]:
    """A node whose sessions end as soon by both protocols."""
    overrides = {
        "group.consumer.min.session.timeout.ms": SESSION_MS,
        "group.consumer.session.timeout.ms": SESSION_MS,
        "group.consumer.min.heartbeat.interval.ms": 1_000,
        "group.consumer.heartbeat.interval.ms": 1_000,
    }
    with RealKafka(1, overrides=overrides) as started:
        yield started


CLASSIC = {"session.timeout.ms": str(SESSION_MS), "heartbeat.interval.ms": "1000"}


@pytest.mark.parametrize(
    "given",
    [
        {**CLASSIC, "partition.assignment.strategy": "range"},
        {**CLASSIC, "partition.assignment.strategy": "cooperative-sticky"},
        {"group.protocol": "consumer"},
    ],
    ids=["eager", "cooperative", "consumer"],
)
def test_a_member_outlasts_a_rebalance_without_the_gil(
    kafka: RealKafka, given: dict[str, str]
) -> None:
    topic = f"held-{given.get('partition.assignment.strategy', 'consumer')}"
    kafka.create_topic(topic, partitions=PARTITIONS)
    arguments = [kafka.bootstrap, topic, str(2 * SESSION_MS + 4_000)]
    arguments += [f"{key}={value}" for key, value in given.items()]
    script = processes.start(SCRIPT, *arguments, prelude=processes.DIARY)
    assert script.stdin is not None
    assert script.stdout is not None
    with (
        script,
        Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": topic, **given}) as newcomer,
        contextlib.ExitStack() as stack,
    ):
        stack.callback(script.kill)  # before all waits for it; if all went well it has ended
        assert script.stdout.readline() == "holds the GIL\n"
        newcomer.subscribe([topic])
        began = time.monotonic()
        while len(newcomer.assignment()) != PARTITIONS // 2:
            assert len(newcomer.assignment()) <= PARTITIONS // 2  # else the other one is out
            assert time.monotonic() < began + TIMEOUT
            newcomer.poll(0.05)
        assert time.monotonic() - began > 2 * SESSION_MS / 1000  # it has waited for the other one
        assert script.stdout.readline() == "False True\n"
        out, err = script.communicate("\n", timeout=TIMEOUT)
        assert (script.returncode, out) == (0, ""), err
