"""The latest events of the links, requested from the data plane for people to read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from kafka_fast.control.messages import DumpEvent, DumpLinks, LinkTraces, TracesEnded
from kafka_fast.dataplane.core._events import read_traces
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.logs import count_of
from kafka_fast.net._transport_carrier import carry_transport
from kafka_fast.net.host import Host
from kafka_fast.net.waiting.steps import Steps, Wait
from kafka_fast.values import assert_never


class LinkDump:
    """Collects the data plane's answers, one per link; one caller asks while others wait."""

    def __init__(self, plane: DataPlane, name: Callable[[int, int], str], host: Host) -> None:
        """Start with no dump under way; `ask_links` requests one.

        Args:
            plane: owns the links.
            name: returns what a link leads to, by its id and its node's. Control thread.
            host: has the clocks.
        """
        self._plane = plane
        self._name = name
        self._host = host
        # Seconds by which Unix time is ahead: one number, so that lines keep their distances.
        self._offset = 0.0
        self._asking = threading.Lock()  # held by the caller while `ask_links` runs
        self._lines: list[str] = []
        self._is_done = False

    def ask_links(self, deadline: float, given_up: Callable[[], bool]) -> Steps[list[str]]:
        """Return lines about all links that answer by the deadline. User's thread.

        The caller wakes the others afterwards, who may wait to ask as well.

        Args:
            deadline: when to give up.
            given_up: returns whether no answer will come.
        """
        yield Wait(lambda: not self._asking.locked() or given_up(), deadline, "another dump")
        if not self._asking.acquire(blocking=False):
            return []
        try:
            self._lines, self._is_done = [], False
            self._offset = self._host.wall_ms() / 1000 - self._host.now()
            carry_transport(DumpLinks(0), self._plane)
            yield Wait(lambda: self._is_done or given_up(), deadline, "what the links did")
            return self._lines
        finally:
            self._asking.release()

    def head_stamp(self, at: float) -> str:
        """Return what `stamp` returns, with the zone."""
        return f"{self.stamp(at)} {time.strftime('%z')}"

    def stamp(self, at: float) -> str:
        """Return a monotonic time as the clock on the wall had it, in the zone of this process."""
        seconds = at + self._offset
        day = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
        return f"{day}.{int(seconds * 1e6) % 1_000_000:06d}"

    def take_event(self, event: DumpEvent) -> None:
        """Take what describes a link, or the end of all. Control thread."""
        match event:
            case LinkTraces(link_id, node_id, in_flight, ring):
                there = f"{count_of(in_flight, 'request')} in flight"
                self._lines.append(f"link {link_id} to {self._name(link_id, node_id)}, {there}")
                self._lines += [f"  {self.stamp(at)} {what}" for at, what in read_traces(ring)]
            case TracesEnded():
                self._is_done = True
            case _:
                assert_never(event)
