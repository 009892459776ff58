"""The suite itself: what a run in the background of a shell changes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEST = "tests/unit/cli/records/test_produce_end_to_end.py::test_ctrl_c_delivers_what_was_read"


def test_a_run_in_the_background_hears_ctrl_c_where_it_must() -> None:
    """Regression: shells let such a run ignore it, and the tests' processes inherited that.

    One that was to end by Ctrl-C went on, and its test waited until the whole worker was ended.
    """
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # what a child finds
    try:
        run = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TEST],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    out, _ = run.communicate(timeout=100)
    assert run.returncode == 0, out
