"""Server processes for the tests: started, watched through their log, never left behind.

A `JavaProcess` runs in a session of its own, so that Ctrl-C reaches the tests and not the brokers.
No server survives the tests, however they end (return, exception, `kill -9`). A `Reaper` process
holds a pidfd of each server. When the reaper's standard input closes, it kills all servers that are
left and removes their data.

    tests ──"+pid"──▶ Reaper ──pidfd──▶ broker, broker, ZooKeeper
          ╳ end of file: kill all, remove folders

This module knows only processes and files; `real_kafka` knows Kafka.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

from kafka_fast.testing._kafka.broker_jars import RealKafkaError

__all__ = ["JavaProcess", "PortPool", "Reaper", "data_root"]

POLL_SECONDS = 0.02
READY_TIMEOUT = 150.0
STOP_TIMEOUT = 60.0
# Below Linux's ephemeral range, so that no outgoing connection takes the port of a node that is
# down.
PORT_RANGE = range(18_000, 32_000)
# A three-node cluster with a test's data needs about half of this.
TMPFS_ROOM = 2 << 30

REAPER_SOURCE = """
import os, shutil, signal, sys
held = {}
for line in sys.stdin:
    sign, what = line[0], line[1:].rstrip("\\n")
    if sign == "+":
        try:
            held[what] = os.pidfd_open(int(what))
        except ProcessLookupError:
            pass
    elif sign == "-":
        if what in held:
            os.close(held.pop(what))
    elif sign == "d":
        folder = what
for descriptor in held.values():
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except ProcessLookupError:
        pass
if folder:
    shutil.rmtree(folder, ignore_errors=True)
"""


def data_root() -> Path:
    """Return the place for data folders: `/dev/shm` if it has room, else the temporary folder."""
    shared = Path("/dev/shm")
    with contextlib.suppress(OSError):
        if os.access(shared, os.W_OK) and shutil.disk_usage(shared).free >= TMPFS_ROOM:
            return shared
    return Path(tempfile.gettempdir())


class PortPool:
    """Ports of the loopback address that stay reserved until `close`, even if no node listens.

    A file lock reserves each port, and every harness of this user respects these locks. So parallel
    test runs never use the same port, even while a node is down.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.gettempdir()) / f"kafka-fast-ports-{os.getuid()}"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._locks: list[IO[str]] = []

    def take_port(self) -> int:
        """Return a port that nobody listens on and no other pool holds.

        Raises:
            RealKafkaError: every port of the range is in use.
        """
        ports = list(PORT_RANGE)
        random.shuffle(ports)
        for port in ports:
            lock = (self._folder / str(port)).open("w")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            except OSError:
                lock.close()
                continue
            self._locks.append(lock)
            return port
        raise RealKafkaError(f"no free port from {PORT_RANGE.start} to {PORT_RANGE.stop}")

    def close(self) -> None:
        """Give all ports back."""
        while self._locks:
            self._locks.pop().close()


class Reaper:
    """A process that outlives the tests by a moment, and kills the servers that they left.

    Args:
        folder: removed at the end; None keeps the data.
    """

    def __init__(self, folder: Path | None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", f"folder = ''{REAPER_SOURCE}"],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        if folder is not None:
            self._say(f"d{folder}")

    def watch(self, pid: int) -> None:
        """Have the process `pid` killed when the tests' process has ended."""
        self._say(f"+{pid}")

    def unwatch(self, pid: int) -> None:
        """Stop watching `pid`, which has ended."""
        self._say(f"-{pid}")

    def close(self) -> None:
        """Kill all watched processes and remove the folder; return when that is done."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()


class JavaProcess:
    """One server, which may be started, stopped, killed and paused any number of times."""

    def __init__(
        self,
        name: str,
        command: list[str],
        *,
        cwd: Path,
        log_path: Path,
        ready: str,
        reaper: Reaper,
    ) -> None:
        self.name = name
        """The server's name in messages."""
        self.log_path = log_path
        """File with the server's output, of all its starts one after the other."""
        self.process: subprocess.Popen[bytes] | None = None
        """The running process, or None."""
        self.paused = False
        """True between `pause` and `resume`."""
        self._command = command
        self._cwd = cwd
        self._ready = ready
        self._reaper = reaper
        self._log_start = 0  # where the log of the current start begins

    @property
    def running(self) -> bool:
        """True while the process exists, paused or not."""
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int:
        """The process id.

        Raises:
            RealKafkaError: the server does not run.
        """
        if self.process is None or not self.running:
            raise RealKafkaError(f"{self.name} does not run; its log: {self.log_path}")
        return self.process.pid

    def launch(self) -> None:
        """Start the process and return at once; `wait_ready` waits until it serves."""
        if self.running:
            raise RealKafkaError(f"{self.name} runs already, pid {self.pid}")
        with self.log_path.open("ab") as log:
            self._log_start = log.tell()
            self.process = subprocess.Popen(
                self._command,
                cwd=self._cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._reaper.watch(self.process.pid)

    def wait_ready(self, timeout: float = READY_TIMEOUT) -> None:
        """Return when the log says that the server serves.

        Raises:
            RealKafkaError: the server ended, or was not ready in time; the error has the end of the
                log.
        """
        deadline = time.monotonic() + timeout
        ready_text = self._ready.encode()
        while ready_text not in self._log():
            if not self.running:
                raise RealKafkaError(f"{self.name} ended while it started:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise RealKafkaError(
                    f"{self.name} was not ready after {timeout:.0f} s:\n{self.log_tail()}"
                )
            time.sleep(POLL_SECONDS)

    def start(self, timeout: float = READY_TIMEOUT) -> None:
        """Start the process, with its existing data, and wait until it serves."""
        self.launch()
        self.wait_ready(timeout)

    def stop(self, timeout: float = STOP_TIMEOUT) -> None:
        """Shut the server down (SIGTERM) and wait for its end; do nothing if it does not run.

        Raises:
            RealKafkaError: the server did not end in time and was killed.
        """
        if not self.running:
            return
        self.terminate()
        assert self.process is not None
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired as late:
            self.kill()
            raise RealKafkaError(
                f"{self.name} did not stop in {timeout:.0f} s:\n{self.log_tail()}"
            ) from late
        self._reaper.unwatch(self.process.pid)

    def terminate(self) -> None:
        """Ask for an orderly end (SIGTERM) and return at once."""
        if self.running:
            self.resume()
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the server, as a power cut would (SIGKILL); do nothing if it does not run."""
        if not self.running:
            return
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.paused = False
        self._reaper.unwatch(self.process.pid)

    def pause(self) -> None:
        """Freeze the server (SIGSTOP): its connections stay open, but it answers nothing."""
        os.kill(self.pid, signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        """Let a paused process go on."""
        os.kill(self.pid, signal.SIGCONT)
        self.paused = False

    def log_tail(self, lines: int = 25) -> str:
        """Return the last lines of the current start's log."""
        return "\n".join(self._log().decode(errors="replace").splitlines()[-lines:])

    def _log(self) -> bytes:
        """Return the output of the current start."""
        try:
            with self.log_path.open("rb") as log:
                log.seek(self._log_start)
                return log.read()
        except FileNotFoundError:
            return b""
