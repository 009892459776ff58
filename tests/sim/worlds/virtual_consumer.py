"""The shipped consumer in virtual time: its host is virtual, and so is what its user waits in.

    Consumer, Membership, ConsumerCore (shipped) ── waits ──► Actor.suspend ──► the world goes on
                    │
                    └──► VirtualConsumerHost: turns in virtual time

Everything else, from `poll` to the bytes, is what ships.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kafka_fast.config import ConsumerSettings
from kafka_fast.consumer.base import ConsumerBase
from kafka_fast.consumer.client import Consumer
from kafka_fast.consumer.consumer_core import ConsumerCore
from kafka_fast.control.consumer.consumer_messages import (
    ConsumerCommand,
    ConsumerEvent,
    FetchPunt,
    NameStream,
    ProgramFetch,
    RemoveStream,
    StartStream,
    StopStream,
    StreamsStopped,
)
from kafka_fast.control.consumer.partition import FetchState
from kafka_fast.control.group.member import NO_GENERATION, AssignWanted, RevokeWanted
from kafka_fast.control.messages import CallInThread, DumpEvent, SendRaw, StartHeartbeats
from kafka_fast.dataplane.core._events import PlaneEvent
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.dataplane.fetch._streams import Streams
from kafka_fast.net.process import process_life
from kafka_fast.net.waiting.steps import InThread, Invoke, Steps, Yielded, YieldToLoop, run_steps
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from tests.sim.worlds.actors import Actor
from tests.sim.worlds.host import VirtualHost

T = TypeVar("T")


class Waiter:
    """Where the user's thread of one consumer waits."""

    def __init__(self, host: VirtualConsumerHost, actor: Actor) -> None:
        """Let each turn of `host` check whether the wait is over.

        Args:
            host: whose turns may bring what is waited for.
            actor: the user.
        """
        self.host = host
        self.actor = actor
        self._is_ready: Callable[[], object] | None = None
        self._waits = 0  # so that a planned end of one wait does not end another
        host.waiter = self
        host.on_turned = self.look

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.wait(lambda: False, seconds)

    def wait(self, is_ready: Callable[[], object], seconds: float) -> None:
        """Wait until something holds, at most for a time."""
        host = self.host
        host.settle()
        if not is_ready() and seconds > 0.0:
            self._waits += 1
            number = self._waits
            self._is_ready = is_ready
            host.clock.after(seconds + host.lateness(), lambda: self._go_on(number))
            self.actor.suspend()

    def look(self) -> None:
        """See whether what is waited for has come."""
        if self._is_ready is not None and self._is_ready():
            self._is_ready = None  # seen once: the thread is on its way
            number = self._waits
            self.host.clock.after(self.host.lateness(), lambda: self._go_on(number))

    def _go_on(self, number: int) -> None:
        if number == self._waits:
            self._waits += 1
            self._is_ready = None
            self.host.machine.advance(self.host.clock.now)
            self.actor.resume()
            self.host.settle()


class VirtualStreams(Streams):
    """The data plane's streams, which keep the generation under which each of them runs."""

    running: dict[int, int]

    def note_end(self, stream_id: int, generation: int) -> None:
        """Remove a stream from `running`, unless another generation of it runs."""
        if self.running.get(stream_id) == generation:
            del self.running[stream_id]


class VirtualDriver:
    """Runs steps in virtual time, as `BlockingDriver` does in reality."""

    def __init__(self, host: VirtualConsumerHost) -> None:
        """Let steps wait in the virtual time of `host`.

        Args:
            host: of the one client; it knows where its user waits.
        """
        self._host = host

    def run(self, steps: Steps[T]) -> T:
        """Run steps to their end, and return what they return."""
        return run_steps(steps, self._answer)

    def wake(self) -> None:
        """Have the user look again."""
        self._host.waiter.look()

    def _answer(self, yielded: Yielded) -> object:
        if isinstance(yielded, Invoke):
            return yielded.function(*yielded.args)
        if isinstance(yielded, InThread):
            return yielded.function()
        if isinstance(yielded, YieldToLoop):
            return None
        self._host.waiter.wait(yielded.is_over, yielded.deadline - self._host.now())
        return None


class VirtualConsumerHost(VirtualHost):
    """The virtual world under one consumer: a `ConsumerHost`."""

    waiter: Waiter

    def make_driver(self, plane: DataPlane) -> VirtualDriver:
        """Return what has the user wait in virtual time."""
        return VirtualDriver(self)

    def make_streams(self, plane: DataPlane, **limits: int) -> Streams:
        """Return the plane's fetch side."""
        streams = VirtualStreams(plane, **limits)
        streams.running = {}
        return streams


