"""Producer ids, epochs and sequences, as the leader of a partition checks them."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.transactions.init_producer_id import InitProducerIdRequest
from tests.integration.scenarios.steps import (
    new_producer,
)
from tests.integration.scenarios.wire import (
    WireClient,
    batch,
)


class Sequences:
    """Produces with chosen sequences; returns (error code, base offset)."""

    def __init__(self, client: WireClient, topic: str) -> None:
        """Take a producer id of its own."""
        self._client = client
        self._topic = topic
        self.producer = new_producer(client)

    def __call__(self, epoch: int, sequence: int, count: int = 1) -> tuple[int, int]:
        """Produce one batch."""
        records = batch(count, producer=(self.producer, epoch, sequence))
        answer = self._client.produce(self._topic, records)
        return answer.error_code, answer.base_offset


@pytest.fixture
def produce(client: WireClient, topic: str) -> Sequences:
    """An idempotent producer's hand."""
    return Sequences(client, topic)


OUT_OF_ORDER = (errors.OutOfOrderSequenceNumber.code, -1)
STALE_EPOCH = (errors.InvalidProducerEpoch.code, -1)


def test_an_unknown_producer_starts_anywhere_and_goes_on_in_order(produce: Sequences) -> None:
    assert produce(0, 7) == (0, 0)
    assert produce(0, 8, 3) == (0, 1)
    assert produce(0, 12) == OUT_OF_ORDER
    assert produce(0, 10) == OUT_OF_ORDER
    assert produce(0, 11) == (0, 4)


def test_five_batches_are_remembered(produce: Sequences) -> None:
    for sequence in range(6):
        assert produce(0, sequence) == (0, sequence)
    for sequence in range(1, 6):
        assert produce(0, sequence) == (0, sequence)
    assert produce(0, 0) == OUT_OF_ORDER
    assert produce(0, 6) == (0, 6)


def test_a_repetition_tells_when_the_first_was_written(client: WireClient, topic: str) -> None:
    producer = new_producer(client)
    records = batch(producer=(producer, 0, 0), timestamp=1234)
    assert client.produce(topic, records).log_append_time_ms == -1
    assert client.produce(topic, records).log_append_time_ms == 1234


def test_part_of_a_batch_is_no_repetition(produce: Sequences) -> None:
    assert produce(0, 0, 5) == (0, 0)
    assert produce(0, 0, 3) == OUT_OF_ORDER
    assert produce(0, 2, 3) == OUT_OF_ORDER
    assert produce(0, 0, 5) == (0, 0)


def test_a_new_epoch_starts_at_zero_and_fences_the_old(produce: Sequences) -> None:
    assert produce(0, 0) == (0, 0)
    assert produce(1, 1) == OUT_OF_ORDER
    assert produce(1, 0) == (0, 1)
    assert produce(0, 1) == STALE_EPOCH
    assert produce(0, 0) == STALE_EPOCH
    assert produce(3, 0) == (0, 2)


def test_the_sequence_wraps(produce: Sequences) -> None:
    top = 2**31 - 1
    assert produce(0, top - 1, 4) == (0, 0)
    assert produce(0, top - 1, 4) == (0, 0)
    assert produce(0, 2) == (0, 4)


def test_partitions_have_their_own_sequences(client: WireClient, topic: str) -> None:
    producer = new_producer(client)
    for partition in range(3):
        records = batch(producer=(producer, 0, 0))
        assert client.produce(topic, records, partition=partition).base_offset == 0


def test_a_corrupt_repetition_is_corrupt(client: WireClient, topic: str) -> None:
    records = batch(producer=(new_producer(client), 0, 0))
    assert client.produce(topic, records).error_code == 0
    assert client.produce(topic, records[:-1] + b"?").error_code == errors.CorruptMessage.code


@pytest.mark.parametrize("version", range(6))
def test_producer_ids_are_new_each_time(client: WireClient, version: int) -> None:
    first = new_producer(client)

    def init(**fields: Any) -> tuple[int, int]:
        request = InitProducerIdRequest(transaction_timeout_ms=60000, **fields)
        response = client.ask(request, version)
        return response.error_code, response.producer_id

    code, second = init(transactional_id=None)
    assert code == 0
    assert second > first
    assert init(transactional_id="")[0] == errors.InvalidRequest.code
    if version >= 3:
        code, third = init(transactional_id=None, producer_id=second, producer_epoch=0)
        assert code == 0
        assert third > second
        refused = init(transactional_id=None, producer_id=second)
        assert refused == (errors.InvalidRequest.code, -1)
