"""How a loop over a consumer's records ends, as its iterator sees it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator

import pytest

from kafka_fast.errors import WakeupError
from kafka_fast.record import read_batches
from kafka_fast.record._slices import slice_of
from kafka_fast.records._async_records import AsyncRecords
from kafka_fast.records._blocking_records import BlockingRecords
from kafka_fast.records._consumer_records import ConsumerRecords, RecordIterator, iterate
from kafka_fast.records._record_loop import RecordLoop
from tests.unit.records.reading import batch

COUNT = 6
PLACE = 3


class Source:
    """What a consumer is to its loops: its `for` statements are seen, if they are plain."""

    def __init__(self, *, knows_frames: bool = True) -> None:
        part = slice_of(read_batches(batch(*range(COUNT)))[0], "t", 0)
        polls = iter([ConsumerRecords([part])])
        self.records: RecordIterator = iterate(lambda: next(polls, None))
        self.asked: list[int] = []
        """How many records were handed out whenever attention was needed."""
        self.begun = 0
        """How many loops have asked for their first record."""
        self._knows_frames = knows_frames

    def __iter__(self) -> Iterator[object]:
        frame = sys._getframe(1) if self._knows_frames else None
        return BlockingRecords(self.records, self._ask, frame)

    def _ask(self, is_first: bool) -> None:
        self.asked.append(self.records.handed_out)
        self.begun += is_first


def leave_by_break(source: Source) -> None:
    for record in source:
        if record.offset == PLACE:
            break


def leave_by_return(source: Source) -> None:
    for record in source:
        if record.offset == PLACE:
            return


def break_in_an_except_clause(source: Source) -> None:
    try:
        raise ValueError
    except ValueError:
        for record in source:
            if record.offset == PLACE:
                break


def raise_in_the_body(source: Source) -> None:
    for record in source:
        if record.offset == PLACE:
            raise ValueError


def raise_in_a_function_of_the_body(source: Source) -> None:
    def work() -> None:
        raise ValueError

    for record in source:
        if record.offset == PLACE:
            work()


def close_a_generator(source: Source) -> None:
    """CPython 3.13 and later may drop what a generator holds without an exception."""

    def generate() -> Iterator[object]:
        yield from (record for record in source)

    for record in generate():
        if record.offset == PLACE:
            break


def close_a_plain_generator(source: Source) -> None:
    def generate() -> Iterator[object]:
        for record in source:  # noqa: UP028  the very loop that is tested
            yield record

    for record in generate():
        if record.offset == PLACE:
            break


ENDINGS: list[tuple[Callable[[Source], None], bool]] = [
    (leave_by_break, True),
    (leave_by_return, True),
    (break_in_an_except_clause, True),
    (raise_in_the_body, False),
    (raise_in_a_function_of_the_body, False),
    (close_a_generator, False),
    (close_a_plain_generator, False),
]


@pytest.mark.parametrize(("end", "is_left"), ENDINGS)
def test_how_a_loop_has_ended(end: Callable[[Source], None], *, is_left: bool) -> None:
    source = Source()
    try:
        end(source)
    except ValueError:
        pass
    assert source.records.handed_out == PLACE + 1
    assert source.records.is_left is is_left


def test_without_a_frame_a_break_is_not_seen() -> None:
    source = Source(knows_frames=False)
    leave_by_break(source)
    assert not source.records.is_left


def test_a_traceback_that_is_freed_later_says_nothing() -> None:
    source = Source()

    def read() -> None:
        records = iter(source)
        assert next(records).offset == 0
        raise ValueError

    try:
        read()
    except ValueError:
        pass
    assert not source.records.is_left


def test_the_end_of_another_loop_says_nothing() -> None:
    source = Source()
    others = iter(source)
    for _ in source:
        assert next(others).offset == 1
        break
    assert not source.records.is_left


def test_a_poll_since_then_has_the_last_word() -> None:
    source = Source()
    for _ in source:
        source.records.detach()  # a poll in the loop's body
        break
    assert not source.records.is_left


def test_the_next_record_is_not_left() -> None:
    source = Source()
    leave_by_break(source)
    records = iter(source)
    assert next(records).offset == PLACE + 1
    assert not source.records.is_left


def test_attention_is_needed_first_and_after_events_only() -> None:
    source = Source()
    for record in source:
        match record.offset:
            case 1:
                source.records.interrupt()
            case 2:
                next(iter(source))  # offset 3
            case 4:
                source.records.put(source.records.records[5:])
    assert source.asked == [0, 2, 3, 4, 0]


def test_a_loop_begins_once() -> None:
    source = Source()
    for record in source:
        assert source.begun == 1
        source.records.interrupt()
        if record.offset == PLACE:
            break
    leave_by_break(source)
    assert source.begun == 2
    assert len(source.asked) > 2


def test_a_loop_that_gets_the_place_of_a_lost_one_asks() -> None:
    """Regression: garbage collection took a loop's records away before it could say its end."""
    source = Source()

    def lose_a_loop() -> int:
        records = iter(source)
        next(records)
        cycle: list[object] = [records]
        cycle.append(cycle)
        return id(records)

    gc.disable()  # not in between: it would look at the older first, and the cycle is the younger
    try:
        place = lose_a_loop()
        gc.collect()
        others = []
        while id(records := iter(source)) != place:
            others.append(records)
            assert len(others) < 100_000, "the place is not given again"
    finally:
        gc.enable()
    next(records)
    assert source.asked == [0, 1]


def test_an_interruption_while_a_record_is_asked_for_is_not_lost() -> None:
    source = Source()
    asked = 0

    def ask(is_first: bool) -> None:
        nonlocal asked
        asked += 1
        source.records.interrupt()  # another thread, at this moment

    records = BlockingRecords(source.records, ask, None)
    next(records)
    next(records)
    assert asked == 2


def test_an_error_of_ask_loses_no_record() -> None:
    source = Source()
    errors = [WakeupError("woken")]

    def ask(is_first: bool) -> None:
        if errors:
            raise errors.pop()

    records = BlockingRecords(source.records, ask, None)
    with pytest.raises(WakeupError):
        next(records)
    assert next(records).offset == 0


def test_what_goes_wrong_while_a_loop_is_freed_is_not_hidden() -> None:
    source = Source()

    def read() -> None:
        for _ in source:
            raise ValueError("of the body")

    with pytest.raises(ValueError, match="of the body") as raised:
        read()
    assert raised.value.__context__ is None


@pytest.mark.parametrize("kind", [RecordLoop, BlockingRecords, AsyncRecords])
def test_a_loop_needs_its_records(kind: type[RecordLoop]) -> None:
    said = "RecordLoop is not made by its users|a loop is begun by a?iter"
    with pytest.raises(TypeError, match=said):
        kind.__new__(kind)
    with pytest.raises(TypeError, match=said):
        kind(None, None, None, None)  # type: ignore[arg-type,call-arg]
