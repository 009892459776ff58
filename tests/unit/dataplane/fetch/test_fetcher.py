"""When the data plane fetches: the budget, the pace, links that come and go."""

from __future__ import annotations

import random

import pytest

from kafka_fast.control.consumer.consumer_messages import StreamsStopped
from kafka_fast.control.messages import LinkClosed, RawResponse, Throttled
from kafka_fast.dataplane.fetch._chunk import chunk_done
from tests.unit.dataplane.fetch.fetch_rig import MAX_WAIT, PIECE, FetchRig, answer_to, batch, part

MIB = 1 << 20
ALMOST = MIB - 1000  # with what an answer has besides records it is still below
BAD_FRAME = 5


def big(base_offset: int, size: int) -> bytes:
    """Return a record batch of about `size` bytes."""
    return batch(base_offset, value=bytes(size - 80))


# ---- the budget ----


def test_a_link_asks_for_a_piece_of_its_share() -> None:
    rig = FetchRig(partitions=8, links=2, start=False, buffer_bytes=64 * MIB)
    for stream_id in range(8):
        rig.start(stream_id, link_id=1 if stream_id < 7 else 2)
    assert rig.request(1).request.max_bytes == PIECE
    assert rig.request(2).request.max_bytes == MIB  # what its one partition may bring
    assert rig.streams.stats()["reserved_bytes"] == PIECE + MIB


def test_a_piece_is_at_most_an_eighth_of_the_share() -> None:
    rig = FetchRig(partitions=8, links=2, start=False, buffer_bytes=24 * MIB)
    for stream_id in range(8):
        rig.start(stream_id, link_id=1 if stream_id < 6 else 2)
    assert rig.request(1).request.max_bytes == 24 * MIB // 2 // 8


def asked_after(rig: FetchRig, *, waited: float, taken: float, count: int = 8) -> int:
    """Answer the next request for `count` partitions of eight; return what is asked for then.

    Args:
        rig: of eight partitions.
        waited: seconds until the first bytes of the answer come.
        taken: seconds from there to the last ones.
        count: how many partitions bring a share of what was asked for.
    """
    asked = rig.request()
    share = asked.request.max_bytes // 8 - 1000
    parts = [
        part(number, big(offset, share) if number < count else b"")
        for (_, number), offset in asked.positions.items()
    ]
    data = answer_to(asked, {"t": parts})
    rig.advance(waited)
    rig.arrive(data[:1000])
    rig.advance(taken)
    rig.arrive(data[1000:])
    rig.streams.take_chunks(100)
    following = rig.request()
    most = following.request.max_bytes
    rig.answer(following, {"t": [part(number) for _, number in following.positions]})
    return most


def test_a_link_asks_for_more_where_the_way_is_long_and_for_less_where_it_is_short() -> None:
    rig = FetchRig(partitions=8, version=6)  # without sessions each answer names everything
    assert asked_after(rig, waited=0.020, taken=0.002) == PIECE * 9 // 8
    assert asked_after(rig, waited=0.003, taken=0.002) == PIECE
    assert asked_after(rig, waited=0.003, taken=0.002) == PIECE
    asked = [asked_after(rig, waited=0.020, taken=0.002) for _ in range(15)]
    assert asked == sorted(asked)
    assert asked[5] > 2 * PIECE
    assert asked[-2:] == [4 * PIECE, 4 * PIECE]  # an eighth of the budget
    assert asked_after(rig, waited=0.001, taken=0.020) == 2 * PIECE
    assert asked_after(rig, waited=0.001, taken=0.020) == PIECE


def test_an_answer_that_had_little_to_bring_says_nothing_of_the_way() -> None:
    rig = FetchRig(partitions=8, version=6)
    assert asked_after(rig, waited=0.4, taken=0.001, count=3) == PIECE


def test_fetch_max_bytes_is_a_limit() -> None:
    rig = FetchRig(partitions=8, max_bytes=MIB + 5)
    assert rig.request().request.max_bytes == MIB + 5


def test_without_room_nothing_is_fetched_until_there_is() -> None:
    rig = FetchRig(partitions=2, buffer_bytes=2 * MIB)
    size = len(big(10, ALMOST))
    rig.answer(rig.request(), {"t": [part(0, big(10, ALMOST)), part(1)]})
    rig.answer(rig.request(), {"t": [part(1, big(10, ALMOST))]})
    assert rig.requests() == []
    assert rig.streams.stats()["buffered_bytes"] >= 2 * size
    rig.advance(100.0)
    assert rig.requests() == []
    first, second = rig.streams.take_chunks(10)
    assert rig.requests() == []  # taken, not read
    chunk_done(first)
    assert rig.request().request.max_bytes >= MIB - 2000
    stats = rig.streams.stats()
    assert stats["buffered_bytes"] + stats["reserved_bytes"] <= 2 * MIB
    assert stats["pinned_bytes"] >= size
    del first
    assert rig.streams.stats()["pinned_bytes"] == 0
    del second
    assert rig.streams.stats()["buffered_bytes"] == 0


