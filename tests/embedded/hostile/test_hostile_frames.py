"""Every hostile answer of the corpus from a real socket to a consumer, for a while.

The link that it came over is closed, the reason is said (which node, API, version, place), nobody
spins, and once the broker behaves the consumer reads on as if nothing had been.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator

import pytest

from kafka_fast import Consumer, KafkaTimeoutError, OffsetAndMetadata
from kafka_fast.control.connections.unreadable import UNREADABLE_PATIENCE
from kafka_fast.errors import KafkaError, UnknownBrokerError, UnsupportedVersionError
from kafka_fast.testing.broker.handlers import OFFERED
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import (
    API_VERSIONS,
    CONSUMER_GROUP_HEARTBEAT,
    FETCH,
    HEARTBEAT,
    LEAVE_GROUP,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
)
from tests.corpus.replay import Answer, answers
from tests.embedded.consuming import fill, partitions_of, read, values_by_partition
from tests.waiting import eventually

RECORDS = 20
HOSTILE = 0.4
"""Seconds."""

PATIENCE = 5.0
"""Seconds that a close may take, which is to take none."""

BACK_OFF_MS = 20
BACK_OFF_MAX_MS = 320  # four times doubled
GROUP_APIS = {*range(OFFSET_COMMIT, HEARTBEAT + 3), CONSUMER_GROUP_HEARTBEAT}
CASES = [case for case in answers() if case.api not in (LEAVE_GROUP, PRODUCE)]
GOODBYES = [case for case in answers() if case.api == LEAVE_GROUP]
PARTITIONS = partitions_of("t", 2)


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    """One broker with a topic of two partitions."""
    with EmbeddedKafka() as kafka:
        kafka.create_topic("t", 2)
        yield kafka


def offer(kafka: EmbeddedKafka, case: Answer) -> None:
    """Have the broker speak the case's version of its API, and no other."""
    versions = {**OFFERED, case.api: (case.version, case.version)}
    if case.api == API_VERSIONS:
        versions = dict(OFFERED)
    kafka.faults.limit_versions(versions)


def consumer_for(kafka: EmbeddedKafka, case: Answer) -> Consumer:
    group = {}
    if case.api in GROUP_APIS:
        group = {
            "group_id": "g",
            "heartbeat_interval_ms": 50,
            "session_timeout_ms": 6_000,  # of members that were made by joins answered in vain
            "max_poll_interval_ms": 6_000,
        }
    if case.api == CONSUMER_GROUP_HEARTBEAT:
        group = {"group_id": "g", "group_protocol": "consumer"}
    consumer = Consumer(
        bootstrap_servers=kafka.bootstrap,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        retry_backoff_ms=BACK_OFF_MS,
        retry_backoff_max_ms=BACK_OFF_MAX_MS,
        reconnect_backoff_ms=BACK_OFF_MS,
        reconnect_backoff_max_ms=BACK_OFF_MAX_MS,
        request_timeout_ms=200 if "silence" in case.name else 30_000,
        fetch_max_wait_ms=50,
        **group,
    )
    if case.api == OFFSET_COMMIT:
        consumer.assign(PARTITIONS)
        consumer.commit(dict.fromkeys(PARTITIONS, 0), sync=False)
    elif group:
        consumer.subscribe(["t"])
    else:
        consumer.assign(PARTITIONS)
    if case.api == OFFSET_FOR_LEADER_EPOCH:
        consumer.seek(PARTITIONS[0], OffsetAndMetadata(0, leader_epoch=0))
    return consumer


def endure(consumer: Consumer, *, at_most: float = math.inf) -> list[KafkaError]:
    """Poll while the broker is hostile, until some time at most; return what that raised."""
    raised = []
    until = min(time.monotonic() + HOSTILE, at_most)
    while time.monotonic() < until:
        try:
            assert not consumer.poll(0.02)
        except KafkaError as error:  # noqa: PERF203  one in each poll
            raised.append(error)
    return raised


