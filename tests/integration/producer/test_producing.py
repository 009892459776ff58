"""The judge of the chaos test is judged: what is planted in a log must be found."""

from __future__ import annotations

import pytest

from kafka_fast.types import RecordMetadata
from tests.integration import producing
from tests.integration.producing import Tally, partition_by_key

Log = list[tuple[int, bytes | None, bytes]]

PARTITIONS = 3
RECORDS = 60


@pytest.fixture
def tally() -> Tally:
    return Tally("topic", PARTITIONS, keyed=True)


@pytest.fixture
def logs(tally: Tally) -> list[Log]:
    """Send, and write every record where it belongs."""
    made: list[Log] = [[] for _ in range(PARTITIONS)]
    for number in range(RECORDS):
        value, key = tally.next_record(30)
        assert key is not None
        partition = partition_by_key(key, PARTITIONS)
        offset = len(made[partition])
        made[partition].append((offset, key, value))
        tally.take(number, None, RecordMetadata("topic", partition, offset, 0))
    return made


def found(tally: Tally, logs: list[Log], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    numbered = [
        [(offset, key, value) for offset, (_, key, value) in enumerate(log)] for log in logs
    ]
    monkeypatch.setattr(producing, "read_values", lambda *_: numbered)
    return set(tally.compare("nowhere"))


def test_nothing_is_found_where_nothing_is_wrong(
    tally: Tally, logs: list[Log], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(tally, logs, monkeypatch) == set()


def test_a_lost_record(tally: Tally, logs: list[Log], monkeypatch: pytest.MonkeyPatch) -> None:
    logs[0].pop()
    assert found(tally, logs, monkeypatch) == {"lost"}


def test_a_duplicate(tally: Tally, logs: list[Log], monkeypatch: pytest.MonkeyPatch) -> None:
    logs[0].append(logs[0][-1])
    assert "duplicated" in found(tally, logs, monkeypatch)


def test_a_wrong_order(tally: Tally, logs: list[Log], monkeypatch: pytest.MonkeyPatch) -> None:
    logs[0][-2:] = logs[0][:-3:-1]
    assert found(tally, logs, monkeypatch) == {"misordered", "wrong offset"}


@pytest.mark.parametrize("value", [b"other:1:x", b"topic:1000:x"])
def test_a_record_from_elsewhere(
    tally: Tally, logs: list[Log], monkeypatch: pytest.MonkeyPatch, value: bytes
) -> None:
    logs[0].append((0, b"key", value))
    assert found(tally, logs, monkeypatch) == {"misrouted"}


def test_a_wrong_partition(tally: Tally, logs: list[Log], monkeypatch: pytest.MonkeyPatch) -> None:
    logs[1].append(logs[0].pop())
    assert "misrouted" in found(tally, logs, monkeypatch)


def test_what_was_told_twice_never_or_as_a_failure(
    tally: Tally, logs: list[Log], monkeypatch: pytest.MonkeyPatch
) -> None:
    tally.take(0, None, RecordMetadata("topic", *tally.acked[0], 0))
    del tally.acked[1]
    assert found(tally, logs, monkeypatch) == {"completed twice", "never completed"}
