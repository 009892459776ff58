"""What the user's thread makes of chunks and news, in whatever order they come in."""

from __future__ import annotations

import pytest

from kafka_fast.consumer.reading.intake import Intake
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
def intake(streams: FakeStreams) -> Intake:
    """Two partitions, streams 0 and 1, that have no position yet."""
    one = Intake(streams, lambda at: PartitionReader(*at, 0), read_committed=False)
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


def offsets(intake: Intake, most: int = 100) -> list[int]:
    return take(intake, most).settle().offsets()


def take(intake: Intake, most: int = 100) -> RecordHandover:
    handover = RecordHandover()
    intake.feed()
    intake.take_slices(most, handover)
    return handover


@pytest.mark.parametrize("news_first", [True, False])
def test_records_may_come_before_the_news_of_their_start(
    intake: Intake, streams: FakeStreams, news_first: bool
) -> None:
    assert intake.position(ONE) is None
    if news_first:
        intake.positioned(ONE, generation(0, 1), Position(6))
    streams.arrived.append(chunk(6, 4))
    intake.feed()
    if not news_first:
        intake.positioned(ONE, generation(0, 1), Position(6))
    at = intake.position(ONE)
    assert at is not None
    assert at.offset == 6
    assert offsets(intake) == [6, 7, 8, 9]
    at = intake.position(ONE)
    assert at is not None
    assert at.offset == 10
    assert offsets(intake) == []
    assert intake.position(ONE) == at


def test_a_jump_waits_for_what_was_fetched_before_it(intake: Intake, streams: FakeStreams) -> None:
    streams.arrived.append(chunk(0, 3))
    intake.feed()
    intake.positioned(ONE, generation(0, 2), Position(100))
    assert offsets(intake, 2) == [0, 1]
    assert offsets(intake) == [2]
    assert offsets(intake) == []
    at = intake.position(ONE)
    assert at is not None
    assert at.offset == 100
    streams.arrived.append(chunk(100, 2, starts=2))
    assert offsets(intake) == [100, 101]


@pytest.mark.parametrize("news_first", [True, False])
def test_the_epoch_of_a_position_is_kept_until_something_is_read(
    intake: Intake, streams: FakeStreams, news_first: bool
) -> None:
    expected = OffsetAndMetadata(6, 3)
    if news_first:
        intake.positioned(ONE, generation(0, 1), Position(6, 3))
        assert intake.position(ONE) == expected
    streams.arrived.append(chunk(6, 4))
    intake.feed()
    if not news_first:
        intake.positioned(ONE, generation(0, 1), Position(6, 3))
    assert intake.position(ONE) == expected
    handover = take(intake, 2)
    assert handover.settle().offsets() == [6, 7]
    assert handover.before == {ONE: expected}
    assert intake.position(ONE) == OffsetAndMetadata(8, -1)
    intake.positioned(ONE, generation(0, 1), Position(6, 3))  # late: nobody stands there any more
    intake.positioned(ONE, generation(0, 2), Position(100, 5))
    assert offsets(intake) == [8, 9]
    assert offsets(intake) == []
    assert intake.position(ONE) == OffsetAndMetadata(100, 5)
    intake.move(ONE, Position(50, 4))
    assert intake.position(ONE) == OffsetAndMetadata(50, 4)


def test_the_ends_of_a_log_that_is_gone_are_forgotten(intake: Intake, streams: FakeStreams) -> None:
    """Regression: the lag in a topic that was created again counted to the old topic's end."""
    streams.end = 3
    streams.arrived.append(chunk(0, 3))
    assert offsets(intake) == [0, 1, 2]
    assert (intake.lag(ONE), intake.is_at_end(ONE)) == (0, True)
    seeks = intake.begin_again(ONE)
    assert intake.position(ONE) is None
    intake.positioned(ONE, generation(seeks, 1), Position(0))
    assert (intake.lag(ONE), intake.is_at_end(ONE)) == (None, False)
    streams.arrived.append(chunk(0, 2, seeks=seeks))
    assert offsets(intake) == [0, 1]
    assert intake.lag(ONE) == 0