def test_a_full_buffer_reads_on_into_the_memory_that_was_read() -> None:
    """Fresh pages cost as much as what is read into them."""
    rig = FetchRig(partitions=1, buffer_bytes=4 * MIB)
    size = MIB // 4
    offset = 10

    def fill() -> None:
        nonlocal offset
        rig.advance(0.1)
        while asked := rig.requests():
            rig.answer(asked[0], {"t": [part(0, big(offset, size))]})
            rig.advance(0.1)
            offset += 1

    fill()
    held = rig.streams.take_chunks(4)
    for chunk in held:
        chunk_done(chunk)
    fill()
    stats = rig.streams.stats()
    assert stats["buffered_bytes"] + stats["pinned_bytes"] > 4 * MIB  # what the user holds is more
    del chunk, held[0]
    assert rig.streams.stats()["cached_bytes"] > size
    chunk_done(rig.streams.take_chunks(1)[0])
    rig.answer(rig.request(), {"t": [part(0, big(offset, size))]})
    assert rig.streams.stats()["cached_bytes"] in range(size, 2 * size)  # of two one was taken


def test_a_frame_is_buffered_until_its_last_chunk_is_done() -> None:
    rig = FetchRig(partitions=2)
    rig.answer(rig.request(), {"t": [part(0, batch(10)), part(1, batch(10))]})
    buffered = rig.streams.stats()["buffered_bytes"]
    first, second = rig.streams.take_chunks(10)
    chunk_done(first)
    chunk_done(first)
    assert rig.streams.stats()["buffered_bytes"] == buffered > 0
    del first
    assert rig.streams.stats()["buffered_bytes"] == buffered
    chunk_done(second)
    stats = rig.streams.stats()
    assert (stats["buffered_bytes"], stats["pinned_bytes"]) == (0, buffered)
    del second
    assert rig.streams.stats()["pinned_bytes"] == 0


def test_one_record_may_overdraw() -> None:
    rig = FetchRig(partitions=2, buffer_bytes=MIB)
    rig.answer(rig.request(), {"t": [part(0, big(10, 5 * MIB)), part(1)]})
    (chunk,) = rig.streams.take_chunks(10)
    assert len(chunk.data) > 5 * MIB - 100
    assert rig.streams.stats()["buffered_bytes"] > 5 * MIB - 100
    assert rig.requests() == []
    del chunk
    assert rig.request().request.max_bytes == MIB


def test_neglected_streams_do_not_starve_the_others() -> None:
    rig = FetchRig(partitions=2, links=2, start=False, buffer_bytes=2 * MIB)
    rig.start(0, link_id=1)
    rig.answer(rig.request(1), {"t": [part(0, big(10, ALMOST))]})
    rig.answer(rig.request(1), {"t": [part(0, big(11, ALMOST))]})
    assert rig.requests(1) == []
    rig.start(1, link_id=2)
    asked = rig.request(2)  # beyond the limit: nothing of it is unread
    assert asked.request.max_bytes == MIB
    assert rig.streams.stats()["overdrafts"] == 1
    rig.answer(asked, {"t": [part(1, batch(10))]}, link_id=2)
    assert rig.requests(2) == []
    chunks = rig.streams.take_chunks(10)
    chunk_done(chunks[-1])
    assert rig.request(2).positions == {("t", 1): 11}


def test_a_seek_gives_room_at_once() -> None:
    rig = FetchRig(partitions=2, buffer_bytes=2 * MIB)
    rig.answer(rig.request(), {"t": [part(0, big(10, ALMOST)), part(1)]})
    rig.answer(rig.request(), {"t": [part(0, big(11, ALMOST))]})
    assert rig.requests() == []
    rig.streams.set_generation(0, 1)
    assert rig.streams.stats()["buffered_bytes"] == 0
    assert rig.offsets() == []
    assert rig.request().forgotten == {("t", 0)}


