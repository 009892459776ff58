"""Idempotence as the partition's leader checks it."""

from __future__ import annotations

import pytest

from kafka_fast.errors import InvalidProducerEpoch, OutOfOrderSequenceNumber
from kafka_fast.testing.broker.partitions.producers import (
    MAX_SEQUENCE,
    ProducerStates,
    WrittenBatch,
    last_sequence,
)

PID = 7


def write(states: ProducerStates, epoch: int, sequence: int, count: int, offset: int = 0) -> None:
    states.check(PID, epoch, sequence)
    last = last_sequence(sequence, count)
    states.add_batch(PID, epoch, WrittenBatch(sequence, last, offset, offset + count - 1, 0))


def test_an_unknown_producer_may_start_anywhere() -> None:
    states = ProducerStates()
    write(states, epoch=3, sequence=100, count=10)
    states.check(PID, 3, 110)


def test_a_gap_and_a_step_back_are_out_of_order() -> None:
    states = ProducerStates()
    write(states, 0, 0, 10)
    for sequence in (11, 9, 0):
        with pytest.raises(OutOfOrderSequenceNumber):
            states.check(PID, 0, sequence)
    states.check(PID, 0, 10)


def test_the_last_five_batches_are_recognised_and_no_more() -> None:
    states = ProducerStates()
    for number in range(6):
        write(states, 0, number * 10, 10, offset=number * 10)
    assert states.find_repeated(PID, 0, 0, 10) is None
    for number in range(1, 6):
        repeated = states.find_repeated(PID, 0, number * 10, 10)
        assert repeated is not None
        assert repeated.base_offset == number * 10
    with pytest.raises(OutOfOrderSequenceNumber):
        states.check(PID, 0, 0)


@pytest.mark.parametrize(("epoch", "sequence", "count"), [(1, 0, 10), (0, 0, 9), (0, 1, 9)])
def test_only_the_same_sequences_in_the_same_epoch_are_a_repetition(
    epoch: int, sequence: int, count: int
) -> None:
    states = ProducerStates()
    write(states, 0, 0, 10)
    assert states.find_repeated(PID, epoch, sequence, count) is None


def test_an_older_epoch_is_fenced_and_a_newer_starts_at_zero() -> None:
    states = ProducerStates()
    write(states, 1, 0, 10)
    with pytest.raises(InvalidProducerEpoch):
        states.check(PID, 0, 10)
    with pytest.raises(OutOfOrderSequenceNumber):
        states.check(PID, 2, 10)
    write(states, 2, 0, 5)
    assert states.find_repeated(PID, 1, 0, 10) is None
    states.check(PID, 2, 5)


def test_after_the_largest_sequence_comes_zero() -> None:
    states = ProducerStates()
    write(states, 0, MAX_SEQUENCE - 1, 2)
    states.check(PID, 0, 0)
    write(states, 0, 0, 1)
    assert last_sequence(MAX_SEQUENCE, 2) == 0
    assert last_sequence(MAX_SEQUENCE - 4, 10) == 4


def test_a_forgotten_producer_is_a_new_one() -> None:
    states = ProducerStates()
    write(states, 5, 0, 10)
    assert PID in states
    states.expire(PID)
    assert PID not in states
    states.check(PID, 0, 77)
