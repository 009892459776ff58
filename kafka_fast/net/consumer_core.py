"""The core of a consumer: both planes on the machine, their threads, and what passes between them.

    kf-data      native: fetches, repeats heartbeats, never takes the GIL
    kf-control   Python: carries events and commands, connects, keeps time for the control plane
    the user's   what it reads is `reading`, what it asks `questions`, how it waits `waits`

Threads hold the core; the core does not know the `Consumer` in front of it, so that one that is
dropped can be noticed and stopped.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.consumer.control import ConsumerControl
from kafka_fast.control.consumer.plane import (
    BrokerFailed,
    ConsumerCommand,
    PartitionFailed,
    PartitionFound,
    Positioned,
    Recreated,
    Reposition,
)
from kafka_fast.control.group.member import (
    NO_GENERATION,
    AssignWanted,
    MemberFailed,
    RevokeWanted,
    TopicFailed,
)
from kafka_fast.control.plane import TopicSettled
from kafka_fast.dataplane._plane import EVENT_DUMP, WAIT_SLICE, DataPlane, Environment
from kafka_fast.dataplane._streams import Streams
from kafka_fast.errors import UsageError
from kafka_fast.net import fetch_carrier, leaving
from kafka_fast.net._pump import Machine, Pump
from kafka_fast.net.control_thread import ControlThread
from kafka_fast.net.dump import LinkDump
from kafka_fast.net.questions import Questions
from kafka_fast.net.reading import Reading
from kafka_fast.net.waits import Answer, Waits

TOUCH_INTERVAL = 30.0
"""Seconds between two assurances that the assigned topics' metadata are wanted."""


