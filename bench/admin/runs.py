"""What the benchmarks of the admin client share: runs in processes of their own, and their rows."""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]
"""`contender` and `scenario`, and numbers by the names of `bench/tables/report.py`."""

MEASURE = "--measure"
"""Before the arguments of a run: what follows is measured in this process."""


def cpu_seconds() -> float:
    """Return the CPU seconds of this process, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cost_of(call: Callable[[], object], times: int) -> Row:
    """Return what one call costs, of several."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    for _ in range(times):
        call()
    return {
        "call_cpu_ms": (cpu_seconds() - cpu) / times * 1000,
        "call_ms": (time.perf_counter() - wall) / times * 1000,
    }


def compiling(folder: str) -> dict[str, str]:
    """Return an environment in which Python keeps compiled modules in a folder."""
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONPATH": str(root)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def run_elsewhere(script: str, folder: str, *arguments: object) -> Row:
    """Run `script` in another process, and return the row that it prints.

    Args:
        script: path of the program.
        folder: where Python keeps compiled modules from run to run.
        arguments: of the run.
    """
    command = [sys.executable, script, MEASURE, *map(str, arguments)]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=compiling(folder)
    )
    if done.returncode != 0:
        return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1]}
    row: Row = json.loads(done.stdout)
    return row


def show_runs(about: str | None, rows_of: Callable[[int], Iterable[Row]], rounds: int) -> int:
    """Parse the arguments of a program, run it, and print its rows; return its exit status.

    Args:
        about: the program's docstring.
        rows_of: runs so many rounds, and yields a row for each run.
        rounds: how many, unless the arguments say.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--json", action="store_true", help="one line for each run")
    options = parser.parse_args()
    runs: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows_of(options.rounds):
        if options.json:
            print(json.dumps(row), flush=True)
        runs[row["scenario"], row["contender"]].append(row)
    if options.json:
        return 0  # compare.py finds the errors among the lines
    for (scenario, contender), rows in runs.items():
        print(f"{scenario}, {contender}: {_medians(rows)}")
    return 1 if any("error" in row for rows in runs.values() for row in rows) else 0


def _medians(rows: list[Row]) -> str:
    errors = [row["error"] for row in rows if "error" in row]
    if errors:
        return str(errors[0])
    names = [name for name, value in rows[0].items() if isinstance(value, (int, float))]
    return ", ".join(f"{name} {statistics.median(row[name] for row in rows):.1f}" for name in names)
