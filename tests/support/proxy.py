"""A TCP proxy that makes a good network bad: slow, narrow, cut, silent or in crumbs.

    with NullBroker() as broker, Proxy("127.0.0.1", broker.ports[0]) as proxy:
        broker.advertise(1, *proxy.address)      # so that clients stay on the proxy
        proxy.set(delay=0.010)                   # each way: a round trip takes 20 ms more
        ...
        proxy.reset()                            # RST to both sides of every connection

Kafka's clients reconnect to what Metadata names, so the broker has to advertise the proxy: the
null broker by `advertise`, real Kafka by its property `advertised.listeners`.

It runs in a thread with an event loop of its own. Delays overlap: bytes that come later are taken
in meanwhile, up to `WINDOW` bytes for each direction, so bandwidth survives a long round trip. A
benchmark runs it in a process of its own, away from the GIL of the client that it measures:

    python -m tests.support.proxy 127.0.0.1:9092 --delay 0.01
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import struct
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, TypeVar

__all__ = ["Faults", "Proxy", "main"]

T = TypeVar("T")

READ_SIZE = 256 << 10
WINDOW = 64 << 20
START_TIMEOUT = 10.0
# SO_LINGER with a time of zero: close() sends RST and drops unsent bytes.
LINGER_NONE = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Faults:
    """The proxy's treatment of bytes; the default passes everything.

    Attributes:
        delay: seconds added each way; the round trip grows by twice as much.
        bandwidth: bytes per second, each way and for each connection; None: no limit.
        cut_after: bytes from the client after which a connection is closed; None: never.
        drop_replies: read the broker's answers, but pass nothing of them to the client.
        blackhole: pass nothing in either direction, not even a close: as if a cable were pulled.
        crumbs: write one byte per segment.
        refuse: reset new connections at once.
    """

    delay: float = 0.0
    bandwidth: float | None = None
    cut_after: int | None = None
    drop_replies: bool = False
    blackhole: bool = False
    crumbs: bool = False
    refuse: bool = False


class Proxy:
    """A proxy in front of one address; use it in a `with` block. Methods: any thread.

    Args:
        host: host on which the broker listens.
        port: the broker's port.

    Attributes:
        address: host and port of the proxy, once it runs.
        dropped: bytes of answers that were read and not passed on (`drop_replies`).
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._faults = Faults()
        self._links: set[_Link] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._server: asyncio.Server | None = None
        self._count = 0
        self.dropped = 0
        self.address = ("", 0)

    def __enter__(self) -> Proxy:
        """Start the thread and listen on a free port of the loopback address."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kf-proxy", daemon=True)
        self._thread.start()
        self._run(self._listen())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close every connection and end the thread."""
        assert self._loop is not None
        assert self._thread is not None
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def bootstrap(self) -> str:
        """The proxy's address, as `bootstrap.servers` takes it."""
        return f"{self.address[0]}:{self.address[1]}"

    @property
    def faults(self) -> Faults:
        """The proxy's present treatment of bytes."""
        return self._faults

    @property
    def connections(self) -> int:
        """Number of connections that were accepted since the start."""
        return self._count

    def set(self, **changes: Any) -> None:
        """Change some of the `Faults`; they apply to bytes that are read after this."""
        faults = replace(self._faults, **changes)
        self._call(lambda: self._change(faults))

    def heal(self) -> None:
        """Pass everything again. Bytes that were held back by `blackhole` go on."""
        self._call(lambda: self._change(Faults()))

    def cut(self) -> None:
        """Close every connection in an orderly way (FIN), both sides."""
        self._call(lambda: self._end_links(reset=False))

    def reset(self) -> None:
        """Reset every connection (RST), both sides."""
        self._call(lambda: self._end_links(reset=True))

    def lead_to(self, host: str, port: int) -> None:
        """Lead the connections that are accepted from now on to another address."""
        self._target = (host, port)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=READ_SIZE)
        self.address = self._server.sockets[0].getsockname()[:2]

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        self._end_links(reset=False)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Join a client to the broker until either side ends."""
        self._count += 1
        if self._faults.refuse:
            _end(writer, reset=True)
            return
        try:
            there = await asyncio.open_connection(*self._target, limit=READ_SIZE)
        except OSError:
            _end(writer, reset=True)
            return
        link = _Link(self, (reader, writer), there)
        self._links.add(link)
        try:
            await link.run()
        except asyncio.CancelledError:
            return  # only `_close` cancels; raised on, asyncio's callback would log an error
        finally:
            self._links.discard(link)

    def _change(self, faults: Faults) -> None:
        self._faults = faults
        for link in self._links:
            link.changed.set()

    def _end_links(self, *, reset: bool) -> None:
        for link in list(self._links):
            link.end(reset=reset)

    def _call(self, function: Callable[[], T]) -> T:
        """Run a function in the proxy's thread; return its result."""

        async def run() -> T:
            return function()

        return self._run(run())

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None, "the proxy is not running: use it in a with block"
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(START_TIMEOUT)


