"""What the core of record batches takes, in C: builds and runs record_core.c.

    python bench/micro/record_core.py        one JSON line for each row, as compare.py reads them

A Python call costs more than a record, so the core is measured without any.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (ROOT / "bench" / "micro" / "record_core.c", ROOT / "src_c" / "kf_crc32c.c")
# The flags of the extensions.
FLAGS = (
    "-std=gnu11",
    "-O3",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Werror",
    "-fno-strict-overflow",
    f"-I{ROOT / 'src_c'}",
    "-pthread",
)

# The rows of the tables.
CRC = "CRC32C, "
CORES = {
    "encode core": "encode",
    "CRC and decode core": "decode",
    "memcpy and CRC": "copy",
}


def measure() -> dict[str, Any]:
    """Return the program's figures: `encode`, `decode` and `copy` in ns, `crc_gbps` by path."""
    compiler = os.environ.get("CC", "cc").split()
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "record_core"
        subprocess.run([*compiler, *FLAGS, *SOURCES, "-o", program], check=True)
        run = subprocess.run([program], capture_output=True, text=True, check=True)
    return dict(json.loads(run.stdout))


def rows(figures: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the figures as rows of compare.py's tables."""
    for path, speed in figures["crc_gbps"].items():
        yield {"scenario": CRC + path, "contender": "kafka_fast", "gb_per_s": speed}
    for name, key in CORES.items():
        yield {"scenario": name, "contender": "kafka_fast", "ns_per_record": figures[key]}


def main() -> None:
    """Measure and print."""
    for row in rows(measure()):
        json.dump(row, sys.stdout)
        print()


if __name__ == "__main__":
    main()
