"""The books of a task."""

from __future__ import annotations

import pickle

from kafka_fast.errors import Outcome
from kafka_fast.spark import KafkaDeliveryError
from kafka_fast.spark.worker.ledger import MAX_OPEN_FUTURES, MAX_SAMPLES, Ledger
from tests.unit.spark.fakes import FakeFuture, refused


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def ledger(clock: Clock | None = None) -> Ledger:
    return Ledger(3, 1, delivery_timeout=120.0, clock=clock or Clock())


def test_a_row_for_each_partition() -> None:
    clock = Clock()
    books = ledger(clock)
    books.add_future("b", FakeFuture("b", 5, base_offset=40))
    books.add_future("a", FakeFuture("a", 2, base_offset=7))
    books.add_future("b", FakeFuture("b", 3, base_offset=10))
    clock.now += 1.5
    books.close()
    assert books.error() is None
    assert [tuple(row) for row in books.rows()] == [
        (3, 1, "a", 0, 2, 20, 7, 8, 0, None, 1.5),
        (3, 1, "b", 0, 8, 80, 10, 44, 0, None, 1.5),
    ]


def test_an_offset_that_the_broker_did_not_say_hides_no_other() -> None:
    books = ledger()
    books.add_future("t", FakeFuture("t", 1, base_offset=-1))
    books.add_future("t", FakeFuture("t", 4, base_offset=20))
    books.add_future("t", FakeFuture("t", 1, base_offset=-1))
    (row,) = books.rows()
    assert (row.records, row.base_offset, row.last_offset) == (6, 20, 23)


def test_failures_are_counted_where_they_belong() -> None:
    books = ledger()
    errors = [refused("t", 4, "first"), refused("t", None, "too large"), refused("t", 4, "third")]
    books.add_future("t", FakeFuture("t", 10, 0, errors))
    error = books.error()
    assert isinstance(error, KafkaDeliveryError)
    assert (error.count, error.outcome, str(error.first)) == (3, Outcome.REJECTED, "first")
    assert str(error) == "3 of 10 records were not delivered (rejected); the first: first"
    assert not books.unsettled
    rows = {row.partition: (row.records, row.errors, row.first_error) for row in books.rows()}
    assert rows == {-1: (0, 1, "too large"), 0: (7, 0, None), 4: (0, 2, "first")}


def test_a_record_that_was_refused_itself_is_told_before_those_of_its_batch() -> None:
    books = ledger()
    errors = [refused("t", 4, f"with others {number}") for number in range(MAX_SAMPLES + 2)]
    for error in errors:
        error.is_collateral = True
    books.add_future("t", FakeFuture("t", 10, 0, [*errors, refused("t", 4, "no key"), errors[0]]))
    failed = books.error()
    assert failed is not None
    assert str(failed) == (
        "9 of 10 records were not delivered (rejected), 8 of them because of others in their "
        "batches; the first: no key"
    )
    assert len(failed.samples) == MAX_SAMPLES
    assert [str(sample) for sample in failed.samples][:2] == ["no key", "with others 0"]
    assert [row.first_error for row in books.rows() if row.errors] == ["no key"]


def test_the_error_can_be_pickled_and_holds_few_samples() -> None:
    books = ledger()
    books.add_future(
        "t", FakeFuture("t", 50, 0, [refused("t", 1, f"error {i}") for i in range(50)])
    )
    error = books.error()
    assert error is not None
    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(copy, KafkaDeliveryError)
    assert (copy.count, copy.outcome, str(copy)) == (50, Outcome.REJECTED, str(error))
    assert [str(sample) for sample in copy.samples] == [f"error {i}" for i in range(MAX_SAMPLES)]


def test_what_is_not_known_at_the_deadline_may_be_written() -> None:
    clock = Clock()
    books = ledger(clock)
    slow, fast = FakeFuture("t", 4, 0), FakeFuture("t", 2, 4)
    slow.known = fast.known = False
    books.add_future("t", slow)
    books.add_future("t", fast)
    fast.known = True
    books.close()
    assert slow.waited == [120.0]
    error = books.error()
    assert error is not None
    assert (error.count, error.outcome) == (4, Outcome.MAYBE_WRITTEN)
    assert books.unsettled
    rows = {row.partition: (row.records, row.errors) for row in books.rows()}
    assert rows == {-1: (0, 4), 0: (2, 0)}


def test_one_deadline_for_all_futures() -> None:
    clock = Clock()
    books = ledger(clock)
    futures = [FakeFuture("t", 1, i) for i in range(3)]
    for future in futures:
        future.known = False
        books.add_future("t", future)
    for future in futures:
        future.known = True
    result = futures[0].result

    def slow_result(timeout: float | None = None) -> object:
        clock.now += 100.0
        return result(timeout)

    futures[0].result = slow_result  # type: ignore[assignment, method-assign]
    books.close()
    assert [fake.waited for fake in futures] == [[120.0], [20.0], [20.0]]


def test_ended_futures_are_let_go_and_open_ones_are_bounded() -> None:
    books = ledger()
    first = FakeFuture("t", 1, 0)
    first.known = False
    books.add_future("t", first)
    for i in range(1, MAX_OPEN_FUTURES):
        books.add_future("t", FakeFuture("t", 1, i))
    assert first.waited == []  # nobody waits while there is room
    first.known = True
    books.add_future("t", FakeFuture("t", 1, MAX_OPEN_FUTURES))
    assert first.waited == [None]
    (row,) = books.rows()
    assert row.records == MAX_OPEN_FUTURES + 1  # all of them ended, so all are in the books
