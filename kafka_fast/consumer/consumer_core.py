"""The core of a consumer: a client's core, extended by the parts that its user's thread runs.

kf-data      native: fetches, sends heartbeats
kf-control   Python: gives this core its turns
the user's   reads through `reading`, asks through `queries` and `topics`, waits through `waits`
"""

from __future__ import annotations

import warnings
from contextlib import ExitStack

from kafka_fast.config import ConsumerSettings
from kafka_fast.consumer import consumer_carrier as fetch_carrier
from kafka_fast.consumer.consumer_topics import ConsumerTopics
from kafka_fast.consumer.queries import ConsumerQueries
from kafka_fast.consumer.reading.reading_side import ReadingSide
from kafka_fast.consumer.waits import Waits
from kafka_fast.control.consumer.consumer_control import ConsumerControl
from kafka_fast.control.consumer.consumer_messages import (
    ConsumerEvent,
    FetchCommand,
    FetchEvent,
    News,
    OwnCommand,
)
from kafka_fast.control.group.member import (
    NO_GENERATION,
    GroupNews,
)
from kafka_fast.control.messages import DumpEvent
from kafka_fast.dataplane.core._events import PlaneEvent
from kafka_fast.net.core.waiting_core import END_PATIENCE, WaitingCore
from kafka_fast.net.host import ConsumerHost
from kafka_fast.net.planes import consumer_plane, fetch_limits
from kafka_fast.net.waiting.steps import Steps, Wait
from kafka_fast.net.waiting.waits import Answer
from kafka_fast.values import assert_never


class ConsumerCore(WaitingCore[OwnCommand, FetchEvent]):
    """Both planes of one consumer. User's thread unless said otherwise."""

    kind = "consumer"
    unclosed = "nothing was committed, and its group waits for session.timeout.ms; "
    control: ConsumerControl
    topics: ConsumerTopics
    waits: Waits
    exit_patience = 1.0  # time for LeaveGroup to reach the coordinator

    def __init__(self, settings: ConsumerSettings, client_id: str, host: ConsumerHost) -> None:
        """Start; connections are made when they are needed.

        Args:
            settings: the consumer's configuration.
            client_id: sent in all requests.
            host: the world under this client.
        """
        self._was_member = False  # when the process began to end
        self._left: Answer[bool] | None = None  # the end of the process waits for this answer
        # A silent broker causes one trouble in at most this time: a timeout, then a reconnect.
        memory = settings.request_timeout + settings.reconnect_backoff_max
        with ExitStack() as undo:  # out of threads or files: give back what was taken
            undo.callback(host.close)
            control = ConsumerControl(
                settings, client_id, host.random, host.wall_ms, host.mechanism
            )
            plane = consumer_plane(host.environment, settings)
            undo.callback(plane.shut_down)
            self.streams = host.make_streams(plane, **fetch_limits(settings))
            super().__init__(client_id, host, control, plane)
            self.waits = Waits(control.view, host.now, host.callers, memory=memory)
            self.queries = ConsumerQueries(control, self.waits, self.call)
            self.topics = ConsumerTopics(control, self.waits, host, self.call)
            self.reading = ReadingSide(settings, control, self.streams, self.waits, host, self.call)
            undo.pop_all()
        self._start()

    def wakeup(self) -> None:
        """End the wait of the user's thread, or its next one. Any thread."""
        self.waits.wakeup()
        self.driver.wake()

    def stats(self) -> dict[str, object]:
        """Return counters of fetches, buffers, troubles and nodes."""
        buffer = self.reading.buffer
        return {
            **self.plane.stats(),
            **self.streams.stats(),
            "unreadable_batches": buffer.unreadable_batches,
            "refused_records": buffer.refused_records,
            **self.control.view.stats(),
            "nodes": self.plane.node_stats(),
        }

    def _describe_own(self) -> list[str]:
        now = self.now()
        return self.reading.buffer.describe(
            lambda partition: self.control.view.status_of(partition, now)
        )

    # ---- the control thread ----

    def _read_event(self, event: PlaneEvent) -> ConsumerEvent | DumpEvent:
        return fetch_carrier.read_event(event)

    def _touch(self, now: float) -> None:
        self.control.positions.touch(now)

    def _program(self, command: OwnCommand) -> None:
        if isinstance(command, FetchCommand):
            fetch_carrier.carry_out(self.streams, command)
        elif isinstance(command, News):
            self.reading.put_news(command)
        elif isinstance(command, GroupNews):
            self.reading.put_group_news(command)
        else:
            assert_never(command)

    # ---- the end of the process ----

    def begin_exit(self) -> None:
        """Leave the group, so that the others need not wait for session.timeout.ms.

        A consumer whose JoinGroup is under way leaves too: the coordinator may have accepted the
        member by now, or given out a member id, for which rebalances wait. (A broker before 2.2
        answers with the id only when the other members have joined; this does not wait so long.)

        Nothing is committed: nobody knows whether the records of the last poll are done, and a
        listener's thread may be gone.
        """
        group = self.control.group
        if group is None or self.closed:
            return
        self._was_member = group.member.identity.generation != NO_GENERATION
        left = self._left = Answer()
        # Only the control thread knows whether a JoinGroup is under way.
        self.call(lambda now: group.leave(now, lambda: left.set(True)))

    def wait_exit(self, timeout: float) -> bool:
        """Wait until the coordinator has been told that the member leaves."""
        left = self._left
        if left is not None:
            self.driver.run(_wait_for(left, self.now() + timeout))
        return left is None or left.is_known

    def log_exit(self) -> None:
        """Log nothing: the wait is short."""

    def end_exit(self, interrupted: str) -> None:
        """End the threads, and warn that records of the last poll were not committed.

        What is collected later, such as the rest of a range, must find no thread to wait for: the
        interpreter stops all of them.
        """
        self._refuse()
        self._end(END_PATIENCE)
        if self._was_member:
            warnings.warn(
                f"the interpreter ends with consumer {self.client_id!r} in its group: what was not "
                "committed will be read again; close() it, or use it in a with block",
                ResourceWarning,
                stacklevel=2,
            )


def _wait_for(left: Answer[bool], deadline: float) -> Steps[None]:
    """Wait until the member has left its group."""
    yield Wait(lambda: left.is_known, deadline, "leaving the group")
