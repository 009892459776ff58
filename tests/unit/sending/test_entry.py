"""The short way into `send`, and the switch that leaves the methods as they stand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

CALLS = """
from tests.unit.dataplane.rig import ProduceRig
rig = ProduceRig()
send, send_nowait = rig.accumulator.send, rig.accumulator.send_nowait
send("t", b"one", key=b"k", partition=0)
send_nowait("t", b"two", partition=0)
send("t", b"three", partition=0, headers=[("h", b"v")])
(sent,) = rig.requests()
print(sent.values())
try:
    send("t", b"four", value=b"twice")
except TypeError as error:
    print("refused")
try:
    send("t", b"five", callback=print)
except TypeError as error:
    print("kafka_fast calls it on_delivery" in str(error))
"""


@pytest.mark.parametrize(("switch", "has_hints"), [("1", True), ("0", False)])
def test_calls_mean_the_same(switch: str, has_hints: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CALLS],
        cwd=ROOT,
        env={**os.environ, "KAFKA_FAST_SHORT_CALLS": switch},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "[b'one', b'two', b'three']",
        "refused",
        str(has_hints),
    ]
