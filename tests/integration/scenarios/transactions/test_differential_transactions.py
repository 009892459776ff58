"""Random transactions, the same on real Kafka and on ours: the answers must agree."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kafka_fast import errors
from kafka_fast.record import ControlType
from kafka_fast.testing._kafka.real_kafka import RealKafka
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.transactions.settings import TransactionSettings
from tests.integration.scenarios.groups import fetch_offsets, ready, until
from tests.integration.scenarios.steps import new_topic, tell_coordinator, unique_name
from tests.integration.scenarios.transactions.producers import (
    TransactionalProducer,
    batches,
    fetch,
)
from tests.integration.scenarios.wire import WireClient, connected

SEEDS = range(2)
STEPS = 100
LIVES = 3  # of one transactional id, of which the newest has the right to go on
PARTITIONS = 3
UNSTABLE = errors.UnstableOffsetCommit.code


class Side:
    """One broker, and the lives of one transactional id there."""

    def __init__(self, client: WireClient) -> None:
        self.client = client
        self.topic = new_topic(client)
        self.group = unique_name()
        ready(client, self.group)
        tell_coordinator(client)
        first = TransactionalProducer(client).init()
        self.first_id = first.producer_id
        self.lives = [first, *(first.copy() for _ in range(LIVES - 1))]

    def act(self, life: int, action: str, *options: Any) -> tuple[Any, ...]:
        """Do one thing, and return what must agree."""
        producer = self.lives[life]
        result = getattr(self, action)(producer, *options)
        state = until(producer.described, lambda one: not one.transaction_state.startswith("Pre"))
        until(lambda: self.position()[1], lambda code: code != UNSTABLE or self._is_open(producer))
        partitions = sorted(
            (one.topic == self.topic, index) for one in state.topics for index in one.partitions
        )
        ours = [index for of_topic, index in partitions if of_topic]
        return (
            result,
            producer.epoch,
            producer.producer_id - self.first_id,
            state.transaction_state,
            state.producer_epoch,
            (ours, len(partitions)),
            self.position(),
        )

    def _is_open(self, producer: TransactionalProducer) -> bool:
        return producer.described().transaction_state == "Ongoing"

    def position(self) -> tuple[int, int]:
        """Return the group's committed offset, and an error code."""
        _, offsets = fetch_offsets(self.client, self.group, {self.topic: [0]}, require_stable=True)
        offset, _, _, code = offsets[self.topic, 0]
        return offset, code

    # ---- actions ----

    def init(self, producer: TransactionalProducer, again: bool) -> tuple[int, int]:
        expected = (producer.producer_id, producer.epoch) if again else (-1, -1)
        answer = producer.ask_for_id(expected=expected)
        return answer.error_code, answer.producer_epoch

    def add(self, producer: TransactionalProducer, partition: int) -> int:
        return producer.add(self.topic, partition)

    def verify(self, producer: TransactionalProducer, partition: int) -> list[int]:
        return producer.add_as_broker(self.topic, partition, verify=True)

    def write(
        self, producer: TransactionalProducer, partition: int, version: int, skip: int
    ) -> int:
        place = (self.topic, partition)
        sequence = max(producer.sequences.get(place, 0) + skip, 0)
        return producer.write(self.topic, partition, version=version, sequence=sequence)

    def add_offsets(self, producer: TransactionalProducer) -> int:
        return producer.add_offsets(self.group)

    def commit_offsets(
        self, producer: TransactionalProducer, offset: int, version: int
    ) -> list[int]:
        return producer.commit_offsets(self.group, {(self.topic, 0): offset}, version=version)

    def end(self, producer: TransactionalProducer, commit: bool, version: int) -> tuple[int, int]:
        answer = producer.ask_to_end(commit=commit, version=version)
        return answer.error_code, answer.producer_epoch

    def mark(self, producer: TransactionalProducer, partition: int, more: int, of: int) -> int:
        return producer.write_marker(
            self.topic, partition, epoch=max(producer.epoch + more, 0), transaction_version=of
        )

    # ---- the end ----

    def logs(self) -> list[Any]:
        """Return what readers get of all partitions."""
        results: list[Any] = []
        for index in range(PARTITIONS):
            data = fetch(self.client, self.topic, partition=index, isolation=1)
            aborted = [one.first_offset for one in data.aborted_transactions or ()]
            results.append((data.last_stable_offset, data.high_watermark, aborted))
            results += [
                (
                    one.base_offset,
                    one.producer_epoch,
                    ControlType(one.control_record().type) if one.is_control else one.base_sequence,
                )
                for one in batches(self.client, self.topic, index)
            ]
        return results


@pytest.fixture
def sides(broker: RealKafka, version: int) -> Iterator[list[Side]]:
    """Real Kafka and ours, with one transactional id on each."""
    settings = TransactionSettings(version, 3)
    with ExitStack() as stack:
        kafka = stack.enter_context(EmbeddedKafka(auto_create=False, transactions=settings))
        addresses = [broker.bootstrap, kafka.bootstrap]
        yield [Side(stack.enter_context(connected(address))) for address in addresses]


def action(source: random.Random, version: int) -> tuple[Any, ...]:
    """Return an action and its options; version 0 cannot write what is of version 2."""
    newer = version > 0 and source.random() < (0.8 if version == 2 else 0.2)
    partition = source.randrange(PARTITIONS)
    choices: list[tuple[Any, ...]] = [
        ("init", source.random() < 0.6),
        ("verify", partition),
        ("add_offsets",),
        ("commit_offsets", source.randrange(100), 5 if newer else source.choice([2, 4])),
        ("end", source.random() < 0.6, 5 if newer else 4),
        ("add", partition),
        (
            "write",
            partition,
            12 if newer else source.choice([9, 11]),
            source.choices([0, -1, 1], [20, 2, 1])[0],
        ),
        ("mark", partition, source.choice([0, 1]), source.choice([0, 2])),
    ]
    return source.choices(choices, [2, 1, 2, 3, 5, 6, 14, 0.3])[0]


@pytest.mark.parametrize("broker", ["real"], indirect=True)
@pytest.mark.parametrize("seed", SEEDS)
def test_transactions(sides: list[Side], version: int, seed: int) -> None:
    source = random.Random(seed)
    agreed: list[Any] = []
    for _ in range(STEPS):
        life = source.choices(range(LIVES), [8, 1, 1])[0]
        chosen = action(source, version)
        theirs, ours = (side.act(life, *chosen) for side in sides)
        assert theirs == ours, (life, chosen, agreed[-8:])
        agreed.append((life, chosen, theirs))
        if sides[0].lives[life].epoch > sides[0].lives[0].epoch:  # another one has the right now
            for side in sides:
                side.lives[0], side.lives[life] = side.lives[life], side.lives[0]
    theirs_read, ours_read = (side.logs() for side in sides)
    assert theirs_read == ours_read
