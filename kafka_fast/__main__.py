"""`python -m kafka_fast`: the same as the console script `kafka-fast`."""

from __future__ import annotations

import sys

from kafka_fast.cli.main import run_process

if __name__ == "__main__":
    sys.exit(run_process())
