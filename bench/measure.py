"""What a process measures of itself and of the broker beside it."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Instant:
    """Clocks at one moment; the difference of two is a span.

    Attributes:
        wall: seconds.
        process_cpu: user and system seconds of this process, all threads.
        thread_cpu: of this thread.
        broker_cpu: of the broker's process, in steps of 1/100 s.
    """

    wall: float
    process_cpu: float
    thread_cpu: float
    broker_cpu: float

    def since(self, before: Instant) -> Instant:
        """Return the span from `before` to here."""
        return Instant(
            self.wall - before.wall,
            self.process_cpu - before.process_cpu,
            self.thread_cpu - before.thread_cpu,
            self.broker_cpu - before.broker_cpu,
        )


def instant(broker_pid: int) -> Instant:
    """Read all clocks."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Instant(
        time.perf_counter(),
        usage.ru_utime + usage.ru_stime,
        time.thread_time(),
        cpu_of(broker_pid),
    )


def cpu_of(pid: int) -> float:
    """Return the user and system seconds of a process, all threads, ended ones too."""
    # The name, in parentheses, may hold spaces; utime and stime are fields 14 and 15.
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident() -> int:
    """Return the resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE


def percentile(samples: list[float], share: float) -> float:
    """Return the sample that `share` of them do not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
