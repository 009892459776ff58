"""The last epoch of a producer id: what comes after it is another id."""

from __future__ import annotations

import pytest

from kafka_fast import errors
from tests.integration.scenarios.transactions.conftest import Site
from tests.integration.scenarios.transactions.producers import (
    CONCURRENT,
    FENCED,
    TransactionalProducer,
    log_of,
    until,
)

LAST = 32766  # a producer never gets 32767, which is there to fence the last one

pytestmark = pytest.mark.long  # half a minute each


@pytest.fixture
def worn(site: Site) -> TransactionalProducer:
    """A producer in its last epoch: it takes as many requests to get there."""
    producer = site.producer()
    while producer.epoch < LAST:
        assert producer.ask_for_id().error_code in (0, CONCURRENT)
    return producer


def test_the_end_of_the_last_epoch(site: Site, topic: str, worn: TransactionalProducer) -> None:
    last = worn.copy()
    worn.written(topic)
    assert worn.ask_to_end(commit=True).error_code == 0
    marker = LAST
    if site.version == 2:
        assert (worn.producer_id > last.producer_id, worn.epoch) == (True, 0)
        marker = LAST + 1
    else:
        assert (worn.producer_id, worn.epoch) == (last.producer_id, LAST)
    worn.wait_for_state("CompleteCommit")
    assert log_of(site.client, topic) == [("data", LAST), ("COMMIT", marker)]
    again = last.copy().ask_to_end(commit=True)
    assert again.error_code == 0
    if site.version == 2:
        assert (again.producer_id, again.producer_epoch) == (worn.producer_id, 0)
    early = last.copy().ask_for_id(expected=(last.producer_id, 5))
    fenced = FENCED if site.version == 2 else errors.UnknownServerError.code
    assert early.error_code == fenced
    for _ in range(2):  # the second time as if the answer had been lost
        worn.ask_for_id(expected=(last.producer_id, LAST))
        assert (worn.producer_id > last.producer_id, worn.epoch) == (True, 0)


def test_a_fence_of_the_last_epoch(site: Site, topic: str, worn: TransactionalProducer) -> None:
    last = worn.copy()
    worn.written(topic)
    assert worn.copy().ask_for_id().error_code == CONCURRENT
    state = worn.wait_for_state("CompleteAbort")
    assert log_of(site.client, topic) == [("data", LAST), ("ABORT", LAST + 1)]
    if site.version == 2:
        assert (state.producer_id > last.producer_id, state.producer_epoch) == (True, 0)
    else:
        assert (state.producer_id, state.producer_epoch) == (last.producer_id, LAST + 1)
    until(lambda: worn.ask_for_id().error_code, lambda code: code == 0)
    assert worn.producer_id > last.producer_id
    assert worn.epoch == (1 if site.version == 2 else 0)
