"""Transactions that their producers do not end in time."""

from __future__ import annotations

from tests.integration.scenarios.transactions.conftest import Site
from tests.integration.scenarios.transactions.producers import (
    BAD_STATE,
    FENCED,
    STALE_EPOCH,
    fetch,
    log_of,
)

SHORT_MS = 300


def test_a_transaction_that_takes_too_long_is_aborted(site: Site, topic: str) -> None:
    """Its producer is fenced in version 1. In version 2 it is told, and may go on."""
    producer = site.unready_producer().init(timeout_ms=SHORT_MS)
    producer.written(topic)
    assert fetch(site.client, topic).last_stable_offset == 0
    producer.wait_for_state("CompleteAbort")
    assert log_of(site.client, topic) == [("data", 0), ("ABORT", 1)]
    assert fetch(site.client, topic).last_stable_offset == 2
    assert producer.described().producer_epoch == 1
    assert producer.write(topic) == STALE_EPOCH
    assert producer.write(topic, 1) == STALE_EPOCH
    assert producer.add(topic) == FENCED
    commit = producer.copy().ask_to_end(commit=True)
    abort = producer.copy().ask_to_end(commit=False)
    again = producer.copy().ask_for_id(expected=(producer.producer_id, producer.epoch))
    if site.version == 2:
        assert commit.error_code == BAD_STATE
        assert (abort.error_code, abort.producer_epoch) == (0, 1)
        assert (again.error_code, again.producer_epoch) == (0, 1)
    else:
        assert {commit.error_code, abort.error_code, again.error_code} == {FENCED}
    assert producer.described().producer_epoch == 1


def test_time_counts_from_the_first_partition(site: Site, topic: str) -> None:
    producer = site.unready_producer().init(timeout_ms=SHORT_MS)
    assert producer.described().transaction_start_time_ms == -1
    producer.written(topic)
    producer.end(commit=True)
    producer.written(topic)
    started = producer.described().transaction_start_time_ms
    producer.written(topic, 1)
    state = producer.wait_for_state("CompleteAbort")
    assert state.transaction_start_time_ms == started
