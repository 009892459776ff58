"""What the user's thread makes of chunks and news, in whatever order they come in."""

from __future__ import annotations

import pytest

from kafka_fast.consumer.reading.fetch_buffer import FetchBuffer
from kafka_fast.consumer.reading.record_handover import RecordHandover
from kafka_fast.control.consumer.consumer_messages import generation
from kafka_fast.control.consumer.diagnosis import FetchStatus
from kafka_fast.control.consumer.partition import Position
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.dataplane.fetch._chunk import Chunk, chunk_from_bytes
from kafka_fast.errors import KafkaError, NoOffsetForPartitionError, UnreadableBatchError
from kafka_fast.record import RecordBatchBuilder
from kafka_fast.records._reading import PartitionReader
from kafka_fast.types import OffsetAndMetadata, TopicPartition

ONE = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)


class FakeStreams:
    """Has what a test puts in."""

    def __init__(self) -> None:
        self.arrived: list[Chunk] = []
        self.generations: dict[int, int] = {}
        self.paused: set[int] = set()
        self.end = -1

    def add_stream(self, stream_id: int, topic: str, partition: int, end: int) -> None:
        self.generations[stream_id] = 0

    def set_generation(self, stream_id: int, generation: int) -> None:
        self.generations[stream_id] = generation

    def set_paused(self, stream_id: int, paused: bool) -> None:
        (self.paused.add if paused else self.paused.discard)(stream_id)

    def watermarks(self, stream_id: int) -> tuple[int, int, int]:
        self.generations[stream_id]  # one that was removed is not known
        return self.end, -1, -1

    def forget_watermarks(self, stream_id: int) -> None:
        self.end = -1

    def take_chunks_into(self, found: list[Chunk], most: int) -> None:
        found += self.arrived[:most]
        del self.arrived[:most]


@pytest.fixture
def streams() -> FakeStreams:
    return FakeStreams()


@pytest.fixture
def buffer(streams: FakeStreams) -> FetchBuffer:
    """Two partitions, streams 0 and 1, that have no position yet."""
    one = FetchBuffer(streams, lambda at: PartitionReader(*at, 0), read_committed=False)
    one.assign([ONE, OTHER])
    return one


def chunk(first: int, count: int, *, seeks: int = 0, starts: int = 1, stream: int = 0) -> Chunk:
    builder = RecordBatchBuilder(base_offset=first)
    for number in range(count):
        builder.append(None, b"%d" % (first + number), 0)
    return chunk_from_bytes(
        builder.build(),
        stream_id=stream,
        generation=generation(seeks, starts),
        asked_offset=first,
        next_offset=first + count,
        high_watermark=first + count,
    )


def offsets(buffer: FetchBuffer, most: int = 100) -> list[int]:
    return take(buffer, most).settle().offsets()


def take(buffer: FetchBuffer, most: int = 100) -> RecordHandover:
    handover = RecordHandover()
    buffer.feed()
    buffer.take_slices(most, handover)
    return handover


@pytest.mark.parametrize("news_first", [True, False])
def test_records_may_come_before_the_news_of_their_start(
    buffer: FetchBuffer, streams: FakeStreams, news_first: bool
) -> None:
    assert buffer.position(ONE) is None
    if news_first:
        buffer.positioned(ONE, generation(0, 1), Position(6))
    streams.arrived.append(chunk(6, 4))
    buffer.feed()
    if not news_first:
        buffer.positioned(ONE, generation(0, 1), Position(6))
    at = buffer.position(ONE)
    assert at is not None
    assert at.offset == 6
    assert offsets(buffer) == [6, 7, 8, 9]
    at = buffer.position(ONE)
    assert at is not None
    assert at.offset == 10
    assert offsets(buffer) == []
    assert buffer.position(ONE) == at


