"""When a batch leaves, with which others, and who may be woken for it."""

from __future__ import annotations

import pytest

from kafka_fast.control.messages import LinkClosed
from kafka_fast.errors import KafkaTimeoutError
from tests.unit.dataplane.rig import ProduceRig

PACE = 100e-6


def test_without_a_linger_a_record_leaves_at_once() -> None:
    rig = ProduceRig()
    rig.send(b"one")
    (sent,) = rig.requests()
    assert sent.values() == [b"one"]


def test_a_batch_lingers_until_its_time_and_no_longer() -> None:
    rig = ProduceRig(linger=0.005)
    rig.send(b"one")
    opened = rig.machine.now
    until = rig.turn()
    assert rig.requests() == []
    assert until == pytest.approx(opened + 0.005, abs=1e-6)
    rig.machine.advance(opened + 0.0049)
    rig.send(b"two")
    assert rig.requests() == []
    rig.machine.advance(opened + 0.0051)
    (sent,) = rig.requests()
    assert sent.values() == [b"one", b"two"]


def test_a_batch_of_batch_size_leaves_before_its_linger_is_over() -> None:
    rig = ProduceRig(linger=3600.0, batch_size=1000)
    rig.send(bytes(800))
    assert rig.requests() == []
    rig.machine.take_data_wake()
    rig.send(bytes(300))
    assert rig.machine.take_data_wake()
    (sent,) = rig.requests()
    assert len(sent.values()) == 2


def test_a_flush_sends_what_lingers_and_wakes_the_data_plane() -> None:
    rig = ProduceRig(linger=3600.0, partitions=3)
    for partition in range(3):
        rig.send(b"v", partition)
    assert rig.requests() == []
    rig.machine.take_data_wake()
    serial = rig.turner.begin_flush()
    assert rig.machine.take_data_wake()
    (sent,) = rig.requests()
    assert sorted(sent.batches) == [("t", 0), ("t", 1), ("t", 2)]
    assert not rig.turner.is_flushed(serial)
    rig.answer(sent)
    assert rig.turner.is_flushed(serial)
    rig.turner.end_flush()


def test_a_record_sent_during_a_flush_does_not_linger() -> None:
    rig = ProduceRig(linger=3600.0)
    rig.turner.begin_flush()
    rig.send(b"late")
    (sent,) = rig.requests()
    assert sent.values() == [b"late"]


def test_who_waits_for_a_batch_makes_it_leave_alone() -> None:
    rig = ProduceRig(linger=3600.0, partitions=2)
    rig.send(b"other", 1)
    future = rig.send(b"waited for", 0)
    assert rig.requests() == []
    with pytest.raises(KafkaTimeoutError, match="not known after"):
        future.result(timeout=0)
    (sent,) = rig.requests()
    assert list(sent.batches) == [("t", 0)]


def test_a_batch_grows_to_256_kib_and_further_records_go_into_the_next() -> None:
    rig = ProduceRig(warm=True, linger=3600.0, batch_size=16_384)
    for _ in range(300):
        rig.send_nowait(bytes(1000))
    (full,) = rig.requests()
    assert 256_000 < full.batches["t", 0].size <= 262_144
    rig.turner.begin_flush()
    (rest,) = rig.requests()
    assert full.batches["t", 0].record_count + rest.batches["t", 0].record_count == 300


def test_a_larger_batch_size_is_what_a_batch_grows_to() -> None:
    rig = ProduceRig(linger=3600.0, batch_size=1 << 20)
    for _ in range(600):
        rig.send_nowait(bytes(1000))
    assert rig.requests() == []


def test_a_request_has_one_batch_of_each_partition() -> None:
    rig = ProduceRig(warm=True, linger=3600.0, partitions=2)
    for _ in range(900):
        rig.send_nowait(bytes(1000), 0)
    rig.send_nowait(b"small", 1)
    rig.turner.begin_flush()
    sent = rig.requests()
    assert [len(each.batches) for each in sent] == [2, 1, 1, 1]
    assert [batch.base_sequence for each in sent for key, batch in each.batches.items()
            if key == ("t", 0)] == sorted(
                each.batches["t", 0].base_sequence for each in sent)  # fmt: skip
    assert sum(each.batches["t", 0].record_count for each in sent) == 900


def test_requests_are_filled_up_to_the_coalesce_limit() -> None:
    rig = ProduceRig(linger=3600.0, partitions=8, coalesce_bytes=350_000)
    for partition in range(8):
        for _ in range(100):
            rig.send_nowait(bytes(1000), partition)
    rig.turner.begin_flush()
    sent = rig.requests()
    for each in sent[:-1]:
        assert 100_000 < sum(batch.size for batch in each.batches.values()) <= 350_000
    assert sorted(key for each in sent for key in each.batches) == [("t", n) for n in range(8)]


