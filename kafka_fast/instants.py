"""The two ends of time, for deadlines that are computed with `min` and compared with `now`."""

from __future__ import annotations

NEVER = float("inf")
"""When something is due that is not."""

LONG_AGO = float("-inf")
"""When something was due that is not held back at all: whatever the time, that was before."""