def test_a_jump_waits_for_what_was_fetched_before_it(
    buffer: FetchBuffer, streams: FakeStreams
) -> None:
    streams.arrived.append(chunk(0, 3))
    buffer.feed()
    buffer.positioned(ONE, generation(0, 2), Position(100))
    assert offsets(buffer, 2) == [0, 1]
    assert offsets(buffer) == [2]
    assert offsets(buffer) == []
    at = buffer.position(ONE)
    assert at is not None
    assert at.offset == 100
    streams.arrived.append(chunk(100, 2, starts=2))
    assert offsets(buffer) == [100, 101]


@pytest.mark.parametrize("news_first", [True, False])
def test_the_epoch_of_a_position_is_kept_until_something_is_read(
    buffer: FetchBuffer, streams: FakeStreams, news_first: bool
) -> None:
    expected = OffsetAndMetadata(6, 3)
    if news_first:
        buffer.positioned(ONE, generation(0, 1), Position(6, 3))
        assert buffer.position(ONE) == expected
    streams.arrived.append(chunk(6, 4))
    buffer.feed()
    if not news_first:
        buffer.positioned(ONE, generation(0, 1), Position(6, 3))
    assert buffer.position(ONE) == expected
    handover = take(buffer, 2)
    assert handover.settle().offsets() == [6, 7]
    assert handover.before == {ONE: expected}
    assert buffer.position(ONE) == OffsetAndMetadata(8, -1)
    buffer.positioned(ONE, generation(0, 1), Position(6, 3))  # late: nobody stands there any more
    buffer.positioned(ONE, generation(0, 2), Position(100, 5))
    assert offsets(buffer) == [8, 9]
    assert offsets(buffer) == []
    assert buffer.position(ONE) == OffsetAndMetadata(100, 5)
    buffer.move(ONE, Position(50, 4))
    assert buffer.position(ONE) == OffsetAndMetadata(50, 4)


def test_the_ends_of_a_log_that_is_gone_are_forgotten(
    buffer: FetchBuffer, streams: FakeStreams
) -> None:
    """Regression: the lag in a topic that was created again counted to the old topic's end."""
    streams.end = 3
    streams.arrived.append(chunk(0, 3))
    assert offsets(buffer) == [0, 1, 2]
    assert (buffer.lag(ONE), buffer.is_at_end(ONE)) == (0, True)
    seeks = buffer.begin_again(ONE)
    assert buffer.position(ONE) is None
    buffer.positioned(ONE, generation(seeks, 1), Position(0))
    assert (buffer.lag(ONE), buffer.is_at_end(ONE)) == (None, False)
    streams.arrived.append(chunk(0, 2, seeks=seeks))
    assert offsets(buffer) == [0, 1]
    assert buffer.lag(ONE) == 0


def test_what_a_seek_has_overtaken_is_dropped(buffer: FetchBuffer, streams: FakeStreams) -> None:
    streams.arrived.append(chunk(0, 3))
    buffer.feed()
    buffer.move(ONE, Position(50))
    assert streams.generations[0] == generation(1, 0)
    streams.arrived.append(chunk(3, 3))
    buffer.positioned(ONE, generation(0, 2), Position(7))
    buffer.fail_partition(ONE, 0, KafkaError("of an earlier life"))
    assert offsets(buffer) == []
    streams.arrived.append(chunk(50, 1, seeks=1))
    assert offsets(buffer) == [50]


def test_an_error_waits_for_its_turn_and_leaves_others_theirs(
    buffer: FetchBuffer, streams: FakeStreams
) -> None:
    error = NoOffsetForPartitionError("no", topic="t", partition=0)
    buffer.fail_partition(ONE, 0, error, is_final=True)
    streams.arrived.append(chunk(0, 3, stream=1))
    buffer.feed()
    raised: list[KafkaError] = []
    read: list[int] = []
    for _ in range(3):
        with pytest.raises(NoOffsetForPartitionError) as caught:
            offsets(buffer, 1)
        raised.append(caught.value)
        read += offsets(buffer, 1)
    assert read == [0, 1, 2]
    assert len(raised) == 3
    assert len({id(exception) for exception in [error, *raised]}) == 4, (
        "one object would gather tracebacks"
    )
    buffer.move(ONE, Position(0))
    assert offsets(buffer) == []