@pytest.mark.parametrize("seed", range(5))
def test_the_budget_holds_whatever_happens(seed: int) -> None:
    chance = random.Random(seed)
    limit, largest = 4 * MIB, 64 * 1024
    rig = FetchRig(partitions=6, links=3, start=False, buffer_bytes=limit, choppiness=64)
    generations = [0] * 6
    for stream_id in range(6):
        rig.start(stream_id, link_id=stream_id % 3 + 1)
    held = []
    for _ in range(300):
        for link_id in rig.links:
            for asked in rig.requests(link_id):
                left = asked.request.max_bytes
                parts = []
                for stream_id in range(link_id - 1, 6, 3):
                    offset = asked.positions.get(("t", stream_id))
                    full = asked.request.session_epoch == 0
                    if offset is not None and left > largest and chance.random() < 0.9:
                        data = b"".join(
                            big(offset + n, largest)
                            for n in range(chance.randrange(1, 16))
                            if (n + 1) * largest < left
                        )
                        left -= len(data)
                        parts.append(part(stream_id, data))
                    elif full:
                        parts.append(part(stream_id))
                rig.answer(asked, {"t": parts} if parts else {}, link_id=link_id)
        stats = rig.streams.stats()
        used = stats["reserved_bytes"] + stats["buffered_bytes"]
        assert used <= limit + 3 * (MIB + 2048), stats
        assert stats["cached_bytes"] <= max(limit // 4, limit - stats["buffered_bytes"]), stats
        held += rig.streams.take_chunks(chance.randrange(8))
        chance.shuffle(held)
        for place in range(min(4, len(held))):
            chunk_done(held[place])
        del held[: chance.randrange(6)]
        if chance.random() < 0.1:
            stream_id = chance.randrange(6)
            generations[stream_id] += 1
            rig.streams.set_generation(stream_id, generations[stream_id])
            rig.start(stream_id, stream_id % 3 + 1, generations[stream_id], chance.randrange(100))
        if chance.random() < 0.1:
            rig.streams.set_paused(chance.randrange(6), chance.random() < 0.3)
        rig.advance(chance.random() * 0.1)
    held.clear()
    for stream_id in range(6):
        rig.remove_stream(stream_id)
    rig.offsets()
    stats = rig.streams.stats()
    assert (stats["buffered_bytes"], stats["pinned_bytes"]) == (0, 0)
    assert stats["chunks"] > 20


def test_the_next_frame_is_fetched_while_one_is_read() -> None:
    rig = FetchRig(partitions=100, buffer_bytes=16 * MIB, partition_max_bytes=MIB)
    full = {"t": [part(p, big(10, 20_000)) for p in range(100)]}
    rig.answer(rig.request(), full)
    for turn in range(1, 4):
        asked = rig.request()
        assert asked.request.max_bytes == 2 * MIB
        rig.answer(asked, {"t": [part(p, big(10 + turn, 20_000)) for p in range(100)]})
    assert rig.streams.stats()["buffered_bytes"] > 4 * 100 * 19_000


# ---- the pace ----


def test_streams_that_start_together_are_fetched_together() -> None:
    rig = FetchRig(partitions=3, start=False)
    for stream_id in range(3):
        rig.start(stream_id)
        assert rig.requests() == []  # each start was carried out by a turn of its own
    assert rig.until - rig.machine.now == pytest.approx(0.001, abs=1e-4)
    rig.advance(0.0011)
    assert len(rig.request().positions) == 3


def test_empty_answers_that_come_at_once_do_not_spin() -> None:
    rig = FetchRig()
    rig.answer(rig.request(), {"t": [part(0)]})
    waits = []
    for _ in range(10):
        assert rig.requests() == []
        waits.append(rig.until - rig.machine.now)
        rig.advance(waits[-1])
        rig.answer(rig.request(), {})
    assert waits[:6] == sorted(waits[:6])
    assert waits[0] == pytest.approx(0.001, abs=1e-4)
    assert waits[-1] == pytest.approx(0.05, abs=1e-4)
    rig.advance(waits[-1])
    asked = rig.request()
    rig.advance(MAX_WAIT)
    rig.answer(asked, {})
    rig.request()  # this one waited for records: the next one need not


def test_a_throttled_link_is_silent_for_a_while() -> None:
    rig = FetchRig()
    rig.answer(rig.request(), {"t": [part(0, batch(10))]}, throttle_time_ms=250)
    assert [event.throttle_ms for event in rig.take(Throttled)] == [250]
    assert rig.requests() == []
    assert rig.until - rig.machine.now == pytest.approx(0.25, abs=1e-3)
    rig.advance(0.251)
    assert rig.request().positions == {("t", 0): 11}


def test_nothing_is_fetched_for_nobody() -> None:
    rig = FetchRig(partitions=2)
    asked = rig.request()
    rig.remove_stream(0)
    rig.streams.set_paused(1, True)
    rig.answer(asked, {"t": [part(0, batch(10)), part(1)]})
    rig.advance(1000.0)
    assert rig.requests() == []
    assert rig.offsets() == []


# ---- links ----


def test_streams_stop_with_their_link() -> None:
    rig = FetchRig(partitions=2, links=2)
    rig.answer(rig.request(), {"t": [part(0, batch(10, 5)), part(1)]})
    rig.request()
    rig.hang_up()
    assert [type(event) for event in rig.events] == [LinkClosed, StreamsStopped]
    assert sorted(rig.rows(StreamsStopped)) == [(0, 0, 0, 15, 3), (1, 0, 0, 10, -1)]
    assert rig.streams.stats()["reserved_bytes"] == 0
    assert rig.offsets() == [(0, 10, 15)]
    rig.start(0, link_id=2, generation=1, offset=15)
    assert rig.request(2).positions == {("t", 0): 15}


def test_a_start_over_a_link_that_is_gone_is_answered() -> None:
    rig = FetchRig(links=2)
    rig.hang_up()
    rig.take(StreamsStopped)
    rig.start(0, link_id=1, generation=1, offset=20)
    assert rig.rows(StreamsStopped) == [(0, 1, 0, 20, -1)]


def test_a_stop_says_how_far_the_stream_has_come() -> None:
    rig = FetchRig()
    rig.answer(rig.request(), {"t": [part(0, batch(10, 5))]})
    rig.stop_stream(0, 7)  # of another start
    assert rig.rows(StreamsStopped) == []
    rig.stop_stream(0, 0)
    rig.stop_stream(0, 0)
    assert rig.rows(StreamsStopped) == [(0, 0, 0, 15, 3)]
    assert rig.offsets() == [(0, 10, 15)]


def test_a_link_that_fetches_is_not_idle() -> None:
    rig = FetchRig(buffer_bytes=MIB, max_idle=60.0)
    rig.answer(rig.request(), {"t": [part(0, big(10, ALMOST))]})
    rig.advance(1000.0)
    assert rig.take(LinkClosed) == []
    rig.streams.take_chunks(10)
    assert rig.request().positions == {("t", 0): 11}


def test_a_fetch_without_an_answer_closes_the_link() -> None:
    rig = FetchRig(request_timeout=30.0)
    rig.request()
    rig.advance(30.1)
    assert rig.rows(StreamsStopped) == [(0, 0, 0, 10, -1)]
    assert rig.streams.stats()["reserved_bytes"] == 0


# ---- receiving ----


@pytest.mark.parametrize("length", [-1, 0, 3, (32 << 20) + 1, 2**31 - 1])
def test_a_length_out_of_range_closes_the_link(length: int) -> None:
    rig = FetchRig()
    rig.request()
    rig.arrive(length.to_bytes(4, "big", signed=True))
    assert [(event.reason, event.detail) for event in rig.take(LinkClosed)] == [(BAD_FRAME, length)]


def test_memory_for_a_length_beyond_what_was_asked_for_comes_with_its_bytes() -> None:
    rig = FetchRig(buffer_bytes=MIB, partition_max_bytes=1000)
    asked = rig.request()
    assert asked.request.max_bytes == 1000
    data = answer_to(asked, {"t": [part(0, big(10, 20 * MIB))]})
    for at in range(0, len(data), 3 * MIB):
        rig.arrive(data[at : at + 3 * MIB])
    (chunk,) = rig.streams.take_chunks(1)
    assert chunk.data == big(10, 20 * MIB)


@pytest.mark.parametrize("choppiness", [0, 128, 255])
def test_answers_come_in_any_pieces(choppiness: int) -> None:
    rig = FetchRig(partitions=3, choppiness=choppiness)
    offsets = [10, 10, 10]
    blobs = []
    for turn in range(30):
        asked = rig.request()
        parts = []
        for partition in range(3):
            data = batch(offsets[partition], turn * 7 % 50 + 1, value=b"x" * (turn * 31 % 700))
            offsets[partition] += turn * 7 % 50 + 1
            parts.append(part(partition, data))
        rig.answer(asked, {"t": parts})
        blobs += [chunk.data for chunk in rig.streams.take_chunks(10)]
        assert blobs[-3:] == [answered.records for answered in parts]


def test_other_answers_may_come_in_between() -> None:
    rig = FetchRig(choppiness=100)
    asked = rig.request()
    rig.send_raw(1, 77, (10).to_bytes(4, "big") + bytes(10), 10.0)
    assert len(rig.frames()) == 1
    reply = (6).to_bytes(4, "big") + (asked.correlation_id + 1).to_bytes(4, "big") + b"hi"
    rig.arrive(answer_to(asked, {"t": [part(0, batch(10, 100))]}) + reply)
    (event,) = (event for event in rig.take(RawResponse) if event.token == 77)
    assert event.frame is not None
    assert event.frame[4:] == b"hi"
    assert rig.offsets() == [(0, 10, 110)]
    assert rig.request().positions == {("t", 0): 110}


def test_a_data_plane_that_only_fetches_sleeps_until_it_is_woken() -> None:
    """Regression: it looked for records that had missed a delivery timeout of 0, all the time."""
    rig = FetchRig(start=False)
    assert rig.turn() == 0.0
    rig.start()
    asked = rig.request()
    assert rig.turn() == pytest.approx(rig.machine.now + 30.0, abs=1.0)  # the request's timeout
    rig.answer(asked, {"t": [part(0)]})
    assert rig.turn() > rig.machine.now