def test_a_batch_larger_than_the_coalesce_limit_goes_alone() -> None:
    rig = ProduceRig(partitions=2, coalesce_bytes=1000, linger=3600.0)
    rig.send(bytes(5000), 0)
    rig.send(bytes(5000), 1)
    rig.turner.begin_flush()
    assert [len(sent.batches) for sent in rig.requests()] == [1, 1]


def test_the_window_is_never_overrun_and_goes_on_with_each_answer() -> None:
    rig = ProduceRig(warm=True, max_in_flight=2)
    sent = []
    for number in range(4):
        rig.send(b"%d" % number)
        sent += rig.requests()
    assert [each.values() for each in sent] == [[b"0"], [b"1"]]
    rig.machine.take_data_wake()
    rig.send(b"4")
    assert not rig.machine.take_data_wake()  # a full window: nobody ends the sleep
    rig.answer(sent[0])
    (third,) = rig.requests()
    assert third.values() == [b"2", b"3", b"4"]


@pytest.mark.parametrize("max_in_flight", [1, 5])
def test_without_acks_the_window_goes_on_with_each_write(max_in_flight: int) -> None:
    """Regression: batches behind a full window stood still until something else woke the plane."""
    rig = ProduceRig(acks_zero=True, idempotent=False, max_in_flight=max_in_flight)
    values = [b"%d" % number + bytes(200_000) for number in range(3 * max_in_flight)]
    for value in values:  # each in a batch of its own
        rig.send_nowait(value)
    for _ in values:
        until = rig.turner.turn()
        if until == 0.0 or until > rig.machine.now:
            break  # it sleeps
    assert [value for sent in rig.written() for value in sent.values()] == values


def test_after_many_records_the_link_waits_before_the_next_request() -> None:
    rig = ProduceRig(warm=True)
    for _ in range(40):
        rig.send_nowait(b"v")
    assert len(rig.requests()) == 1
    rig.send_nowait(b"next")
    until = rig.turn()
    assert rig.requests() == []
    assert until == pytest.approx(rig.machine.now + PACE, abs=20e-6)
    rig.advance(PACE)
    assert len(rig.requests()) == 1


def test_pacing_does_not_hold_up_a_flush() -> None:
    rig = ProduceRig(warm=True)
    for _ in range(40):
        rig.send_nowait(b"v")
    assert len(rig.requests()) == 1
    rig.send_nowait(b"next")
    rig.turner.begin_flush()
    assert len(rig.requests()) == 1


def test_a_throttled_link_is_silent_until_then_and_its_batches_complete() -> None:
    rig = ProduceRig(max_in_flight=5)
    first = rig.send(b"one")
    (sent,) = rig.requests()
    rig.answer(sent, throttle_ms=500)
    assert first.done()
    throttled_until = rig.machine.now + 0.5
    rig.send(b"two")
    until = rig.turn()
    assert rig.requests() == []
    assert until == pytest.approx(throttled_until, abs=1e-5)
    rig.machine.advance(throttled_until)
    assert len(rig.requests()) == 1
    assert rig.plane.stats()["throttle_ms"] == 500


def test_the_time_of_requests_in_flight_does_not_run_while_the_broker_throttles() -> None:
    """Regression: the link was closed for an answer that the broker had announced for later."""
    rig = ProduceRig(warm=True, batch_size=1, request_timeout=30.0)
    rig.send(b"one")
    (first,) = rig.requests()
    rig.send(b"two")
    (second,) = rig.requests()
    rig.answer(first, throttle_ms=50_000)
    rig.advance(79.9)
    assert rig.take(LinkClosed) == []
    rig.answer(second)
    rig.send(b"three")
    assert len(rig.requests()) == 1
    rig.advance(30.1)
    assert len(rig.take(LinkClosed)) == 1, "it was not throttled again"


def test_a_pause_that_another_requests_answer_announces_holds_for_produce() -> None:
    rig = ProduceRig(warm=True, batch_size=1, request_timeout=30.0)
    rig.send(b"one")
    (sent,) = rig.requests()
    rig.pause_link(1, 50.0)
    rig.pause_link(7, 50.0)  # no such link
    rig.turn()
    rig.send(b"two")
    rig.advance(49.9)
    assert rig.requests() == []
    assert rig.plane.stats()["throttle_ms"] == 50_000
    rig.advance(29.9)
    assert rig.take(LinkClosed) == []
    rig.answer(sent)


