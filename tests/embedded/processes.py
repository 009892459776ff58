"""Scripts in processes of their own: for what becomes of clients when a process ends or forks."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.waiting import TIMEOUT

ROOT = Path(__file__).parents[2]
PRELUDE = """
import ctypes, gc, itertools, os, signal, sys, threading, time, warnings
sys.setswitchinterval(float(os.environ.get("KAFKA_FAST_TEST_SWITCH_INTERVAL", 0.005)))
from kafka_fast import *
"""

DIARY = """
class Diary(RebalanceListener):
    heard = []
    def on_partitions_assigned(self, consumer, partitions):
        self.heard.append("assigned")
    def on_partitions_revoked(self, consumer, partitions):
        self.heard.append("revoked")
    def on_partitions_lost(self, consumer, partitions):
        self.heard.append("lost")
"""


DRIVEN = """
from tests.embedded.driven import DrivenConsumer as Consumer, DrivenProducer as Producer
warnings.filterwarnings("ignore", "unclosed event loop", ResourceWarning)  # the facade's own
"""


def start(
    body: str, *arguments: str, prelude: str = "", driver: str = "threads"
) -> subprocess.Popen[str]:
    """Start a script that finds the usual modules and all of kafka_fast imported.

    Args:
        body: of the script.
        arguments: of the script.
        prelude: what precedes the body.
        driver: "asyncio" has its clients be asyncio's, with blocking methods.
    """
    imports = PRELUDE + (DRIVEN if driver == "asyncio" else "")
    return subprocess.Popen(
        [
            sys.executable,
            "-X",
            "dev",
            "-c",
            imports + textwrap.dedent(prelude) + textwrap.dedent(body),
            *arguments,
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(
    body: str,
    *arguments: str,
    prelude: str = "",
    timeout: float = TIMEOUT,
    driver: str = "threads",
) -> subprocess.CompletedProcess[str]:
    """Run a script to its end; the arguments are those of `start`."""
    process = start(body, *arguments, prelude=prelude, driver=driver)
    out, err = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
