"""Lines of a file or a pipe in bulk: one list of lines for each block that was read.

Binary-safe: a line ends only at a line feed, and is passed on byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from kafka_fast.errors import UsageError

BLOCK_SIZE = 1 << 20


class LineSource(Protocol):
    """An unbuffered binary file: a read returns the bytes that are there, also from a slow pipe."""

    def read(self, size: int, /) -> bytes | None:
        """Return up to `size` bytes; no bytes at the end."""
        ...


class Lines(NamedTuple):
    """The lines that ended in one block."""

    values: list[bytes]
    size: int
    """Bytes read since the last Lines, line feeds included."""


def read_lines(source: LineSource, max_line: int) -> Iterator[Lines]:
    """Yield the lines that end in each block; the last one needs no line feed.

    Args:
        source: the input.
        max_line: most bytes that are kept of a line whose end was not read yet.

    Raises:
        UsageError: a line is longer than `max_line` and does not end in its last block.
    """
    count = 0  # lines before `parts`
    parts: list[bytes] = []  # pieces of the line that has not ended yet
    held = 0  # bytes in `parts`
    size = 0
    while block := _read(source):
        head, newline, tail = block.partition(b"\n")
        parts.append(head)
        held += len(head)
        size += len(block)
        if not newline:
            if held > max_line:
                raise UsageError(f"line {count + 1}: longer than {max_line} bytes")
            continue
        lines = tail.split(b"\n")
        lines.insert(0, b"".join(parts))
        parts = [lines.pop()]
        held = len(parts[0])
        yield Lines(lines, size)
        count += len(lines)
        size = 0
    if held:
        yield Lines([b"".join(parts)], size)


def split_keys(
    lines: list[bytes], separator: bytes, first_line: int
) -> tuple[list[bytes], list[bytes]]:
    """Return the keys and the values of lines; the first separator of a line divides it.

    Args:
        lines: the lines.
        separator: the bytes between key and value.
        first_line: number of the first line, for the message.

    Raises:
        UsageError: a line has no separator.
    """
    keys: list[bytes] = []
    values: list[bytes] = []
    for line in lines:
        key, matched, value = line.partition(separator)
        if not matched:
            raise UsageError(f"line {first_line + len(keys)}: no key separator {separator!r} in it")
        keys.append(key)
        values.append(value)
    return keys, values


def _read(source: LineSource) -> bytes:
    block = source.read(BLOCK_SIZE)
    if block is None:  # taken for the end of the input, this would lose the rest
        raise UsageError("the input is in non-blocking mode")
    return block
