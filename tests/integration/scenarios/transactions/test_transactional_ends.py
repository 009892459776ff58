"""EndTxn: which end which state takes, in both versions of the protocol."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_fast import errors
from tests.integration.scenarios.transactions.conftest import Site
from tests.integration.scenarios.transactions.producers import (
    BAD_STATE,
    CONCURRENT,
    FENCED,
    STALE_EPOCH,
    TransactionalProducer,
    log_of,
    no_delay,
    settled,
    until,
)

TOO_FEW = errors.NotEnoughReplicas.code
End = Callable[[bool, int], tuple[int, int]]


def end_of(producer: TransactionalProducer, epoch: int, version: int) -> End:
    """Return a step: end a transaction in an epoch relative to one; error code and new epoch."""

    def end(commit: bool, difference: int) -> tuple[int, int]:
        one = producer.copy()
        one.epoch = epoch + difference
        answer = until(
            lambda: one.ask_to_end(commit=commit, version=version),
            lambda answer: no_delay([answer.error_code]),
        )
        return answer.error_code, answer.producer_epoch

    return end


def test_an_end_of_nothing(site: Site) -> None:
    for version in (4, 5):
        producer = site.producer()
        end = end_of(producer, 0, version)
        assert end(True, 0) == (BAD_STATE, -1)
        if version == 4:
            assert end(False, 0) == (BAD_STATE, -1)
        elif site.version == 0:
            assert end(False, 0) == (errors.UnsupportedVersion.code, -1)
        else:  # the producer cannot know whether its records came through
            assert end(False, -1) == (FENCED, -1)
            assert end(False, 0) == (0, 1)
            assert producer.wait_for_state("CompleteAbort").transaction_start_time_ms > 0


def test_ends_of_version_1(site: Site, topic: str) -> None:
    producer = site.producer(protocol=1)
    producer.written(topic)
    end = end_of(producer, 0, 4)
    assert end(True, 1) == (FENCED, -1)
    assert end(True, -1) == (FENCED, -1)
    assert end(True, 0) == (0, -1)
    producer.wait_for_state("CompleteCommit")
    assert end(True, 0) == (0, -1)
    assert end(False, 0) == (BAD_STATE, -1)
    producer.written(topic)
    assert end(False, 0) == (0, -1)
    producer.wait_for_state("CompleteAbort")
    assert end(False, 0) == (0, -1)
    assert end(True, 0) == (BAD_STATE, -1)
    for commit in (True, False):
        for difference in (-1, 1):
            assert end(commit, difference) == (FENCED, -1)
    assert log_of(site.client, topic) == [("data", 0), ("COMMIT", 0), ("data", 0), ("ABORT", 0)]


def test_ends_of_version_2(site: Site, topic: str) -> None:
    if site.version == 0:
        producer = site.producer(protocol=1)
        producer.written(topic)
        answer = producer.ask_to_end(commit=True, version=5)
        assert answer.error_code == errors.UnsupportedVersion.code
        return
    producer = site.producer(protocol=2)
    producer.written(topic)
    end = end_of(producer, 0, 5)
    assert end(True, 1) == (FENCED, -1)
    assert end(True, -1) == (FENCED, -1)
    assert end(True, 0) == (0, 1)
    producer.wait_for_state("CompleteCommit")
    assert end(True, -1) == (FENCED, -1)
    assert end(True, 0) == (0, 1)
    assert end(False, 0) == (BAD_STATE, -1)
    assert end(True, 1) == (BAD_STATE, -1)
    assert end(False, 1) == (0, 2)
    producer.wait_for_state("CompleteAbort")
    assert end(False, 1) == (0, 2)
    assert end(True, 1) == (BAD_STATE, -1)
    assert end(True, 2) == (BAD_STATE, -1)
    assert end(False, 0) == (FENCED, -1)
    assert end(False, 2) == (0, 3)
    assert log_of(site.client, topic) == [("data", 0), ("COMMIT", 1)]


def test_an_end_that_was_lost_before_the_next_epoch(site: Site, topic: str) -> None:
    """What a producer of version 2 knows before the answer is its last epoch: that one goes on."""
    producer = site.producer()
    former = (producer.producer_id, producer.epoch)
    producer.written(topic)
    producer.end(commit=True)
    answer = producer.copy().ask_for_id(expected=former)
    assert (answer.error_code, answer.producer_epoch) == (0, 1)


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("protocol", [1, 2])
def test_while_markers_are_missing(site: Site, topic: str, commit: bool, protocol: int) -> None:
    """A partition that knows a later epoch takes no marker: the end is decided and never done."""
    if site.version < 2 <= protocol and site.version == 0:
        protocol = 1
    producer = site.producer(protocol=protocol)
    producer.written(topic)
    assert producer.write_marker(topic, epoch=7, coordinator_epoch=9) == 0
    zombie = producer.copy()
    assert producer.ask_to_end(commit=commit).error_code == 0
    prepared = "PrepareCommit" if commit else "PrepareAbort"
    assert producer.described().transaction_state == prepared
    assert producer.epoch == (1 if protocol == 2 else 0)
    present = producer.epoch
    for epoch in (present - 1, present, present + 1):
        zombie.epoch = epoch
        of_1 = CONCURRENT if epoch == present else FENCED
        for again in (True, False):
            assert zombie.copy().ask_to_end(commit=again, version=4).error_code == of_1
            assert zombie.copy().ask_to_end(commit=again, version=5).error_code == CONCURRENT
        assert zombie.add(topic) == CONCURRENT
        assert zombie.add_as_broker(topic, 0) == [CONCURRENT]
        assert zombie.add_as_broker(topic, 0, verify=True) == [of_1]
        assert zombie.write(topic, 1, version=11) == (TOO_FEW if epoch == present else STALE_EPOCH)
        assert zombie.write(topic, 1, version=12) == CONCURRENT
    assert producer.copy().ask_for_id().error_code == CONCURRENT
    assert producer.described().transaction_state == prepared


def test_the_next_transaction_waits_for_the_markers_of_the_last(site: Site, topic: str) -> None:
    producer = site.producer()
    for _ in range(20):
        producer.written(topic)
        assert settled(lambda: producer.ask_to_end(commit=True).error_code) == 0
    producer.wait_for_state("CompleteCommit")
    kinds = [kind for kind, _ in log_of(site.client, topic)]
    assert kinds == ["data", "COMMIT"] * 20
