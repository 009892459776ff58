"""InitProducerId with a transactional id: epochs, and who is fenced by them."""

from __future__ import annotations

import pytest

from kafka_fast import errors
from tests.integration.scenarios.steps import unique_name
from tests.integration.scenarios.transactions.conftest import Site
from tests.integration.scenarios.transactions.producers import (
    CONCURRENT,
    FENCED,
    STALE_EPOCH,
    UNKNOWN_ID,
    log_of,
    settled,
)

BAD_TIMEOUT = errors.InvalidTransactionTimeout.code
MAX_TIMEOUT_MS = 900_000


def test_a_transactional_id_keeps_its_producer_id(site: Site) -> None:
    producer = site.producer()
    other = producer.copy().init()
    assert (producer.epoch, other.epoch) == (0, 1)
    assert other.producer_id == producer.producer_id
    assert site.producer().producer_id != producer.producer_id


@pytest.mark.parametrize(
    ("timeout_ms", "code"),
    [
        (-1, BAD_TIMEOUT),
        (0, BAD_TIMEOUT),
        (1, 0),
        (MAX_TIMEOUT_MS, 0),
        (MAX_TIMEOUT_MS + 1, BAD_TIMEOUT),
    ],
)
def test_timeouts_that_the_broker_takes(site: Site, timeout_ms: int, code: int) -> None:
    producer = site.unready_producer()
    assert settled(lambda: producer.ask_for_id(timeout_ms=timeout_ms).error_code) == code


def test_the_next_epoch_for_who_has_the_last_one(site: Site) -> None:
    """KIP-360: a producer goes on after an error, and repeats a request whose answer was lost."""
    producer = site.producer()
    producer_id = producer.producer_id

    def ask(expected_id: int, epoch: int, version: int = 5) -> tuple[int, int]:
        answer = producer.copy().ask_for_id(expected=(expected_id, epoch), version=version)
        return answer.error_code, answer.producer_epoch

    assert ask(producer_id, 0) == (0, 1)
    assert ask(producer_id, 0) == (0, 1)
    assert ask(producer_id, 1) == (0, 2)
    assert ask(producer_id, 0) == (FENCED, -1)
    assert ask(producer_id, 0, version=3) == (STALE_EPOCH, -1)
    assert ask(producer_id, 50) == (FENCED, -1)
    assert ask(producer_id + 1, 0) == (FENCED, -1)
    assert producer.copy().init().epoch == 3
    assert ask(producer_id, 2) == (FENCED, -1)
    assert ask(producer_id, 3) == (0, 4)


def test_an_unknown_id_may_expect_anything(site: Site) -> None:
    producer = site.unready_producer()
    assert settled(lambda: producer.ask_for_id(expected=(77, 3)).error_code) == 0
    assert producer.epoch == 0


def test_half_an_identity_is_none(site: Site) -> None:
    producer = site.producer()
    for expected in [(producer.producer_id, -1), (-1, 0)]:
        assert producer.copy().ask_for_id(expected=expected).error_code == (
            errors.InvalidRequest.code
        )


def test_an_open_transaction_is_aborted_for_the_next_producer(site: Site, topic: str) -> None:
    producer = site.producer()
    zombie = producer.copy()
    zombie.written(topic)
    assert producer.ask_for_id().error_code == CONCURRENT
    zombie.wait_for_state("CompleteAbort")
    assert zombie.described().producer_epoch == 1
    producer.init()
    assert producer.epoch == 2
    assert log_of(site.client, topic) == [("data", 0), ("ABORT", 1)]
    assert zombie.add(topic) == FENCED
    assert zombie.write(topic) == STALE_EPOCH
    assert zombie.write(topic, 1) == STALE_EPOCH
    for commit in (True, False):
        assert zombie.ask_to_end(commit=commit).error_code == FENCED
    zombie_again = zombie.ask_for_id(expected=(zombie.producer_id, zombie.epoch))
    assert zombie_again.error_code == FENCED


def test_who_asks_for_the_next_epoch_in_a_transaction(site: Site, topic: str) -> None:
    """Version 2 takes the fence for the bump that was asked for; version 1 fences for good."""
    producer = site.producer()
    expected = (producer.producer_id, producer.epoch)
    producer.written(topic)
    assert producer.copy().ask_for_id(expected=expected).error_code == CONCURRENT
    producer.wait_for_state("CompleteAbort")
    answer = producer.copy().ask_for_id(expected=expected)
    if site.version == 2:
        assert (answer.error_code, answer.producer_epoch) == (0, 1)
    else:
        assert (answer.error_code, answer.producer_epoch) == (FENCED, -1)


def test_old_requests_are_told_of_fences_in_old_words(site: Site) -> None:
    zombie = site.producer()
    zombie.copy().init()
    group = unique_name()
    old, new = STALE_EPOCH, FENCED
    assert [zombie.add("t", version=3)] == [errors.UnknownTopicOrPartition.code]
    assert [zombie.add_offsets(group, version=one) for one in range(5)] == [old, old, new, new, new]
    ends = [zombie.ask_to_end(commit=True, version=one).error_code for one in range(5)]
    assert ends == [old, old, new, new, new]


def test_an_id_that_nobody_knows(site: Site, topic: str) -> None:
    known, unknown = site.producer(), site.unready_producer()
    unknown.producer_id, unknown.epoch = known.producer_id, known.epoch
    assert settled(lambda: unknown.add(topic)) == UNKNOWN_ID
    assert unknown.add_offsets(unique_name()) == UNKNOWN_ID
    for version in range(6):
        assert unknown.ask_to_end(commit=True, version=version).error_code == UNKNOWN_ID
    assert known.write(topic, transactional_id=unknown.transactional_id, version=11) == UNKNOWN_ID
    if site.version:
        answer = known.write(topic, transactional_id=unknown.transactional_id, version=12)
        assert answer == UNKNOWN_ID


def test_an_empty_id(site: Site, topic: str) -> None:
    nobody = site.producer()
    nobody.transactional_id = ""
    refused = errors.InvalidRequest.code
    assert nobody.ask_for_id().error_code == refused
    assert nobody.add(topic) == refused
    assert [nobody.ask_to_end(commit=True, version=one).error_code for one in (4, 5)] == [
        refused
    ] * 2
    assert nobody.described().error_code == refused
