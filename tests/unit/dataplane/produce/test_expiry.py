"""Expiry: futures fail in time, memory comes back when nothing can be sent from it any more."""

from __future__ import annotations

import pytest

from kafka_fast.control.producer.producer_messages import CompleteBatch
from kafka_fast.errors import DeliveryError, ErrorCode, KafkaTimeoutError, Outcome
from tests.unit.dataplane.rig import ProduceRig

TIMEOUT = 2.0


def expiring(**settings: object) -> ProduceRig:
    return ProduceRig(delivery_timeout=TIMEOUT, request_timeout=30.0, **settings)


def outcome(future: object) -> Outcome:
    error = future.exception()  # type: ignore[attr-defined]
    assert isinstance(error, DeliveryError)
    assert isinstance(error.first, KafkaTimeoutError)
    return error.outcome


def test_what_was_never_sent_fails_as_not_sent_and_gives_its_memory_back() -> None:
    rig = expiring(with_producer_id=False)
    future = rig.send()
    rig.turn()
    rig.advance(TIMEOUT - 0.01)
    assert not future.done()
    assert rig.reserved > 0
    rig.advance(0.02)
    assert outcome(future) is Outcome.NOT_SENT
    assert rig.reserved == 0
    assert rig.queues.stats()["expired_batches"] == 1


def test_the_data_plane_wakes_by_itself_when_a_batch_expires() -> None:
    rig = expiring()
    rig.route(0, 0)
    rig.send()
    until = rig.turn()
    assert 0.0 < until <= rig.machine.now + TIMEOUT + 0.001


def test_what_is_in_flight_fails_early_and_keeps_its_memory_until_its_request_ends() -> None:
    rig = expiring()
    future = rig.send()
    (sent,) = rig.requests()
    held = rig.reserved
    rig.advance(TIMEOUT + 0.01)
    assert outcome(future) is Outcome.MAYBE_WRITTEN
    assert rig.reserved == held > 0
    rig.answer(sent)
    assert rig.reserved == 0
    assert rig.reports() == []
    rig.send(b"next")
    (following,) = rig.requests()
    assert following.batches["t", 0].base_sequence == 1


def test_memory_of_an_expired_batch_comes_back_when_its_link_is_closed() -> None:
    rig = expiring()
    future = rig.send()
    assert len(rig.requests()) == 1
    rig.advance(TIMEOUT + 0.01)
    assert future.done()
    assert rig.reserved > 0
    rig.hang_up()
    assert rig.reserved == 0
    (report,) = rig.reports()
    assert report.queue.may_have_gap  # the sequences may have a gap
    assert report.batches == ()


def test_half_written_bytes_are_not_reused_by_later_records() -> None:
    """KAFKA-19012: the memory of an expired batch took other records while it was being written."""
    rig = expiring(choppiness=255, max_in_flight=1)
    rig.send(b"A" * 8000)
    rig.turner.turn()
    rig.machine.advance(rig.machine.now + TIMEOUT + 0.01)
    rig.turner.turn()
    for _ in range(4):
        rig.send_nowait(b"B" * 8000)
    (sent,) = rig.requests()
    assert sent.values() == [b"A" * 8000]


def test_what_came_back_expires_with_what_is_known_of_it() -> None:
    for code, expected in (
        (ErrorCode.NOT_ENOUGH_REPLICAS, Outcome.REJECTED),
        (ErrorCode.REQUEST_TIMED_OUT, Outcome.MAYBE_WRITTEN),
    ):
        rig = expiring()
        future = rig.send()
        (sent,) = rig.requests()
        rig.answer(sent, {0: code})
        (first,) = rig.reports()
        rig.advance(TIMEOUT + 0.01)
        assert outcome(future) is expected
        assert rig.reserved == 0
        (second,) = rig.reports()
        assert second.queue.generation > first.queue.generation
        assert second.queue.may_have_gap


def test_a_verdict_on_a_batch_that_has_expired_does_nothing() -> None:
    rig = expiring()
    future = rig.send()
    (sent,) = rig.requests()
    rig.answer(sent, {0: ErrorCode.NOT_ENOUGH_REPLICAS})
    (report,) = rig.reports()
    rig.advance(TIMEOUT + 0.01)
    rig.carry(CompleteBatch(report.batches[0], 5))
    rig.thaw(report)
    assert outcome(future) is Outcome.REJECTED
    rig.send()
    assert rig.requests() == []  # still frozen: the newer report waits for its verdict


def test_only_what_is_overdue_expires() -> None:
    rig = expiring(with_producer_id=False, batch_size=1, partitions=100)
    old = [rig.send(b"v", partition) for partition in range(100)]
    rig.advance(TIMEOUT / 2)
    young = [rig.send(b"v" * 300_000, partition % 4) for partition in range(8)]
    rig.advance(TIMEOUT / 2 + 0.001)
    rig.advance(0.05)
    assert all(future.done() for future in old)
    in_old_batches = 4  # joined a batch that was already open
    assert sum(future.done() for future in young) <= in_old_batches
    rig.advance(TIMEOUT)
    rig.advance(0.05)
    assert all(future.done() for future in young)
    assert rig.reserved == 0
    assert rig.queues.pending() == 0


@pytest.mark.parametrize("acks_zero", [False, True])
def test_a_request_without_an_answer_closes_its_link_in_time(acks_zero: bool) -> None:
    rig = ProduceRig(request_timeout=1.0, acks_zero=acks_zero, idempotent=not acks_zero)
    future = rig.send()
    assert len(rig.requests()) == 1
    assert future.done() is acks_zero
    rig.advance(1.01)
    assert rig.links[1].is_closed is not acks_zero
    assert (rig.reserved == 0) is acks_zero
