"""Lines in bulk: whatever the blocks, the same lines."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_fast.cli.records import lines as module
from kafka_fast.cli.records.lines import read_lines, split_keys
from kafka_fast.errors import UsageError


class Blocks:
    """A source that hands out given blocks, like a pipe."""

    def __init__(self, *blocks: bytes | None) -> None:
        self._blocks = list(blocks)

    def read(self, size: int, /) -> bytes | None:
        return self._blocks.pop(0) if self._blocks else b""


def _lines(*blocks: bytes) -> list[bytes]:
    return [line for lines in read_lines(Blocks(*blocks), 1 << 20) for line in lines.values]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"\n", [b""]),
        (b"a\n\nb", [b"a", b"", b"b"]),
        (b"\x00\xff\r\n\x0b\x0c\x1c\xc2\x85\n", [b"\x00\xff\r", b"\x0b\x0c\x1c\xc2\x85"]),
    ],
)
def test_lines_end_at_line_feeds_only(data: bytes, expected: list[bytes]) -> None:
    assert _lines(data) == expected
    assert _lines(*(data[i : i + 1] for i in range(len(data)))) == expected


@given(st.lists(st.binary(min_size=1, max_size=20).map(lambda b: b.replace(b"x", b"\n"))))
def test_blocks_do_not_show(blocks: list[bytes]) -> None:
    data = b"".join(blocks)
    expected = data.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    assert _lines(*blocks) == expected


def test_a_block_is_handed_on_when_it_is_there() -> None:
    source = Blocks(b"a\nb", b"c\n", b"")
    reader = read_lines(source, 100)
    assert next(reader) == ([b"a"], 3)
    assert next(reader) == ([b"bc"], 2)


def test_a_file_is_read_in_big_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_SIZE", 4)
    blocks = list(read_lines(io.BytesIO(b"ab\ncd\nefghi"), 100))
    assert [lines.values for lines in blocks] == [[b"ab"], [b"cd"], [b"efghi"]]
    assert [lines.size for lines in blocks] == [4, 4, 3]


def test_memory_is_bounded_by_the_longest_line() -> None:
    assert _lines(b"x" * 9, b"x\n") == [b"x" * 10]
    with pytest.raises(UsageError, match="line 2: longer than 10 bytes"):
        list(read_lines(Blocks(b"a\n", b"x" * 6, b"x" * 6, b"\n"), 10))


def test_no_data_yet_is_not_the_end() -> None:
    with pytest.raises(UsageError, match="non-blocking"):
        list(read_lines(Blocks(None), 10))


def test_keys() -> None:
    assert split_keys([b"k:v", b":v:w", b"k:"], b":", 1) == (
        [b"k", b"", b"k"],
        [b"v", b"v:w", b""],
    )
    with pytest.raises(UsageError, match=r"line 8: no key separator b':' in it"):
        split_keys([b"k:v", b"kv"], b":", 7)