def test_what_a_seek_has_overtaken_is_dropped(intake: Intake, streams: FakeStreams) -> None:
    streams.arrived.append(chunk(0, 3))
    intake.feed()
    intake.move(ONE, Position(50))
    assert streams.generations[0] == generation(1, 0)
    streams.arrived.append(chunk(3, 3))
    intake.positioned(ONE, generation(0, 2), Position(7))
    intake.fail_partition(ONE, 0, KafkaError("of an earlier life"))
    assert offsets(intake) == []
    streams.arrived.append(chunk(50, 1, seeks=1))
    assert offsets(intake) == [50]


def test_an_error_waits_for_its_turn_and_leaves_others_theirs(
    intake: Intake, streams: FakeStreams
) -> None:
    error = NoOffsetForPartitionError("no", topic="t", partition=0)
    intake.fail_partition(ONE, 0, error, is_final=True)
    streams.arrived.append(chunk(0, 3, stream=1))
    intake.feed()
    raised: list[KafkaError] = []
    read: list[int] = []
    for _ in range(3):
        with pytest.raises(NoOffsetForPartitionError) as caught:
            offsets(intake, 1)
        raised.append(caught.value)
        read += offsets(intake, 1)
    assert read == [0, 1, 2]
    assert len(raised) == 3
    assert len({id(exception) for exception in [error, *raised]}) == 4, (
        "one object would gather tracebacks"
    )
    intake.move(ONE, Position(0))
    assert offsets(intake) == []


def test_a_passing_error_is_raised_once(intake: Intake) -> None:
    intake.fail_partition(ONE, 0, KafkaError("for now"))
    with pytest.raises(KafkaError, match="for now"):
        offsets(intake)
    assert offsets(intake) == []


