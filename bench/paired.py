"""Compare two checkouts of kafka_fast: pairs of runs that take turns, medians of their ratios.

    git worktree add ../before <commit> && make -C ../before build
    python bench/paired.py --baseline ../before                 25 pairs of each row
    python bench/paired.py --baseline ../before --only send --pairs 5
    python bench/paired.py --baseline ../before --instructions  counted by valgrind, once

Each checkout runs its own `bench/` in its own `.venv`, against a null broker of its own. A pair's
two runs follow each other directly, and every other pair begins with the other checkout. So a slow
minute of the machine slows both. The figures are CPU seconds per million records (getrusage), or
the median microseconds of one record in flight. A ratio below 1 says that this checkout needs less.

`--instructions` counts the instructions of the caller's thread for two numbers of records. The
difference is what the records have cost, without the start and the end of the process. The data
plane's thread is left out: how long it stays awake depends on time, which valgrind stretches.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
RUN_TIMEOUT = 600
COUNTED = (40_000, 140_000)
"""Records of the two runs whose instructions are counted."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row: a program of `bench/` with its arguments, and the figure of its last line."""

    name: str
    arguments: tuple[str, ...]
    records: int
    figure: str = "cpu_per_million"


ROWS = [
    Row("send", ("end_to_end.py", "kafka_fast", "send"), 2_000_000),
    Row("send_nowait", ("end_to_end.py", "kafka_fast", "send_nowait"), 3_000_000),
    Row("send_many", ("end_to_end.py", "kafka_fast", "list"), 5_000_000),
    Row("keyed", ("end_to_end.py", "kafka_fast", "keyed"), 2_000_000),
    Row("callback", ("end_to_end.py", "kafka_fast", "callback"), 1_000_000),
    Row("Arrow", ("end_to_end.py", "kafka_fast", "Arrow"), 5_000_000),
    Row("poll(500)", ("consume.py", "kafka_fast", "poll(500)"), 3_000_000),
    Row("read Arrow view", ("consume.py", "kafka_fast", "Arrow view"), 5_000_000),
    Row(
        "one in flight",
        ("end_to_end.py", "kafka_fast", "send", "--experiment=latency"),
        5_000,
        "p50_us",
    ),
]


def measure(checkout: Path, row: Row) -> float:
    """Return the figure of one run."""
    command = [*_command(checkout, row), f"--records={row.records}"]
    done = subprocess.run(
        command, cwd=checkout, capture_output=True, text=True, timeout=RUN_TIMEOUT, check=True
    )
    return float(json.loads(done.stdout.splitlines()[-1])[row.figure])


def instructions(checkout: Path, row: Row) -> float:
    """Return the instructions of the caller's thread that one record costs."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise SystemExit("--instructions needs valgrind")
    counts = []
    for records in COUNTED:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "out")
            subprocess.run(
                [
                    *(valgrind, "--tool=callgrind", "--separate-threads=yes"),
                    *(f"--callgrind-out-file={out}", *_command(checkout, row)),
                    f"--records={records}",
                ],
                cwd=checkout,
                capture_output=True,
                timeout=RUN_TIMEOUT,
                check=True,
            )
            totals = re.search(r"^totals: (\d+)", Path(f"{out}-01").read_text(), re.MULTILINE)
        if totals is None:
            raise RuntimeError("valgrind counted nothing in the caller's thread")
        counts.append(int(totals[1]))
    return (counts[1] - counts[0]) / (COUNTED[1] - COUNTED[0])


def _command(checkout: Path, row: Row) -> list[str]:
    program, *arguments = row.arguments
    return [str(checkout / ".venv/bin/python"), str(checkout / "bench" / program), *arguments]


def compare(baseline: Path, row: Row, pairs: int) -> str:
    """Return a row of the table: both medians, and the median of the pairs' ratios."""
    before: list[float] = []
    after: list[float] = []
    for number in range(pairs):
        turns = [(baseline, before), (HERE, after)]
        for checkout, results in turns if number % 2 == 0 else reversed(turns):
            results.append(measure(checkout, row))
    ratios = sorted(new / old for old, new in zip(before, after, strict=True))
    middle = statistics.median(ratios)
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    return (
        f"| {row.name} | {statistics.median(before):.4g} | {statistics.median(after):.4g} "
        f"| {middle:.3f} | {low:.3f} to {high:.3f} |"
    )


def main() -> int:
    """Parse the command line, run, print a table in Markdown."""
    parser = argparse.ArgumentParser(description="Compare two checkouts of kafka_fast.")
    parser.add_argument("--baseline", type=Path, required=True, help="a checkout that is built")
    parser.add_argument("--pairs", type=int, default=25)
    parser.add_argument("--only", action="append", choices=[row.name for row in ROWS])
    parser.add_argument("--instructions", action="store_true", help="count them, with valgrind")
    options = parser.parse_args()
    baseline = options.baseline.resolve()
    rows = [row for row in ROWS if options.only is None or row.name in options.only]
    if options.instructions:
        print("| row | instructions per record, before | after | ratio |\n|---|--:|--:|--:|")
        for row in rows:
            if row.figure == "cpu_per_million":
                old, new = instructions(baseline, row), instructions(HERE, row)
                print(f"| {row.name} | {old:.0f} | {new:.0f} | {new / old:.3f} |", flush=True)
        return 0
    print(f"| row | before | after | median of {options.pairs} ratios | middle half |")
    print("|---|--:|--:|--:|--:|")
    for row in rows:
        print(compare(baseline, row, options.pairs), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
