"""Replay the hostile record batches of tests/corpus: each ends as its line says, and in no time."""

from __future__ import annotations

import pytest

from kafka_fast import errors
from kafka_fast.record import read_batches
from tests.corpus.replay import LIMIT, data_of, files_of, lines_of

EXPECTED = {name: (kind, text) for name, kind, text in lines_of("record", 3)}


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
    assert files_of("record") == set(EXPECTED)


@pytest.mark.parametrize("name", list(EXPECTED))
def test_replay(name: str) -> None:
    data = data_of("record", name)
    kind, text = EXPECTED[name]
    if kind == "ok":
        assert read_everything(data) == text
    else:
        with pytest.raises(getattr(errors, kind), match=text):
            read_everything(data)
