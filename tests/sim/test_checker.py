"""The checker must find what it is there for: each anomaly is planted by hand, none is invented.

`healthy()` is a history with every way a record can end, and the logs that fit it. Each test
breaks one thing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kafka_fast.errors import Outcome
from tests.sim.worlds.checker import (
    Completion,
    History,
    Kind,
    Promises,
    check,
    read_value,
    value_of,
)

Logs = dict[tuple[str, int], list[bytes | None]]
TIMEOUT = 10.0
RECOVERED = 3.5


def healthy() -> tuple[History, Logs]:
    """Six records: four delivered, one refused, one maybe written; one is observed by nobody."""
    history = History(failed=2, lost_counted=0, flushes=[(2, 2)])
    for topic, partition, observed, completion in (
        ("a", 0, True, Completion(2.0, 0, 0, None)),
        ("a", None, True, Completion(2.0, 1, 0, None)),
        ("a", 0, True, Completion(3.0, -1, -1, Outcome.REJECTED)),
        ("a", 0, True, Completion(4.0, -1, -1, Outcome.MAYBE_WRITTEN)),
        ("b", 0, True, Completion(2.5, 0, 0, None)),
        ("a", 0, False, None),
    ):
        sent = history.send(topic, 1.0, partition, observed=observed)
        if completion is not None:
            sent.completions.append(completion)
    logs: Logs = {
        ("a", 0): [value_of(0, "a"), value_of(3, "a"), value_of(5, "a")],
        ("a", 1): [value_of(1, "a", 30)],
        ("b", 0): [value_of(4, "b")],
    }
    return history, logs


def kinds(history: History, logs: Logs, promises: Promises | None = None) -> set[Kind]:
    promises = promises or Promises(delivery_timeout=TIMEOUT, recovered_by=RECOVERED)
    anomalies = check(history, logs, promises)
    assert all(str(anomaly).startswith(anomaly.kind.name) for anomaly in anomalies)
    return {anomaly.kind for anomaly in anomalies}


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert kinds(*healthy()) == set()


def lose(history: History, logs: Logs) -> None:
    logs["b", 0].clear()


def lose_unobserved(history: History, logs: Logs) -> None:
    logs["a", 0].pop()


def repeat(history: History, logs: Logs) -> None:
    logs["a", 0].append(value_of(5, "a"))


def repeat_in_another_partition(history: History, logs: Logs) -> None:
    logs["a", 1].append(value_of(1, "a"))


def swap(history: History, logs: Logs) -> None:
    logs["a", 0][1:] = reversed(logs["a", 0][1:])


def wrong_topic(history: History, logs: Logs) -> None:
    logs["b", 0].append(value_of(5, "a"))
    logs["a", 0].pop()


def wrong_partition(history: History, logs: Logs) -> None:
    logs["a", 1].append(value_of(5, "a"))
    logs["a", 0].pop()


def told_wrong_partition(history: History, logs: Logs) -> None:
    sent = history.sent[0]
    sent.completions[0] = replace(sent.completions[0], partition=1)


def foreign(history: History, logs: Logs) -> None:
    logs["b", 0].append(value_of(99, "b"))


def garbage(history: History, logs: Logs) -> None:
    logs["b", 0].append(b"\xff|b")


def null(history: History, logs: Logs) -> None:
    logs["b", 0].append(None)


def wrong_offset(history: History, logs: Logs) -> None:
    sent = history.sent[4]
    sent.completions[0] = replace(sent.completions[0], offset=7)


def refused_but_there(history: History, logs: Logs) -> None:
    logs["a", 0].insert(1, value_of(2, "a"))


def unsent_but_there(history: History, logs: Logs) -> None:
    history.sent[3].completions[0] = replace(
        history.sent[3].completions[0], outcome=Outcome.NOT_SENT
    )


def complete_twice(history: History, logs: Logs) -> None:
    history.sent[0].completions.append(history.sent[0].completions[0])


def never_complete(history: History, logs: Logs) -> None:
    history.sent[1].completions.clear()


def complete_late(history: History, logs: Logs) -> None:
    sent = history.sent[0]
    sent.completions[0] = replace(sent.completions[0], at=sent.at + TIMEOUT + 0.001)


def expire_after_all_is_healed(history: History, logs: Logs) -> None:
    sent = history.sent[3]
    sent.completions[0] = replace(sent.completions[0], expired=True)


def count_too_few(history: History, logs: Logs) -> None:
    history.failed += 1


def count_too_many(history: History, logs: Logs) -> None:
    history.lost_counted += 1


def misjudge_flush(history: History, logs: Logs) -> None:
    history.flushes.append((3, 4))


def keep_memory(history: History, logs: Logs) -> None:
    history.reserved_bytes = 16_384


def stand_still(history: History, logs: Logs) -> None:
    history.stuck = "a user waits"


PLANTED: list[tuple[Callable[[History, Logs], None], Kind]] = [
    (lose, Kind.LOST),
    (lose_unobserved, Kind.LOST),
    (repeat, Kind.DUPLICATE),
    (repeat_in_another_partition, Kind.DUPLICATE),
    (swap, Kind.MISORDERED),
    (wrong_topic, Kind.MISROUTED),
    (wrong_partition, Kind.MISROUTED),
    (told_wrong_partition, Kind.MISROUTED),
    (foreign, Kind.FOREIGN),
    (garbage, Kind.FOREIGN),
    (null, Kind.FOREIGN),
    (wrong_offset, Kind.WRONG_OFFSET),
    (refused_but_there, Kind.FALSE_FAILURE),
    (unsent_but_there, Kind.FALSE_FAILURE),
    (complete_twice, Kind.COMPLETED_TWICE),
    (never_complete, Kind.NEVER_COMPLETED),
    (complete_late, Kind.LATE),
    (expire_after_all_is_healed, Kind.STRANDED),
    (count_too_few, Kind.LOST_COUNT),
    (count_too_many, Kind.LOST_COUNT),
    (misjudge_flush, Kind.FLUSH),
    (keep_memory, Kind.MEMORY),
    (stand_still, Kind.STUCK),
]


@pytest.mark.parametrize(
    ("plant", "kind"), PLANTED, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_planted_anomaly_is_found(plant: Callable[[History, Logs], None], kind: Kind) -> None:
    history, logs = healthy()
    plant(history, logs)
    assert kind in kinds(history, logs)


def test_every_kind_of_anomaly_is_planted() -> None:
    by_the_guard = {Kind.LOGIN}  # it sees requests, not histories: test_guard.py
    assert {kind for _, kind in PLANTED} == set(Kind) - by_the_guard


@pytest.mark.parametrize(
    ("plant", "promises"),
    [
        (lose, Promises(acknowledged_is_written=False)),
        (lose_unobserved, Promises(acknowledged_is_written=False)),
        (wrong_offset, Promises(acknowledged_is_written=False)),
        (repeat, Promises(once=False)),
        (swap, Promises(ordered=False)),
        (refused_but_there, Promises(refused_is_absent=False)),
        (complete_late, Promises()),
        (expire_after_all_is_healed, Promises()),
        (count_too_many, Promises(lost_exactly=False)),
    ],
)
def test_what_was_not_promised_is_not_asked_for(
    plant: Callable[[History, Logs], None], promises: Promises
) -> None:
    history, logs = healthy()
    plant(history, logs)
    assert kinds(history, logs, promises) == set()


def test_a_delivered_record_without_an_offset_may_be_anywhere_in_its_partition() -> None:
    history, logs = healthy()
    history.sent[0].completions[0] = replace(history.sent[0].completions[0], offset=-1)
    assert kinds(history, logs) == set()


def test_unobserved_failures_are_counted_with_the_observed_ones() -> None:
    history, logs = healthy()
    logs["a", 0].pop()
    history.failed, history.lost_counted = 3, 1
    assert kinds(history, logs) == set()


def test_a_value_says_number_and_topic() -> None:
    assert read_value(value_of(12, "orders", 40)) == (12, "orders")
    for value in (None, b"", b"12", b"12|orders", b"x|orders|", b"|orders|", b"-1|orders|"):
        assert read_value(value) is None