def test_a_passing_error_is_raised_once(buffer: FetchBuffer) -> None:
    buffer.fail_partition(ONE, 0, KafkaError("for now"))
    with pytest.raises(KafkaError, match="for now"):
        offsets(buffer)
    assert offsets(buffer) == []


def test_a_partition_that_cannot_be_read_is_not_fetched_until_it_is_moved(
    buffer: FetchBuffer, streams: FakeStreams
) -> None:
    """Regression: the whole log behind a bad batch was fetched, and thrown away."""
    bad = RecordBatchBuilder()
    bad.append(None, b"bad", 0)
    data = bad.build()[:-1] + b"\xff"
    streams.arrived.append(
        chunk_from_bytes(data, stream_id=0, generation=generation(0, 1), asked_offset=0)
    )
    for _ in range(3):
        with pytest.raises(UnreadableBatchError):
            offsets(buffer)
    assert streams.paused == {0}
    buffer.pause(ONE, True)
    buffer.pause(ONE, False)
    assert streams.paused == {0}
    buffer.move(ONE, Position(1))
    assert streams.paused == set()
    assert (buffer.unreadable_batches, buffer.refused_records) == (1, 0)


def test_one_call_takes_from_all_partitions_and_the_next_begins_with_another(
    buffer: FetchBuffer, streams: FakeStreams
) -> None:
    for stream in range(2):
        streams.arrived.append(chunk(0, 3, stream=stream))
    assert offsets(buffer, 4) == [0, 1, 2, 0]
    assert offsets(buffer, 1) == [1]
    assert offsets(buffer) == [2]
    for first in (3, 6):
        for stream in range(2):
            streams.arrived.append(chunk(first, 3, stream=stream))
    assert sorted(offsets(buffer)) == [3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8]


def test_what_is_found_again_fails_no_more(buffer: FetchBuffer) -> None:
    buffer.fail_partition(ONE, 0, KafkaError("not there"), is_final=True)
    for _ in range(2):
        with pytest.raises(KafkaError, match="not there"):
            take(buffer)
    buffer.clear_failure(ONE, 1)  # of another life
    with pytest.raises(KafkaError, match="not there"):
        take(buffer)
    buffer.clear_failure(TopicPartition("u", 0), 0)
    buffer.clear_failure(ONE, 0)
    assert not take(buffer)


def test_a_handover_knows_where_it_all_was(buffer: FetchBuffer, streams: FakeStreams) -> None:
    """A signal's handler that closes in the middle of a poll must not commit it."""
    streams.arrived += [chunk(5, 3), chunk(0, 2, stream=1)]
    handover = take(buffer, 4)
    assert handover
    assert not handover.is_settled
    assert handover.before == {ONE: OffsetAndMetadata(5), OTHER: OffsetAndMetadata(0)}
    assert handover.settle().offsets() == [5, 6, 7, 0]
    assert handover.is_settled


@pytest.mark.parametrize("is_settled", [False, True])
def test_what_is_taken_back_comes_next(
    buffer: FetchBuffer, streams: FakeStreams, *, is_settled: bool
) -> None:
    streams.arrived += [chunk(5, 3), chunk(0, 2, stream=1)]
    handover = take(buffer, 4)
    if is_settled:
        handover.settle()
    handover.take_back()
    handover.take_back()  # once more is no more
    assert not handover
    assert handover.before == {}
    assert sorted(offsets(buffer)) == [0, 1, 5, 6, 7]


def test_what_the_user_has_moved_does_not_come_back(
    buffer: FetchBuffer, streams: FakeStreams
) -> None:
    streams.arrived += [chunk(5, 3), chunk(0, 2, stream=1)]
    handover = take(buffer)
    buffer.move(ONE, Position(20))
    handover.take_back()
    assert offsets(buffer) == [0, 1]
    assert buffer.position(ONE) == OffsetAndMetadata(20)


