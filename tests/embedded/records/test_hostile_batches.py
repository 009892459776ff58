"""Every hostile batch of the corpus in a log of its own, and one consumer that reads all the logs.

What is wrong with one partition stops that partition, says why and how to go past it, and is no
other partition's business; whatever is not wrong is read on behind it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from kafka_fast import Consumer, TopicPartition
from kafka_fast.errors import UnreadableBatchError
from kafka_fast.protocol.apis.records.fetch import AbortedTransaction
from kafka_fast.record import RecordBatchBuilder
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.partitions.log import StoredBatch
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import FETCH, KAFKA_2_1
from tests.corpus.replay import LIMIT, Batches, batch_sequences, record_batches
from tests.embedded.consuming import fill
from tests.waiting import TIMEOUT, eventually

CASES = [*record_batches(), *batch_sequences()]
EPOCHS = [*(0 for _ in record_batches()), *(1 for _ in batch_sequences())]
"""Of the leaders that have written the cases."""

FAR = 10_000
"""The offset of a good record behind bytes that lead nowhere."""

PACE = 0.01
"""Seconds from one Fetch that brings nothing to the next, on the long run."""

WITNESSED = 300


@dataclass
class Log:
    """One partition of the test: a case, and what the consumer has got out of it."""

    case: Batches
    epoch: int
    partition: TopicPartition
    offsets: list[int] = field(default_factory=list)
    errors: list[UnreadableBatchError] = field(default_factory=list)

    @property
    def follower(self) -> int:
        """The offset of the good record behind the case."""
        next_offset = self.case.next_offset
        return FAR if next_offset is None or next_offset <= self.case.position else next_offset

    @property
    def is_stuck(self) -> bool:
        """Whether the bytes are sound as far as they go, and lead nowhere: no batch is whole."""
        return self.case.next_offset == self.case.position

    @property
    def is_settled(self) -> bool:
        is_nothing = self.is_stuck and not self.case.data
        return is_nothing or bool(self.errors) or self.follower in self.offsets


def good(offset: int) -> bytes:
    builder = RecordBatchBuilder(base_offset=offset)
    builder.append(None, b"good", 0)
    return builder.build()


def write(cluster: Cluster, log: Log, data: bytes, until: int) -> None:
    """Let whoever asks for an offset below `until` have these bytes, and put a good batch there."""
    written = cluster.state.partition(*log.partition).log
    written.replace(())
    written.end_offset = 0
    # Readers say the epoch of the batch before their position: the log has to know that one.
    written.begin_epoch(log.epoch)
    if until > 0:
        written.append(StoredBatch(0, until - 1, -1, data))
    if data or until == 0:  # else there is nothing below the end of the log, though it is ahead
        written.append(StoredBatch(until, until, -1, good(until)))
    cluster.state.changes += 1


class World:
    """All the logs, beside one that is sound, and their reader."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        self.kafka = kafka
        self.fetches = 0
        count = len(CASES)
        kafka.create_topic("hostile", count + 1)
        self.witness = TopicPartition("hostile", count)
        self.logs = {
            TopicPartition("hostile", number): Log(case, epoch, TopicPartition("hostile", number))
            for number, (case, epoch) in enumerate(zip(CASES, EPOCHS, strict=True))
        }
        for log in self.logs.values():
            kafka.on_cluster(
                lambda cluster, log=log: write(cluster, log, log.case.data, log.follower)
            )
        kafka.faults.script(FETCH, self.rewrite)
        self.consumer = Consumer(
            bootstrap_servers=kafka.bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            max_decompressed_batch_bytes=LIMIT,
            fetch_min_bytes=0,  # every Fetch is answered at once
        )
        self.consumer.assign([*self.logs, self.witness])
        for log in self.logs.values():
            self.consumer.seek(log.partition, log.case.position)
        self.witnessed: list[int] = []

    def rewrite(self, response: Any, node: int) -> None:
        """Let an answer have the case's bytes and nothing behind them, and its transactions."""
        self.fetches += 1
        for topic in response.responses:
            for part in topic.partitions:
                log = self.logs.get(TopicPartition("hostile", part.partition_index))
                if log is None or not part.records:
                    continue
                if log.case.data and part.records.startswith(log.case.data):
                    part.records = log.case.data
                part.aborted_transactions = [
                    AbortedTransaction(producer_id=producer, first_offset=offset)
                    for producer, offset in log.case.aborted
                ]

    def read_until(self, is_done: Callable[[Log], bool], logs: Iterable[Log]) -> None:
        deadline = time.monotonic() + TIMEOUT
        while waiting := [log for log in logs if not is_done(log)]:
            assert time.monotonic() < deadline, [(log.case.name, log.errors) for log in waiting]
            self.read()

    def read(self) -> None:
        try:
            records = self.consumer.poll(0.05)
        except UnreadableBatchError as error:
            self.logs[TopicPartition(error.topic, error.partition)].errors.append(error)
            return
        for record in records:
            if record.partition == self.witness.partition:
                self.witnessed.append(record.offset)
            else:
                self.logs[TopicPartition(record.topic, record.partition)].offsets.append(
                    record.offset
                )