def test_a_broker_cannot_silence_the_client_for_ever() -> None:
    rig = ProduceRig()
    rig.send()
    (sent,) = rig.requests()
    rig.answer(sent, throttle_ms=2**31 - 1)
    rig.send()
    assert rig.requests() == []
    rig.advance(60.001)
    assert len(rig.requests()) == 1


def test_while_its_links_are_throttled_news_of_partitions_without_one_are_heard() -> None:
    rig = ProduceRig()
    rig.send()
    (sent,) = rig.requests()
    rig.answer(sent, throttle_ms=50_000)
    (queue_id,) = rig.add_topic("elsewhere", 1)
    rig.turn()
    rig.machine.take_data_wake()
    rig.send(b"v", topic="elsewhere")
    assert rig.machine.take_data_wake()
    assert rig.wanted_routes() == [queue_id]


def test_batches_grow_while_the_window_of_a_slow_link_is_full() -> None:
    rig = ProduceRig(max_in_flight=1)
    rig.send()
    (sent,) = rig.requests()
    rig.machine.advance(rig.machine.now + 0.02)  # a round trip above 2 ms
    rig.answer(sent)
    rig.send()
    (sent,) = rig.requests()
    for _ in range(900):
        rig.send_nowait(bytes(1000))
    rig.machine.advance(rig.machine.now + 0.02)
    rig.answer(sent)
    (large,) = rig.requests()
    assert large.batches["t", 0].size > 262_144


def test_nothing_leaves_before_there_is_a_producer_id() -> None:
    rig = ProduceRig(with_producer_id=False)
    rig.send()
    assert rig.requests() == []
    rig.set_producer_id(9, 0)
    (sent,) = rig.requests()
    assert sent.batches["t", 0].producer_id == 9


def test_a_new_producer_id_is_taken_when_nothing_of_the_partition_is_in_flight() -> None:
    rig = ProduceRig(warm=True)
    rig.send()
    (first,) = rig.requests()
    rig.set_producer_id(9, 0)
    rig.send()
    (second,) = rig.requests()
    rig.answer(first)
    rig.answer(second)
    rig.send()
    (third,) = rig.requests()
    numbers = [
        (batch.producer_id, batch.producer_epoch, batch.base_sequence)
        for batch in (each.batches["t", 0] for each in (first, second, third))
    ]
    assert numbers == [(4711, 3, 1), (4711, 3, 2), (9, 0, 0)]


def test_what_may_be_written_is_sent_again_alone_batch_by_batch() -> None:
    """Regression: behind the first one that was acknowledged, new batches went along.

    They might all be accepted while the second one is refused once more. A broker remembers five
    batches, so it would not recognise the second one any more.
    """
    timed_out = 7
    rig = ProduceRig(warm=True)
    sent = []
    for _ in range(2):
        rig.send()
        sent += rig.requests()
    for request in sent:
        rig.answer(request, {0: timed_out})
    (report,) = rig.reports()
    rig.send()
    rig.thaw(report, single=True)
    for first in sent:
        (again,) = rig.requests()
        assert again.request == first.request
        rig.answer(again)
    (new,) = rig.requests()
    assert new.batches["t", 0].base_sequence == 3


def test_a_blocked_caller_makes_everything_leave() -> None:
    rig = ProduceRig(linger=3600.0, buffer_memory=65_536, partitions=4)
    for partition in range(4):
        rig.send(b"v", partition)
    assert rig.requests() == []
    rig.machine.take_data_wake()
    with pytest.raises(KafkaTimeoutError, match=r"no room in buffer\.memory"):
        rig.send(bytes(20_000))
    assert rig.machine.take_data_wake()


def test_a_record_that_buffer_memory_can_just_hold_is_taken() -> None:
    """Slabs come in powers of two: rounding up must not make a record impossible."""
    rig = ProduceRig(buffer_memory=700_000)
    rig.send(bytes(600_000))
    (sent,) = rig.requests()
    rig.answer(sent)
    rig.send(bytes(600_000))
    assert len(rig.requests()) == 1


def test_a_batch_grows_by_what_is_left_of_buffer_memory() -> None:
    rig = ProduceRig(buffer_memory=81_920, linger=3600.0, partitions=2)
    rig.send_nowait(bytes(30_000), 0)
    rig.send_nowait(bytes(15_000), 1)
    rig.send_nowait(bytes(15_000), 1)
    rig.send_nowait(bytes(10), 1)
    assert rig.reserved == 81_920