class LoggedConsumerCore(ConsumerCore):
    """The shipped core; the world's log hears of its commands.

    After each turn it is checked that a partition is said to be fetched if, and only if, the data
    plane fetches it, and that something is said to be in the way of every other one.
    """

    _host: VirtualConsumerHost
    streams: VirtualStreams

    def __init__(
        self,
        settings: ConsumerSettings,
        client_id: str,
        host: VirtualConsumerHost,
        log: Callable[[str], None],
        on_misjudged: Callable[[str], None],
    ) -> None:
        """Start both planes."""
        self._log = log
        self._on_misjudged = on_misjudged
        super().__init__(settings, client_id, host)

    def carry_out(self, command: ConsumerCommand, now: float) -> None:
        """Log a command, and carry it out."""
        self._log(f"command {_short(command)}")
        super().carry_out(command, now)
        match command:
            case StartStream(stream_id, _, generation):
                self.streams.running[stream_id] = generation
            case StopStream(stream_id, generation):
                self.streams.note_end(stream_id, generation)
            case RemoveStream(stream_id):
                self.streams.running.pop(stream_id, None)

    def _read_event(self, event: PlaneEvent) -> ConsumerEvent | DumpEvent:
        read = super()._read_event(event)
        if isinstance(read, StreamsStopped | FetchPunt):
            for row in read.rows:
                self.streams.note_end(row.stream_id, row.generation)
        return read

    def turn(self, now: float) -> None:
        """Take a turn, and compare what is said of the partitions with what is so."""
        super().turn(now)
        running = self.streams.running
        for assigned in self.control.partitions:
            is_fetched = running.get(assigned.stream_id) == assigned.generation
            is_said_to_be = assigned.state is FetchState.FETCHING
            may_be_said = self.control.view.is_fetched(assigned.partition, now)
            if is_fetched is not is_said_to_be or (may_be_said and not is_fetched):
                self._on_misjudged(
                    f"{self.client_id} at {now}: {assigned.partition} is "
                    f"{'' if is_fetched else 'not '}fetched; "
                    f"{self.control.view.why_waiting(assigned.partition, now).text}"
                )

    def _end(self, patience: float | None = None) -> None:
        super()._end(patience)
        self._host.port.collect()

    def kill(self) -> None:
        """Be gone, as after kill -9."""
        self.closed = self.has_ended = True
        process_life.discard(self)
        self._host.stop()
        self._host.port.unplug()
        self.plane.shut_down()


class Watched(ConsumerBase):
    """What the world does with a consumer beside its user."""

    _waiter: Waiter
    _log: Callable[[str], None]
    _on_misjudged: Callable[[str], None]

    def _make_core(self) -> ConsumerCore:
        self._logged_core = LoggedConsumerCore(
            self._settings, self.client_id, self._waiter.host, self._log, self._on_misjudged
        )
        return self._logged_core

    @property
    def core(self) -> ConsumerCore:
        """What does the work, for those who look behind it."""
        return self._core

    def handed_over(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what `commit()` commits."""
        return self._cursor.handed_over()

    def is_ousted(self) -> bool:
        """Whether the control plane knows that this consumer is no member of its group."""
        group = self._core.control.group
        return group is not None and group.member.identity.generation == NO_GENERATION

    def abandon(self) -> None:
        """Be gone, as after kill -9."""
        self._finalizer.detach()
        self._logged_core.kill()


class VirtualConsumer(Watched, Consumer):
    """The shipped consumer, for one actor."""

    def __init__(
        self,
        config: dict[str, object],
        waiter: Waiter,
        log: Callable[[str], None],
        on_misjudged: Callable[[str], None],
    ) -> None:
        """Start it.

        Args:
            config: as any consumer's.
            waiter: where its user waits.
            log: takes what happens, for people.
            on_misjudged: called when it does not know whether a partition is fetched.
        """
        self._waiter = waiter
        self._log = log
        self._on_misjudged = on_misjudged
        super().__init__(config)


def _short(what: object) -> str:
    """Return a record of the planes in one line of bounded length, without frames."""
    if isinstance(what, SendRaw | StartHeartbeats | NameStream | ProgramFetch | CallInThread):
        return type(what).__name__
    if isinstance(what, AssignWanted | RevokeWanted):  # a set has another order in each process
        return f"{type(what).__name__} {sorted(what.partitions)}"[:300]
    return repr(what)[:300]