class ConsumerCore:
    """Both planes of one consumer and their threads. User's thread unless said otherwise."""

    def __init__(self, settings: ConsumerSettings, client_id: str) -> None:
        """Start the threads; connections are made when they are needed."""
        self.settings = settings
        self.client_id = client_id
        self.control = self._make_control(client_id)
        # A broker that is silent is heard of once in as long as that.
        memory = settings.request_timeout + settings.reconnect_backoff_max
        self.waits = Waits(self.control, self.now, self._await, memory=memory)
        self.questions = Questions(self.control, self.waits, self.now, self.call)
        self._touch_at = 0.0
        self.closed = False
        self._pid = os.getpid()
        with ExitStack() as undo:  # a process that is out of threads or files is no worse after it
            self._start(undo)
            # Threads run already; but they tell nothing of partitions before these are assigned.
            self.reading = Reading(
                settings, self.control, self.streams, self.waits, self.now, self.call
            )
            undo.pop_all()
        leaving.living.add(self)

    # ---- the machine: a simulation has another one ----

    def now(self) -> float:
        """Return monotonic seconds. Any thread."""
        return time.monotonic()

    def _make_control(self, client_id: str) -> ConsumerControl:
        return ConsumerControl(
            self.settings,
            client_id,
            random.SystemRandom().random,
            lambda: int(time.time() * 1000),
        )

    def _start(self, undo: ExitStack) -> None:
        """Make the planes and start their threads; `undo` learns how to take back each step."""
        settings = self.settings
        self._machine = Machine()
        undo.callback(self._machine.close)
        self.plane = self._make_plane(self._machine)
        undo.callback(self.plane.shut_down)
        self.streams = self._make_streams(Streams)
        self._dump = LinkDump(self.plane)
        self._pump = Pump(self.plane, self._machine)
        undo.callback(self._pump.stop)
        self._pump.start()
        self._thread = ControlThread(self, self.control.links, self._machine, self._pump, settings)
        undo.callback(self._thread.stop)
        self._thread.start()

    def _make_plane(self, environment: Environment) -> DataPlane:
        settings = self.settings
        return DataPlane(
            environment,
            buffer_memory=0,
            batch_size=0,
            max_request_size=0,
            coalesce_bytes=0,
            max_frame=settings.receive_message_max_bytes,
            linger=0.0,
            delivery_timeout=0.0,
            request_timeout=settings.fetch_timeout,
            max_in_flight=0,
            max_idle=max(settings.connections_max_idle_ms, 0) / 1000,
            idempotent=False,
        )

    def _make_streams(self, kind: type[Streams]) -> Streams:
        settings = self.settings
        return kind(
            self.plane,
            buffer_bytes=settings.fetch_buffer_bytes,
            max_bytes=settings.fetch_max_bytes,
            partition_max_bytes=settings.max_partition_fetch_bytes,
        )

    def _await(self, answer: Answer[Any], seconds: float) -> bool:
        """Wait for an answer, not much longer than until signals have to be looked for."""
        return answer.wait(max(0.0, min(WAIT_SLICE, seconds)))

    # ---- the user's side ----

    def call(self, what: Callable[[float], None]) -> None:
        """Have `what(now)` called on the control thread. Any thread."""
        self._thread.call(what)

    def check_lives(self) -> None:
        """Raise if this core was inherited over a fork."""
        if os.getpid() != self._pid:
            raise UsageError("this consumer belongs to the parent of this process: make a new one")

    def wakeup(self) -> None:
        """End the wait of the user's thread, or its next one. Any thread."""
        self.waits.wakeup()
        self.streams.interrupt()

    def stats(self) -> dict[str, object]:
        """Return counters of fetches, buffers, troubles and nodes."""
        intake = self.reading.intake
        return {
            **self.streams.stats(),
            "unreadable_batches": intake.unreadable_batches,
            "refused_records": intake.refused_records,
            **self.control.links.troubles.stats(),
            "nodes": self.plane.node_stats(),
        }

    def debug_dump(self, timeout: float) -> str:
        """Return what the links did lately, as text for people; what came within `timeout`."""
        lines = self._dump.ask(timeout, lambda: self.closed)
        return "\n".join([self.control.describe(), *lines])

    # ---- the control thread ----

    def turn(self, now: float) -> None:
        """Take events, do what is due, carry out commands. Control thread."""
        for event in self.plane.take_events():
            if event[0] == EVENT_DUMP:
                self._dump.take(event)
            else:
                self.control.handle_event(fetch_carrier.read_event(event), now)
        if now >= self._touch_at:
            self._touch_at = now + TOUCH_INTERVAL
            self.control.positions.touch(now)
        self.control.tick(now)
        while (command := self.control.poll_command()) is not None:
            self._carry_out(command, now)

    def next_deadline(self) -> float:
        """Return when `turn` has something to do. Control thread."""
        return min(self.control.next_deadline(), self._touch_at)

    def handle_crash(self, error: BaseException) -> None:
        """The control thread has failed: say so to whoever waits. Control thread."""
        failure = UsageError(f"the consumer's control thread has failed: {error!r}")
        failure.__cause__ = error
        self.waits.fail(failure)
        self.questions.interrupt()
        self.streams.interrupt()

    def _carry_out(self, command: ConsumerCommand, now: float) -> None:
        match command:
            case TopicSettled(topic, error):
                self.questions.settle(topic, error)
            case (
                PartitionFailed()
                | PartitionFound()
                | Positioned()
                | Reposition()
                | Recreated()
                | BrokerFailed()
            ):
                self.reading.put_news(command)
            case RevokeWanted() | AssignWanted() | MemberFailed() | TopicFailed():
                self.reading.put_group_news(command)
            case _:
                if not self._thread.carry_out(command, now):
                    fetch_carrier.carry_out(self.plane, self.streams, command)

    # ---- the end ----

    def close(self) -> None:
        """End the threads. Any thread but the control thread."""
        if self.closed:
            return
        self.closed = True
        leaving.living.discard(self)
        if os.getpid() != self._pid:
            return
        self.waits.end()
        self.streams.interrupt()  # a call of this thread's, if a signal's handler closes
        if self._thread.is_current:  # garbage collection runs anywhere
            threading.Thread(target=self._stop, name="kf-close").start()
        else:
            self._stop()

    @property
    def is_member(self) -> bool:
        """Whether the group has taken this consumer in. Any thread."""
        group = self.control.group
        return group is not None and group.member.identity.generation != NO_GENERATION

    def begin_to_leave(self) -> Answer[bool] | None:
        """Tell the coordinator that there is no such member; None: no group is named. Any thread.

        Only the control thread knows whether a join is out, of which the coordinator may know.
        """
        group = self.control.group
        if group is None or self.closed:
            return None
        left: Answer[bool] = Answer()
        self.call(lambda now: group.leave(now, lambda: left.set(True)))
        return left

    def _stop(self) -> None:
        self._thread.stop()
        self._pump.stop()
        self.plane.shut_down()
        self.questions.interrupt()

    def mark_forked(self) -> None:
        """Called in a forked child: nothing of this runs here, and its locks may be held."""
        self.closed = True
        self.plane.mark_inherited()
