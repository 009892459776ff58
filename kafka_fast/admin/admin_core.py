"""The core of an admin client: both planes, with operations in place of records.

kf-data      native: sends requests, reads answers
kf-control   Python: gives this core its turns, carries operations out
the user's   waits for their results, see `admin_steps`
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import NoReturn

from kafka_fast.config import AdminSettings
from kafka_fast.control.admin.admin_control import AdminControl
from kafka_fast.control.messages import DumpEvent, TransportEvent
from kafka_fast.dataplane.core._events import PlaneEvent
from kafka_fast.net.core import client_carrier
from kafka_fast.net.core.waiting_core import END_PATIENCE, WaitingCore
from kafka_fast.net.host import Host
from kafka_fast.net.planes import admin_plane
from kafka_fast.net.waiting.waits import ClientWaits
from kafka_fast.values import assert_never

TOUCH_INTERVAL = 3.0
"""Seconds between two reports of the topics in use; less than `admin_control.TOPIC_IDLE`."""


class AdminCore(WaitingCore[NoReturn, NoReturn]):
    """Both planes of one admin client. Any thread, except the control thread's part."""

    kind = "admin"
    control: AdminControl
    touch_interval = TOUCH_INTERVAL
    exit_patience = 0.0  # an operation that nobody waits for any more need not end

    def __init__(self, settings: AdminSettings, client_id: str, host: Host) -> None:
        """Start; connections are made when they are needed.

        Args:
            settings: the client's configuration.
            client_id: sent in all requests.
            host: the world under this client.
        """
        # A silent broker causes one trouble in at most this time: a timeout, then a reconnect.
        memory = settings.request_timeout + settings.reconnect_backoff_max
        with ExitStack() as undo:  # out of threads or files: give back what was taken
            undo.callback(host.close)
            control = AdminControl(settings, client_id, host.random, host.wall_ms, host.mechanism)
            plane = admin_plane(host.environment, settings)
            undo.callback(plane.shut_down)
            super().__init__(client_id, host, control, plane)
            self.waits = ClientWaits(control.view, host.now, memory=memory)
            undo.pop_all()
        self._start()

    def stats(self) -> dict[str, object]:
        """Return counters of troubles and nodes."""
        return {
            **self.plane.stats(),
            **self.control.view.stats(),
            "nodes": self.plane.node_stats(),
        }

    # ---- the control thread ----

    def _read_event(self, event: PlaneEvent) -> TransportEvent | DumpEvent:
        return client_carrier.read_event(event)

    def _touch(self, now: float) -> None:
        self.control.touch_topics(now)

    def _program(self, command: NoReturn) -> None:
        assert_never(command)

    # ---- the end ----

    def begin_exit(self) -> None:
        """Do nothing: no work of an admin client outlives the call that asks for it."""

    def wait_exit(self, timeout: float) -> bool:
        """Return at once."""
        return True

    def log_exit(self) -> None:
        """Log nothing: there is no wait."""

    def end_exit(self, interrupted: str) -> None:
        """End the threads: what is collected later must find no thread to wait for."""
        self._refuse()
        self._end(END_PATIENCE)
