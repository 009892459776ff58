"""Lines of a file or a pipe in bulk: one list of lines for each block that was read.

Binary-safe: a line ends at a line feed and at nothing else, and is handed on byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from kafka_fast.errors import UsageError

BLOCK_SIZE = 1 << 20


class LineSource(Protocol):
    """An unbuffered binary file: a read returns what is there, so a slow pipe is not held back."""

    def read(self, size: int, /) -> bytes | None:
        """Return up to `size` bytes, none at the end."""
        ...


class Lines(NamedTuple):
    """The lines that ended in one block."""

    values: list[bytes]
    size: int
    """Bytes read for them since the lines before, line feeds included."""


def read_lines(source: LineSource, max_line: int) -> Iterator[Lines]:
    """Yield the lines that end in each block; the last one needs no line feed.

    Args:
        source: where to read.
        max_line: bytes that may be held of a line whose end is not in sight.

    Raises:
        UsageError: a line has more, and blocks beyond.
    """
    count = 0  # of the lines before `parts`
    parts: list[bytes] = []  # of the line that has not ended yet
    held = 0  # bytes in `parts`
    size = 0
    while block := _read(source):
        head, found, tail = block.partition(b"\n")
        parts.append(head)
        held += len(head)
        size += len(block)
        if not found:
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
        separator: what stands between key and value.
        first_line: the number of the first of them, for the message.

    Raises:
        UsageError: a line has no separator.
    """
    keys: list[bytes] = []
    values: list[bytes] = []
    for line in lines:
        key, found, value = line.partition(separator)
        if not found:
            raise UsageError(f"line {first_line + len(keys)}: no key separator {separator!r} in it")
        keys.append(key)
        values.append(value)
    return keys, values


def _read(source: LineSource) -> bytes:
    block = source.read(BLOCK_SIZE)
    if block is None:  # would pass for the end of the input, and lose the rest of it
        raise UsageError("the input is in non-blocking mode")
    return block
