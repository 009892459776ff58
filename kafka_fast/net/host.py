"""What a client's core needs from its environment: threads, sockets, look-ups, clocks, chance.

    ClientCore ── wake, connect, resolve, now, random ──► Host
               ◄── turn, handle_connected, … ───────────  Host

`ThreadedHost` uses the operating system. The simulation has a host of its own, with a virtual clock
and a network in memory, and runs the same cores on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from kafka_fast.control.authentication.mechanism import Mechanism, Work
from kafka_fast.control.messages import OpenLink
from kafka_fast.dataplane.core._plane import DataPlane, Environment
from kafka_fast.dataplane.fetch._streams import Streams
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.net.waiting.callers import Callers
from kafka_fast.net.waiting.steps import Driver, Steps

if TYPE_CHECKING:
    import asyncio  # only programs that await pay for the import

    from kafka_fast.sending._awaiting import LoopWaits

Addresses = tuple[str, ...] | OSError
"""All addresses of a host name, or the error of the look-up."""


class Client(Protocol):
    """What a host runs: a core. The control thread calls all methods but `call`."""

    client_id: str

    def turn(self, now: float) -> None:
        """Run calls, handle events, do what is due, carry out commands."""

    def next_deadline(self) -> float:
        """Return when `turn` has something to do that no `wake` announces."""

    def call(self, what: Callable[[float], None]) -> None:
        """Have `what(now)` called in the next turn. Any thread."""

    def handle_connected(self, link_id: int, now: float) -> None:
        """Note that the link is open; the data plane has it."""

    def handle_connect_failed(self, link_id: int, error: OSError, now: float) -> None:
        """Note that the link could not be opened."""

    def handle_crash(self, error: BaseException) -> None:
        """End the client after a turn that has failed; there is no further turn."""


class Host(Protocol):
    """The world under one client. The control thread calls it, unless said otherwise."""

    environment: Environment
    """The environment that the data plane is made with."""
    mechanism: Mechanism | None
    """How the client says who it is; None: brokers do not ask."""

    def start(self, client: Client, plane: DataPlane) -> None:
        """Give both planes turns from now on. After an exception, `stop` undoes what has begun."""

    def stop(self, patience: float | None = None) -> bool:
        """End the turns and give up unfinished connects. Any thread, the control thread too.

        Args:
            patience: seconds to wait for the end of the control thread; None: without limit.

        Returns:
            Whether the control thread has ended. True even if the control thread is the caller:
            it ends next.
        """

    def close(self) -> None:
        """Give resources back to the operating system: the client did not start, or `stop` came."""

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
        """Start to open a link; report the result to the client, unless it drops the link first."""

    def drop_link(self, link_id: int) -> None:
        """Give up a link that is still being opened."""

    def resolve(self, host: str, done: Callable[[Addresses], None]) -> None:
        """Look a host name up; `done` may be called on any thread."""

    def run_work(self, work: Work, done: Callable[[object], None]) -> None:
        """Call a function that may block, or take long.

        Args:
            work: part of a login.
            done: called with its result, or with the exception that it has raised. May be called
                on any thread.
        """

    def call_in_thread(
        self, function: Callable[[], object], done: Callable[[object], None]
    ) -> None:
        """Call a function that may take long, such as a user's assignor.

        Args:
            function: called in another thread, if one can be started.
            done: called with its result, or with the exception that it has raised. May be called
                on any thread.
        """

    def make_driver(self, plane: DataPlane) -> Driver:
        """Return what runs users' steps. Called in the thread that makes the client."""


class Callbacks(Protocol):
    """Where the users' delivery callbacks run."""

    @property
    def is_current(self) -> bool:
        """Whether the caller is such a callback."""

    def start(self) -> None:
        """Be ready for callbacks: a user has given the first one. Any thread."""

    def wake(self) -> None:
        """Look for ended batches with callbacks. Any thread."""

    def await_run(self, deadline: float) -> Steps[None]:
        """Wait until the callbacks of all ended batches have run, or the deadline has come."""

    def join(self, patience: float | None) -> None:
        """Wait `patience` seconds for the last callback, after the plane's end. Any thread."""


class ProducerHost(Host, Protocol):
    """The world under a producer."""

    def compress_with(self, codec: str, level: int) -> None:
        """Have batches compressed. Called before the data plane is made."""

    def make_callbacks(self, queues: Queues) -> Callbacks:
        """Return where the callbacks of these queues' batches run."""

    def wait_ended(self, timeout: float) -> bool:
        """Wait until the control thread has ended; return whether it has. Any other thread."""

    def make_loop_bridge(
        self, queues: Queues
    ) -> Callable[[asyncio.AbstractEventLoop], LoopWaits] | None:
        """Return what finds an event loop's awaited records; None: nothing can be awaited here."""


class ConsumerHost(Host, Protocol):
    """The world under a consumer."""

    callers: Callers
    """The kind of callers that the consumer has."""

    def make_streams(self, plane: DataPlane, **limits: int) -> Streams:
        """Return the plane's fetch side."""
