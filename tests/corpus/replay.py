"""The hostile corpus as the tests read it: a file is a case, and a new file is a new test.

Each folder of hostile/ has an expected.txt with a line for every file; what stands in a line is
said at its top. The scripts beside this module write both.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

CORPUS = Path(__file__).parent / "hostile"
LIMIT = 100_000
"""Bytes that decompression may give wherever the corpus is replayed."""


class Batches(NamedTuple):
    """Record batches as a log or one answer holds them, and what a reader makes of them."""

    name: str
    data: bytes
    position: int
    """Where the reader stands."""
    aborted: tuple[tuple[int, int], ...]
    """Producer and first offset of aborted transactions, as the answer lists them."""
    offsets: tuple[int, ...] | None
    """Of the records that are handed out under read_committed; None: the line does not say."""
    next_offset: int | None
    """The position afterwards; None: the bytes are refused."""
    refusal: str
    """A part of what the error says, as a regular expression."""

    def __str__(self) -> str:
        return self.name


def lines_of(folder: str, fields: int) -> list[list[str]]:
    """Return the lines of a folder's expected.txt, each cut into so many fields."""
    lines = (CORPUS / folder / "expected.txt").read_text().splitlines()
    return [line.split(" ", fields - 1) for line in lines if not line.startswith("#")]


def files_of(folder: str) -> set[str]:
    """Return the names of a folder's files."""
    return {path.stem for path in (CORPUS / folder).glob("*.bin")}


def data_of(folder: str, name: str) -> bytes:
    """Return the bytes of a file."""
    return (CORPUS / folder / f"{name}.bin").read_bytes()


def record_batches() -> list[Batches]:
    """Return the cases of hostile/record/, which are one batch each, most of them."""
    cases = []
    for name, kind, text in lines_of("record", 3):
        data = data_of("record", name)
        if kind != "ok":
            cases.append(Batches(name, data, 0, (), None, None, text))
            continue
        said = dict(part.split("=") for part in text.split())
        next_offset = 0 if said["next"] == "None" else int(said["next"])
        cases.append(Batches(name, data, 0, (), None, next_offset, ""))
    return cases


def batch_sequences() -> list[Batches]:
    """Return the cases of hostile/reading/: batches that are sound, most of them, in a row."""
    cases = []
    for name, position, aborted, kind, listed, text in lines_of("reading", 6):
        pairs = [] if aborted == "-" else [pair.split(":") for pair in aborted.split(",")]
        cases.append(
            Batches(
                name,
                data_of("reading", name),
                int(position),
                tuple((int(producer), int(offset)) for producer, offset in pairs),
                () if listed == "-" else tuple(map(int, listed.split(","))),
                int(text.removeprefix("next=")) if kind == "ok" else None,
                "" if kind == "ok" else re.escape(text),
            )
        )
    return cases


class Answer(NamedTuple):
    """What stands on the wire in the place of an answer."""

    name: str
    data: bytes
    api: int
    version: int
    layer: str
    """Who refuses it: `link`, `answer` (it does not fit its request) or `message`."""
    kind: str
    """Name of the error's class; `ok` if nobody refuses it."""
    refusal: str
    """A part of what the error says, as a regular expression."""

    def __str__(self) -> str:
        return self.name

    def to(self, request: bytes) -> bytes:
        """Return the bytes with the correlation id of `request`'s answer wherever one is 0.

        Args:
            request: four bytes.
        """
        data, pos = bytearray(self.data), 0
        while pos + 8 <= len(data):
            if not any(data[pos + 4 : pos + 8]):
                data[pos + 4 : pos + 8] = request
            pos += 4 + int.from_bytes(data[pos : pos + 4], "big")
        return bytes(data)


def answers() -> list[Answer]:
    """Return the cases of hostile/frame/."""
    cases = []
    for name, api, version, layer, expected in lines_of("frame", 5):
        kind, _, refusal = expected.partition(" ")
        data = data_of("frame", name)
        cases.append(Answer(name, data, int(api), int(version), layer, kind, refusal))
    return cases