def test_a_handover_that_finds_nothing_again_and_again_stays_small(
    buffer: FetchBuffer, streams: FakeStreams
) -> None:
    """An iteration waits with one handover for as long as it takes."""
    handover = RecordHandover()
    for _ in range(10):
        buffer.pause(ONE, False)  # it may have something
        buffer.take_slices(100, handover)
    assert len(handover.taken) <= 2
    assert not handover


FETCHED = FetchStatus("FETCHING for 12 s, from offset 5 over link 3 to node 1", True)
LOOKED_UP = FetchStatus("AWAITS_OFFSET for 12 s, no position", False, Reason("it looks up"))


def line(buffer: FetchBuffer, partition: TopicPartition, status: FetchStatus) -> str:
    """Return what the dump says of a partition with this status in the control plane."""
    (text,) = [
        entry for entry in buffer.describe(lambda _: status) if entry.startswith(f"{partition}: ")
    ]
    return text.removeprefix(f"{partition}: ")


def test_one_line_has_both_sides_of_a_partition(buffer: FetchBuffer, streams: FakeStreams) -> None:
    said = "AWAITS_OFFSET for 12 s, no position, nothing handed over yet; it looks up"
    assert line(buffer, OTHER, LOOKED_UP) == said
    streams.arrived.append(chunk(5, 3))
    offsets(buffer, 2)
    said = f"{FETCHED}, handed over up to offset 7"
    assert line(buffer, ONE, FETCHED) == said


def test_the_users_side_comes_first(buffer: FetchBuffer, streams: FakeStreams) -> None:
    streams.arrived.append(chunk(5, 3))
    offsets(buffer)
    streams.end = 8
    assert line(buffer, ONE, FETCHED) == f"AT_END, handed over up to offset 8; {FETCHED}"
    buffer.pause(ONE, paused=True)
    assert line(buffer, ONE, FETCHED) == f"PAUSED, handed over up to offset 8; {FETCHED}"


def test_what_is_not_fetched_is_not_at_its_end(buffer: FetchBuffer, streams: FakeStreams) -> None:
    """What the broker had at the last fetch is old by then."""
    streams.arrived.append(chunk(5, 3))
    offsets(buffer)
    streams.end = 8
    assert line(buffer, ONE, LOOKED_UP).startswith("AWAITS_OFFSET for 12 s, ")
    disturbed = FETCHED._replace(obstacle=Reason("NOT_ENOUGH"))
    assert line(buffer, ONE, disturbed).endswith(", handed over up to offset 8; NOT_ENOUGH")


def test_an_error_that_the_user_has_not_seen(buffer: FetchBuffer, streams: FakeStreams) -> None:
    buffer.fail_partition(OTHER, 0, KafkaError("once"))
    said = f"RAISES, nothing handed over yet; a poll() raises once; {LOOKED_UP}"
    assert line(buffer, OTHER, LOOKED_UP) == said
    with pytest.raises(KafkaError, match="once"):
        offsets(buffer)
    assert line(buffer, OTHER, LOOKED_UP).startswith("AWAITS_OFFSET ")
    buffer.fail_partition(OTHER, 0, KafkaError("again"), is_final=True)
    assert "; every poll() raises again; " in line(buffer, OTHER, LOOKED_UP)
    buffer.pause(OTHER, paused=True)
    assert line(buffer, OTHER, LOOKED_UP).startswith("PAUSED, nothing handed over yet; every ")


def test_a_partition_that_is_dropped_meanwhile_has_no_line(
    buffer: FetchBuffer, streams: FakeStreams
) -> None:
    streams.generations.pop(0)
    assert [text.partition(":")[0] for text in buffer.describe(lambda _: FETCHED)] == [str(OTHER)]
