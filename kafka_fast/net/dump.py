"""What the links did lately, asked of the data plane for people to read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from kafka_fast.dataplane._plane import WAIT_SLICE, DataPlane
from kafka_fast.dataplane._traces import read_traces


class LinkDump:
    """Collects what the data plane answers, a link at a time; one caller asks, others wait."""

    def __init__(self, plane: DataPlane) -> None:
        """Begin with nothing.

        Args:
            plane: owns the links.
        """
        self._plane = plane
        self._asking = threading.Lock()
        self._arrived = threading.Condition()
        self._lines: list[str] = []
        self._is_done = False

    def ask(self, timeout: float, given_up: Callable[[], bool]) -> list[str]:
        """Return lines about all links; what comes within `timeout` seconds. User's thread.

        Args:
            timeout: in seconds.
            given_up: returns whether no answer will come.
        """
        deadline = time.monotonic() + timeout
        with self._asking, self._arrived:
            self._lines, self._is_done = [], False
            self._plane.request_dump(0)
            while not (self._is_done or given_up() or time.monotonic() >= deadline):
                self._arrived.wait(WAIT_SLICE)
            return self._lines

    def take(self, event: tuple[Any, ...]) -> None:
        """Take an EVENT_DUMP: a link, or, with link 0, the end. Control thread."""
        _, link_id, in_flight, node_id, _, ring, _ = event
        with self._arrived:
            if link_id:
                self._lines.append(f"link {link_id} to node {node_id}, {in_flight} in flight")
                self._lines += [f"  {line}" for line in read_traces(ring or b"")]
            else:
                self._is_done = True
                self._arrived.notify_all()
