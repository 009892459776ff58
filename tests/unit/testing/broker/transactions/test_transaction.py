"""The states of a transactional id, step by step; the answers of Apache Kafka are in scenarios."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from kafka_fast.errors import (
    BrokerError,
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
    UnknownServerError,
    UnsupportedVersion,
)
from kafka_fast.testing.broker.transactions.transaction import MAX_EPOCH, State, Transaction

LAST = MAX_EPOCH - 1
PARTITION = ("t", 0)
NOW_MS, TIMEOUT_MS = 1000, 60_000


@pytest.fixture
def ids() -> Iterator[int]:
    """Producer ids that nobody has."""
    return itertools.count(100)


class Hand:
    """Moves one transaction."""

    def __init__(self, ids: Iterator[int]) -> None:
        self._ids = ids
        self.transaction = Transaction("x", 7, TIMEOUT_MS)

    def renew(self, expected: tuple[int, int] | None = None) -> bool:
        return self.transaction.renew(TIMEOUT_MS, expected, self._ids.__next__)

    def add(self, epoch: int = 0, *, written: int | None = None) -> None:
        self.transaction.add_partitions(7, epoch, [PARTITION], NOW_MS, written=written)

    def end(
        self, *, commit: bool, epoch: int = 0, version: int = 2, producer: int = 7, written: int = 2
    ) -> None:
        self.transaction.decide_end(
            producer,
            epoch,
            commit=commit,
            version=version,
            unix_ms=NOW_MS,
            new_id=self._ids.__next__,
            written=written,
        )

    def fence(self, version: int) -> None:
        self.transaction.fence(version, self._ids.__next__)

    @property
    def identity(self) -> tuple[int, int, int]:
        one = self.transaction
        return one.producer_id, one.epoch, one.last_epoch


@pytest.fixture
def hand(ids: Iterator[int]) -> Hand:
    """An id with epoch 0."""
    made = Hand(ids)
    assert made.renew()
    return made


def refused(step: object, error: type[BrokerError], **options: object) -> None:
    with pytest.raises(error):
        step(**options)  # type: ignore[operator]


def test_a_transaction_of_each_version(hand: Hand) -> None:
    for version, epoch in [(0, 0), (2, 1)]:
        hand.add()
        assert hand.transaction.state is State.ONGOING
        assert hand.transaction.started_ms == NOW_MS
        hand.end(commit=True, version=version)
        assert hand.transaction.state is State.PREPARE_COMMIT
        hand.transaction.complete()
        assert hand.transaction.state is State.COMPLETE_COMMIT
        assert (hand.transaction.epoch, hand.transaction.partitions) == (epoch, {})


def test_what_nothing_can_be_asked_of(hand: Hand) -> None:
    hand.add()
    hand.end(commit=True)
    for step in (hand.renew, hand.add):
        refused(step, ConcurrentTransactions)
    for commit in (True, False):
        refused(hand.end, ConcurrentTransactions, commit=commit, epoch=9)
        refused(hand.end, ProducerFenced, commit=commit, epoch=9, version=0)
    assert not hand.transaction.may_expire


def test_an_open_transaction_is_to_be_fenced(hand: Hand) -> None:
    hand.add()
    assert not hand.renew()
    hand.fence(0)
    assert (hand.transaction.state, hand.identity) == (State.PREPARE_ABORT, (7, 1, -1))
    hand.transaction.complete()
    refused(hand.renew, ProducerFenced, expected=(7, 0))
    assert hand.renew()
    assert hand.identity == (7, 2, -1)


def test_a_fence_of_version_2_remembers_the_epoch(hand: Hand) -> None:
    hand.add()
    hand.fence(2)
    assert hand.identity == (7, 1, 0)
    hand.transaction.complete()
    assert hand.renew((7, 0))
    assert hand.identity == (7, 1, 0)


def test_the_last_epoch_in_version_1(hand: Hand) -> None:
    hand.transaction.epoch = LAST
    refused(hand.renew, UnknownServerError, expected=(7, 5))
    hand.add(LAST)
    hand.fence(0)
    assert hand.identity == (7, MAX_EPOCH, -1)
    hand.transaction.complete()
    assert hand.renew()
    assert hand.identity == (100, 0, -1)


def test_the_last_epoch_in_version_2(hand: Hand) -> None:
    hand.transaction.epoch = LAST
    hand.add(LAST)
    hand.end(commit=True, epoch=LAST)
    assert (hand.identity, hand.transaction.next_identity) == ((7, MAX_EPOCH, LAST), (100, 0))
    hand.transaction.complete()
    assert hand.identity == (100, 0, LAST)
    hand.end(commit=True, epoch=LAST)  # as if the answer had been lost
    refused(hand.end, InvalidTxnState, commit=False, epoch=LAST)
    refused(hand.end, InvalidProducerIdMapping, commit=False, epoch=5)
    assert hand.renew((7, LAST))
    assert hand.identity == (100, 0, LAST)


def test_what_a_cluster_of_version_0_cannot_write(hand: Hand) -> None:
    for step, options in [(hand.add, {"written": 0}), (hand.end, {"commit": False, "written": 0})]:
        refused(step, UnsupportedVersion, **options)
        assert hand.transaction.state is State.EMPTY
        refused(hand.add, ConcurrentTransactions)
        refused(hand.renew, ConcurrentTransactions)
        refused(hand.end, ConcurrentTransactions, commit=False, version=0)
        hand.transaction.is_stuck = False
    hand.add()
    hand.add(written=0)  # the partition is in it: nothing is to be written