def test_a_partition_that_cannot_be_read_is_not_fetched_until_it_is_moved(
    intake: Intake, streams: FakeStreams
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
            offsets(intake)
    assert streams.paused == {0}
    intake.pause(ONE, True)
    intake.pause(ONE, False)
    assert streams.paused == {0}
    intake.move(ONE, Position(1))
    assert streams.paused == set()
    assert (intake.unreadable_batches, intake.refused_records) == (1, 0)


def test_one_call_takes_from_all_partitions_and_the_next_begins_with_another(
    intake: Intake, streams: FakeStreams
) -> None:
    for stream in range(2):
        streams.arrived.append(chunk(0, 3, stream=stream))
    assert offsets(intake, 4) == [0, 1, 2, 0]
    assert offsets(intake, 1) == [1]
    assert offsets(intake) == [2]
    for first in (3, 6):
        for stream in range(2):
            streams.arrived.append(chunk(first, 3, stream=stream))
    assert sorted(offsets(intake)) == [3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8]


def test_what_is_found_again_fails_no_more(intake: Intake) -> None:
    intake.fail_partition(ONE, 0, KafkaError("not there"), is_final=True)
    for _ in range(2):
        with pytest.raises(KafkaError, match="not there"):
            take(intake)
    intake.clear_failure(ONE, 1)  # of another life
    with pytest.raises(KafkaError, match="not there"):
        take(intake)
    intake.clear_failure(TopicPartition("u", 0), 0)
    intake.clear_failure(ONE, 0)
    assert not take(intake)


def test_a_handover_knows_where_it_all_was(intake: Intake, streams: FakeStreams) -> None:
    """A signal's handler that closes in the middle of a poll must not commit it."""
    streams.arrived += [chunk(5, 3), chunk(0, 2, stream=1)]
    handover = take(intake, 4)
    assert handover
    assert not handover.is_settled
    assert handover.before == {ONE: OffsetAndMetadata(5), OTHER: OffsetAndMetadata(0)}
    assert handover.settle().offsets() == [5, 6, 7, 0]
    assert handover.is_settled


@pytest.mark.parametrize("is_settled", [False, True])
def test_what_is_taken_back_comes_next(
    intake: Intake, streams: FakeStreams, *, is_settled: bool
) -> None:
    streams.arrived += [chunk(5, 3), chunk(0, 2, stream=1)]
    handover = take(intake, 4)
    if is_settled:
        handover.settle()
    handover.take_back()
    handover.take_back()  # once more is no more
    assert not handover
    assert handover.before == {}
    assert sorted(offsets(intake)) == [0, 1, 5, 6, 7]


def test_what_the_user_has_moved_does_not_come_back(intake: Intake, streams: FakeStreams) -> None:
    streams.arrived += [chunk(5, 3), chunk(0, 2, stream=1)]
    handover = take(intake)
    intake.move(ONE, Position(20))
    handover.take_back()
    assert offsets(intake) == [0, 1]
    assert intake.position(ONE) == OffsetAndMetadata(20)


def test_a_handover_that_finds_nothing_again_and_again_stays_small(
    intake: Intake, streams: FakeStreams
) -> None:
    """An iteration waits with one handover for as long as it takes."""
    handover = RecordHandover()
    for _ in range(10):
        intake.pause(ONE, False)  # it may have something
        intake.take_slices(100, handover)
    assert len(handover.taken) <= 2
    assert not handover


FETCHED = FetchStatus("FETCHING for 12 s, from offset 5 over link 3 to node 1", True)
LOOKED_UP = FetchStatus("AWAITS_OFFSET for 12 s, no position", False, Reason("it looks up"))


def line(intake: Intake, partition: TopicPartition, status: FetchStatus) -> str:
    """Return what the dump says of a partition with this status in the control plane."""
    (text,) = [
        entry for entry in intake.describe(lambda _: status) if entry.startswith(f"{partition}: ")
    ]
    return text.removeprefix(f"{partition}: ")


def test_one_line_has_both_sides_of_a_partition(intake: Intake, streams: FakeStreams) -> None:
    said = "AWAITS_OFFSET for 12 s, no position, nothing handed over yet; it looks up"
    assert line(intake, OTHER, LOOKED_UP) == said
    streams.arrived.append(chunk(5, 3))
    offsets(intake, 2)
    said = f"{FETCHED}, handed over up to offset 7"
    assert line(intake, ONE, FETCHED) == said


def test_the_users_side_comes_first(intake: Intake, streams: FakeStreams) -> None:
    streams.arrived.append(chunk(5, 3))
    offsets(intake)
    streams.end = 8
    assert line(intake, ONE, FETCHED) == f"AT_END, handed over up to offset 8; {FETCHED}"
    intake.pause(ONE, paused=True)
    assert line(intake, ONE, FETCHED) == f"PAUSED, handed over up to offset 8; {FETCHED}"


def test_what_is_not_fetched_is_not_at_its_end(intake: Intake, streams: FakeStreams) -> None:
    """What the broker had at the last fetch is old by then."""
    streams.arrived.append(chunk(5, 3))
    offsets(intake)
    streams.end = 8
    assert line(intake, ONE, LOOKED_UP).startswith("AWAITS_OFFSET for 12 s, ")
    disturbed = FETCHED._replace(obstacle=Reason("NOT_ENOUGH"))
    assert line(intake, ONE, disturbed).endswith(", handed over up to offset 8; NOT_ENOUGH")


def test_an_error_that_the_user_has_not_seen(intake: Intake, streams: FakeStreams) -> None:
    intake.fail_partition(OTHER, 0, KafkaError("once"))
    said = f"RAISES, nothing handed over yet; a poll() raises once; {LOOKED_UP}"
    assert line(intake, OTHER, LOOKED_UP) == said
    with pytest.raises(KafkaError, match="once"):
        offsets(intake)
    assert line(intake, OTHER, LOOKED_UP).startswith("AWAITS_OFFSET ")
    intake.fail_partition(OTHER, 0, KafkaError("again"), is_final=True)
    assert "; every poll() raises again; " in line(intake, OTHER, LOOKED_UP)
    intake.pause(OTHER, paused=True)
    assert line(intake, OTHER, LOOKED_UP).startswith("PAUSED, nothing handed over yet; every ")


def test_a_partition_that_is_dropped_meanwhile_has_no_line(
    intake: Intake, streams: FakeStreams
) -> None:
    streams.generations.pop(0)
    assert [text.partition(":")[0] for text in intake.describe(lambda _: FETCHED)] == [str(OTHER)]