@pytest.mark.parametrize("case", [case for case in CASES if case.kind != "ok"], ids=str)
def test_it_costs_the_link_and_nothing_else(
    kafka: EmbeddedKafka, case: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    offer(kafka, case)
    rule = kafka.faults.garble(lambda data: case.to(data[4:8]), api=case.api)

    def told() -> list[str]:
        texts = [str(record.getMessage()) for record in caplog.records]
        return [text for text in texts if re.search(case.refusal, text)]

    begun = time.monotonic()
    with consumer_for(kafka, case) as consumer:
        eventually(lambda: consumer.poll(0.01) is not None and rule.strikes >= 1 and told())
        # A node that goes on so is told in the end, on a busy machine within this very time.
        assert endure(consumer, at_most=begun + 0.9 * UNREADABLE_PATIENCE) == []
        assert re.search(r"127\.0\.0\.1:\d+", told()[0])
        # Doubled from one failure to the next, the backoff leaves room for few.
        assert rule.strikes <= (60 if case.name == "F17-downgrade-loop" else 12)
        metrics = consumer.metrics()
        assert metrics["link_failures"] >= 1
        if case.layer == "link":
            assert sum(metrics["links_closed"].values()) >= 1
        elif case.api != API_VERSIONS:
            assert sum(metrics["malformed_answers"].values()) >= 1
        assert metrics["buffered_bytes"] == 0
        if case.api in (METADATA, API_VERSIONS):  # whoever waits is told as well
            with pytest.raises(KafkaTimeoutError) as late:
                consumer.partitions_for("t2", 0.3)
            assert isinstance(late.value.__cause__, KafkaError)
            assert re.search(case.refusal, str(late.value))
        kafka.heal()
        written = {number: fill(kafka, "t", RECORDS, number) for number in range(2)}
        assert values_by_partition(read(consumer, 2 * RECORDS)) == written
        if case.api == OFFSET_COMMIT:
            stored = {("t", number): 0 for number in range(2)}
            eventually(lambda: kafka.on_cluster(lambda cluster: cluster.committed("g")) == stored)


@pytest.mark.parametrize("case", GOODBYES, ids=str)
def test_a_goodbye_that_is_answered_by_nonsense_keeps_nobody(
    kafka: EmbeddedKafka, case: Answer
) -> None:
    offer(kafka, case)
    with consumer_for(kafka, case) as consumer:
        eventually(lambda: consumer.poll(0.01) is not None and len(consumer.assignment()) == 2)
        rule = kafka.faults.garble(lambda data: case.to(data[4:8]), api=LEAVE_GROUP)
        began = time.monotonic()
    assert time.monotonic() - began < PATIENCE
    assert rule.strikes == 1, "said once, and not again over another link"
    with consumer_for(kafka, case) as successor:  # the broker has understood
        eventually(lambda: successor.poll(0.01) is not None and len(successor.assignment()) == 2)


def other_versions(kafka: EmbeddedKafka, **versions: int) -> None:
    """Have the broker offer no more than these versions, and break what is connected."""
    numbers = {"fetch": FETCH, "metadata": METADATA, "api_versions": API_VERSIONS}
    highest = {numbers[name]: (0, version) for name, version in versions.items()}
    kafka.faults.limit_versions({**OFFERED, **highest})
    kafka.kill(1)
    kafka.restart(1)


def test_versions_that_change_from_one_link_to_the_next(kafka: EmbeddedKafka) -> None:
    """F17: a broker that was downgraded, or another one behind the same address."""
    case = Answer("versions", b"", FETCH, 0, "message", "ok", "")
    with consumer_for(kafka, case) as consumer:
        for fetch, metadata, api_versions in ((18, 13, 4), (4, 1, 0), (12, 8, 2), (5, 0, 3)):
            other_versions(kafka, fetch=fetch, metadata=metadata, api_versions=api_versions)
            written = {number: fill(kafka, "t", RECORDS, number) for number in range(2)}
            assert values_by_partition(read(consumer, 2 * RECORDS)) == written


@pytest.mark.parametrize("case", [case for case in CASES if case.kind == "ok"], ids=str)
def test_what_is_well_formed_is_endured(kafka: EmbeddedKafka, case: Answer) -> None:
    """What the broker says makes no sense, or is an error nobody knows; one day it is over."""
    offer(kafka, case)
    rule = kafka.faults.garble(lambda data: case.to(data[4:8]), api=case.api)
    with consumer_for(kafka, case) as consumer:
        raised = endure(consumer)
        while rule.strikes < 1:
            raised += endure(consumer)
        for error in raised:
            assert "9999" in str(error) or isinstance(error, UnsupportedVersionError), error
        assert rule.strikes <= 20
        kafka.heal()
        if case.name == "F17-no-Fetch" or case.name == "F17-no-Metadata":
            return
        written = {number: fill(kafka, "t", RECORDS, number) for number in range(2)}
        records = read(consumer, 2 * RECORDS, passing=(UnknownBrokerError,))  # of before
        assert values_by_partition(records) == written


BREAKS = {"fin": "eof", "rst": "os_error", "silence": "timeout"}


@pytest.mark.parametrize("cut", BREAKS)
@pytest.mark.parametrize("after", [0, 3, 4, 8, 30])
def test_an_answer_to_fetch_that_breaks_off(kafka: EmbeddedKafka, after: int, cut: str) -> None:
    written = {number: fill(kafka, "t", RECORDS, number) for number in range(2)}
    if cut == "silence":
        kafka.faults.garble(lambda data: data[:after], api=FETCH, count=2)
    else:
        kafka.faults.cut(after, reset=cut == "rst", api=FETCH, count=3)
    case = Answer("silence", b"", FETCH, 18, "link", "", "")
    with consumer_for(kafka, case) as consumer:
        assert values_by_partition(read(consumer, 2 * RECORDS)) == written
        assert consumer.metrics()["links_closed"][BREAKS[cut]] >= 2
