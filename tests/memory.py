"""How much memory this process has."""

from __future__ import annotations

import resource
from pathlib import Path


def resident_bytes() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