class _Link:
    """One connection through the proxy: two directions, each with a reader and a writer task."""

    def __init__(
        self,
        proxy: Proxy,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        broker: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self.proxy = proxy
        self.client = client
        self.broker = broker
        self.changed = asyncio.Event()
        self.from_client = 0
        for _, writer in (client, broker):
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def run(self) -> None:
        """Pass bytes both ways; the first direction that ends closes both sides."""
        there = asyncio.create_task(_Direction(self, self.client[0], self.broker[1], True).run())
        back = asyncio.create_task(_Direction(self, self.broker[0], self.client[1], False).run())
        try:
            await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (there, back):
                task.cancel()
            await asyncio.gather(there, back, return_exceptions=True)
            self.end(reset=False)

    def end(self, *, reset: bool) -> None:
        """Close both sides."""
        for _, writer in (self.client, self.broker):
            _end(writer, reset=reset)


class _Direction:
    """Bytes from one side to the other: read at once, written when they are due."""

    def __init__(
        self,
        link: _Link,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        from_client: bool,
    ) -> None:
        self.link = link
        self.reader = reader
        self.writer = writer
        self.from_client = from_client
        # (due time, bytes); empty bytes are the end of the stream.
        self.queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        self.queued = 0
        self.room = asyncio.Event()

    async def run(self) -> None:
        """Pass bytes until the stream ends or breaks."""
        writing = asyncio.create_task(self._write())
        try:
            with contextlib.suppress(OSError):
                await self._read()
            self.queue.put_nowait((0.0, b""))
            await writing
        finally:
            writing.cancel()

    async def _read(self) -> None:
        """Queue bytes that arrive, with the time at which they are due."""
        clock = asyncio.get_running_loop().time
        while True:
            await self._while_blackhole()
            data = await self.reader.read(READ_SIZE)
            await self._while_blackhole()
            if not data:
                return
            faults = self.link.proxy.faults
            last = False
            if self.from_client and faults.cut_after is not None:
                room = max(0, faults.cut_after - self.link.from_client)
                last = len(data) >= room
                data = data[:room]
            if self.from_client:
                self.link.from_client += len(data)
            if data and (self.from_client or not faults.drop_replies):
                self.queue.put_nowait((clock() + faults.delay, data))
                self.queued += len(data)
            elif data:
                self.link.proxy.dropped += len(data)
            if last:
                return
            while self.queued > WINDOW:
                self.room.clear()
                await self.room.wait()

    async def _write(self) -> None:
        """Write queued bytes when they are due, in order; stop when the other side has gone."""
        clock = asyncio.get_running_loop().time
        while True:
            due, data = await self.queue.get()
            if not data:
                return
            wait = due - clock()
            if wait > 0:
                await asyncio.sleep(wait)
            faults = self.link.proxy.faults
            try:
                if faults.crumbs:
                    await self._write_crumbs(data)
                else:
                    self.writer.write(data)
                    await self.writer.drain()
            except OSError:
                return
            if faults.bandwidth is not None:
                await asyncio.sleep(len(data) / faults.bandwidth)
            self.queued -= len(data)
            self.room.set()

    async def _write_crumbs(self, data: bytes) -> None:
        """Write byte by byte. Each turn of the loop sends one, because TCP_NODELAY is set."""
        for pos in range(len(data)):
            self.writer.write(data[pos : pos + 1])
            await self.writer.drain()
            await asyncio.sleep(0)

    async def _while_blackhole(self) -> None:
        while self.link.proxy.faults.blackhole:
            self.link.changed.clear()
            await self.link.changed.wait()


def _end(writer: asyncio.StreamWriter, *, reset: bool) -> None:
    """Close one side, with RST if asked."""
    if reset:
        sock = writer.get_extra_info("socket")
        if sock is not None and sock.fileno() >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NONE)
        writer.transport.abort()
    else:
        writer.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a proxy until standard input ends; its address is the first line of the output."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.proxy", description=__doc__)
    parser.add_argument("target", help="host:port of the broker")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds, each way")
    parser.add_argument("--bandwidth", type=float, help="bytes per second, each way")
    options = parser.parse_args(arguments)
    host, _, port = options.target.rpartition(":")
    with Proxy(host, int(port)) as proxy:
        proxy.set(delay=options.delay, bandwidth=options.bandwidth)
        sys.stdout.write(f"{proxy.bootstrap}\n")
        sys.stdout.flush()
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