@pytest.fixture(scope="module", params=["newest", "oldest"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """The logs after they were read, by a client of the newest and one of the oldest broker."""
    with EmbeddedKafka() as kafka:
        if request.param == "oldest":
            kafka.faults.limit_versions({**KAFKA_2_1, FETCH: (4, 4)})
        made = World(kafka)
        try:
            made.read_until(lambda log: log.is_settled, made.logs.values())
            yield made
        finally:
            made.consumer.close(0)


@pytest.fixture(params=range(len(CASES)), ids=map(str, CASES))
def log(world: World, request: pytest.FixtureRequest) -> Log:
    return world.logs[TopicPartition("hostile", request.param)]


def test_it_ends_as_its_line_says(log: Log) -> None:
    case = log.case
    if case.offsets is not None:
        assert [offset for offset in log.offsets if offset != log.follower] == [*case.offsets]
    assert log.offsets == sorted(set(log.offsets)), "nothing comes twice, or out of order"
    assert all(offset >= case.position for offset in log.offsets)
    assert bool(log.errors) == (case.next_offset is None or (log.is_stuck and bool(case.data)))
    for error in log.errors:
        position = log.offsets[-1] + 1 if log.offsets else case.position
        assert (error.topic, error.partition) == log.partition
        assert error.offset >= position
        assert f"{log.partition} at offset {error.offset}: " in str(error)
        assert re.search(case.refusal, str(error))
        assert "seek(" in str(error)
        if error.next_offset is not None:
            place = f"{log.partition.topic!r}, {log.partition.partition}"
            assert f"seek(TopicPartition({place}), {error.next_offset})" in str(error)


def test_other_partitions_are_read_and_nothing_spins(world: World) -> None:
    """Those that are refused are not fetched any more, and hold no memory."""
    before = len(world.witnessed)
    written = fill(world.kafka, world.witness.topic, WITNESSED, world.witness.partition)
    eventually(lambda: world.read() or len(world.witnessed) - before >= len(written))
    assert world.witnessed == list(range(before + len(written)))
    fetches, began = world.fetches, time.monotonic()
    while time.monotonic() - began < 50 * PACE:
        world.read()
    # The first may be under way when the count begins, and waits are a little shorter than PACE.
    assert world.fetches - fetches <= 2 + 1.1 * (time.monotonic() - began) / PACE
    metrics = world.consumer.metrics()
    assert metrics["buffered_bytes"] == 0
    refused = [log for log in world.logs.values() if log.errors and not log.is_stuck]
    assert metrics["unreadable_batches"] == len(refused)


def test_a_seek_passes_what_is_refused(world: World) -> None:
    """The place that the error names is the right one; where it names none, one far behind is."""
    logs = [log for log in world.logs.values() if log.errors or log.is_stuck]
    for log in logs:
        past = log.errors[-1].next_offset if log.errors else None
        behind = FAR if past is None else past
        data = log.case.data or b"nothing"
        world.kafka.on_cluster(
            lambda cluster, log=log, data=data, behind=behind: write(cluster, log, data, behind)
        )
        log.offsets.clear()
        log.errors.clear()
        world.consumer.seek(log.partition, behind)
    world.read_until(lambda log: bool(log.offsets), logs)
    for log in logs:
        assert len(log.offsets) == 1
        assert not log.errors
