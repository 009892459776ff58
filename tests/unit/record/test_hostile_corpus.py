"""Replay the hostile record batches of tests/corpus: each ends as its line says, and in no time."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_fast import errors
from kafka_fast.record import read_batches

FOLDER = Path(__file__).parents[2] / "corpus" / "hostile" / "record"
LIMIT = 100_000


def expectations() -> dict[str, tuple[str, str]]:
    lines = (FOLDER / "expected.txt").read_text().splitlines()
    found = {}
    for line in lines:
        if not line.startswith("#"):
            name, kind, text = line.split(" ", 2)
            found[name] = (kind, text)
    return found


EXPECTED = expectations()


def read_everything(data: bytes) -> str:
    """Read as a consumer would; return what came out, in the words of expected.txt."""
    batches = read_batches(data)
    count, position = 0, None
    for batch in batches:
        if batch.is_control:
            batch.control_record()
        count += len(list(batch.records(max_size=LIMIT)))
        position = batch.next_offset
    return f"records={count} next={position} partial={len(batches.partial)}"


def test_every_file_has_its_line() -> None:
    assert {path.stem for path in FOLDER.glob("*.bin")} == set(EXPECTED)


@pytest.mark.parametrize("name", list(EXPECTED))
def test_replay(name: str) -> None:
    data = (FOLDER / f"{name}.bin").read_bytes()
    kind, text = EXPECTED[name]
    if kind == "ok":
        assert read_everything(data) == text
    else:
        with pytest.raises(getattr(errors, kind), match=text):
            read_everything(data)
