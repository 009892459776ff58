"""What a client's core asks of the world under it: threads, sockets, look-ups, clocks, chance.

    ClientCore ── wake, connect, resolve, now, random ──► Host
               ◄── turn, handle_connected, … ───────────  Host

`ThreadedHost` asks the operating system. A simulation has a host of its own, with a virtual clock
and a network in memory, and runs the same cores on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from kafka_fast.control.plane import OpenLink
from kafka_fast.dataplane.core._plane import DataPlane, Environment
from kafka_fast.dataplane.fetch._streams import Streams
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.net.steps import Driver, Steps

if TYPE_CHECKING:
    import asyncio  # only those who await pay for it

    from kafka_fast.dataplane.produce._awaiting import LoopWaits

Addresses = tuple[str, ...] | OSError
"""All addresses of a host name, or why there are none."""


class Client(Protocol):
    """What a host runs: a core. Its control thread calls all of this."""

    def turn(self, now: float) -> None:
        """Take calls and events, do what is due, carry out commands."""

    def next_deadline(self) -> float:
        """Return when `turn` has something to do that nobody announces with `wake`."""

    def call(self, what: Callable[[float], None]) -> None:
        """Have `what(now)` called in the next turn. Any thread."""

    def handle_connected(self, link_id: int, now: float) -> None:
        """The data plane has the link that was to be opened."""

    def handle_connect_failed(self, link_id: int, error: OSError, now: float) -> None:
        """There is no such link."""

    def handle_crash(self, error: BaseException) -> None:
        """A turn has failed: there will be no other."""


class Host(Protocol):
    """The world under one client. Methods: control thread, unless said otherwise."""

    environment: Environment
    """What the data plane is made with."""

    def start(self, client: Client, plane: DataPlane) -> None:
        """Begin to give turns to both planes; takes back its own steps if one of them fails."""

    def stop(self, patience: float | None = None) -> bool:
        """End the turns and give up what is still connecting. Any thread, the control thread too.

        Args:
            patience: seconds to wait for the end of the control thread; None: as long as it takes.

        Returns:
            Whether the control thread has ended, or is the caller and ends next.
        """

    def close(self) -> None:
        """Give back what was taken from the operating system for a client that cannot start."""

    @property
    def is_current(self) -> bool:
        """Whether the caller runs on the control thread. Any thread."""

    def now(self) -> float:
        """Return monotonic seconds. Any thread."""

    def wall_ms(self) -> int:
        """Return the Unix time in ms. Any thread."""

    def random(self) -> float:
        """Return a float in [0, 1)."""

    def random_bits(self) -> int:
        """Return 63 random bits."""

    def wake(self) -> None:
        """Let the client take a turn soon. Any thread."""

    def connect(self, command: OpenLink, now: float) -> None:
        """Begin to open a link; the client hears how that has ended, unless it is dropped."""

    def drop(self, link_id: int) -> None:
        """Give up a link that is still being opened."""

    def resolve(self, host: str, done: Callable[[Addresses], None]) -> None:
        """Look a host name up; `done` may be called on any thread."""

    def make_driver(self, plane: DataPlane) -> Driver:
        """Return what runs the steps of the client's users. The thread that makes the client."""


class Callbacks(Protocol):
    """Where the users' delivery callbacks run."""

    @property
    def is_current(self) -> bool:
        """Whether the caller is such a callback."""

    def start(self) -> None:
        """There is a first callback. Any thread."""

    def wake(self) -> None:
        """Batches with callbacks may have ended. Any thread."""

    def await_run(self, deadline: float) -> Steps[None]:
        """Wait until the callbacks of all batches that have ended have run, or the deadline."""

    def join(self, patience: float | None) -> None:
        """The plane is shut down: wait for the last callback, for so many seconds. Any thread."""


class ProducerHost(Host, Protocol):
    """The world under a producer."""

    def compress_with(self, codec: str, level: int) -> None:
        """Have batches compressed; before the data plane is made."""

    def make_callbacks(self, queues: Queues) -> Callbacks:
        """Return where the callbacks of these queues' batches run."""

    def wait_ended(self, timeout: float) -> bool:
        """Wait until the control thread has ended; return whether it has. Any other thread."""

    def make_loop_bridge(
        self, queues: Queues
    ) -> Callable[[asyncio.AbstractEventLoop], LoopWaits] | None:
        """Return what finds out what an event loop awaits; None: nobody can await here."""


class ConsumerHost(Host, Protocol):
    """The world under a consumer."""

    def make_streams(self, plane: DataPlane, **limits: int) -> Streams:
        """Return the plane's fetch side."""
