"""The null broker: a process that acknowledges a producer's records and throws them away.

A consumer reads one record batch there, over and over.

    with NullBroker(brokers=2, partitions=16) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        ...
        assert broker.stats().records == 1_000_000

The null broker is for benchmarks, because it accepts more than any client can send, and for tests
that stop it at a given point (`stop_reading`, `hold_answers`). The program is C, in
`bench/null_broker/`, and is compiled once into `build/`. This works in a checkout with gcc, but not
in an installed package. The process ends with its standard input, and so with its parent.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from kafka_fast.errors import KafkaError, UsageError

__all__ = ["NullBroker", "NullBrokerError", "NullBrokerStats", "build"]

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "bench" / "null_broker"
SHARED = ROOT / "src_c"
COMPILE = [
    "gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-pthread",
]  # fmt: skip
EXIT_TIMEOUT = 10.0


class NullBrokerError(KafkaError):
    """The null broker could not be built, has ended, or refused a command."""


@dataclass(frozen=True, slots=True)
class NullBrokerStats:
    """The broker's counters since its start or the last `reset`.

    Attributes:
        requests: Produce requests.
        batches: batches accepted.
        records: records accepted, from the batch headers.
        bytes: bytes of accepted batches.
        refused: batches answered with an error.
        connections: connections that are open now.
        first_ns: monotonic time of the first Produce request's first byte, or 0.
        last_ns: monotonic time of the last Produce request's end, or 0.
        fetches: Fetch requests answered.
        fetched_records: records in these answers.
        fetched_bytes: bytes of batches in these answers.
        partitions: accepted records by topic, one number for each partition.
    """

    requests: int
    batches: int
    records: int
    bytes: int
    refused: int
    connections: int
    first_ns: int
    last_ns: int
    fetches: int
    fetched_records: int
    fetched_bytes: int
    partitions: dict[str, list[int]]


def build() -> Path:
    """Compile the program, unless these sources are compiled already; return its path.

    One checkout may be used by several systems, as by the one in a chroot: each has its program.

    Raises:
        NullBrokerError: no sources beside the package, no compiler, or a compiler error.
    """
    sources = [*sorted(SOURCES.glob("*.c")), SHARED / "kf_crc32c.c"]
    headers = [*sorted(SOURCES.glob("*.h")), SHARED / "kf_crc32c.h"]
    if len(sources) < 2:
        raise NullBrokerError(f"the null broker's sources are not at {SOURCES}: not a checkout")
    system = [platform.machine(), *platform.libc_ver()]
    digest = hashlib.sha256(" ".join([*COMPILE, *system]).encode())
    for path in [*sources, *headers]:
        digest.update(path.read_bytes())
    folder = ROOT / "build" / "null_broker"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir())
    program = folder / f"null_broker-{digest.hexdigest()[:16]}"
    if program.exists():
        return program
    # Two processes may do this at once, so the program is compiled beside its place and then moved.
    half_done = program.with_suffix(f".{os.getpid()}")
    command = [*COMPILE, f"-I{SHARED}", "-o", str(half_done), *map(str, sources)]
    try:
        run = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise NullBrokerError("the null broker needs gcc") from error
    if run.returncode != 0:
        raise NullBrokerError(f"the null broker does not compile:\n{run.stderr}")
    half_done.replace(program)
    return program


class NullBroker:
    """A null cluster in a process of its own; use it in a `with` block.

    Every topic that a client asks for exists. One thread at a time may use an object.

    Args:
        brokers: number of nodes, each with a port of its own; ids begin at 1.
        partitions: number of partitions of every topic; node p % brokers + 1 leads partition p.
        check_crc: refuse batches whose CRC is wrong (reads every byte, so not for benchmarks).
        check_sequence: refuse batches that break an idempotent producer's sequence.
        produce_max: highest version of Produce to advertise (3 to 13; 13 names topics by id).
        batch: a record batch v2 for consumers to read; None: there is nothing to read.
        copies: number of copies of the batch in each partition.
    """

    def __init__(
        self,
        brokers: int = 1,
        partitions: int = 1,
        *,
        check_crc: bool = False,
        check_sequence: bool = False,
        produce_max: int = 13,
        batch: bytes | None = None,
        copies: int = 1,
    ) -> None:
        self._options = [
            f"--brokers={brokers}", f"--partitions={partitions}", f"--produce-max={produce_max}",
        ]  # fmt: skip
        self._options += ["--check-crc"] if check_crc else []
        self._options += ["--check-sequence"] if check_sequence else []
        self._batch = batch
        self._copies = copies
        self._process: subprocess.Popen[bytes] | None = None
        self.ports: tuple[int, ...] = ()

    def __enter__(self) -> NullBroker:
        """Build the program if necessary, start it, and read its ports."""
        with tempfile.NamedTemporaryFile() as file:
            options = self._options
            if self._batch is not None:
                file.write(self._batch)
                file.flush()
                options = [*options, f"--batch={file.name}", f"--copies={self._copies}"]
            self._process = subprocess.Popen(
                [str(build()), *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
            )
            word, *ports = self._read_line().split()
        if word != "ports":
            raise NullBrokerError(f"the null broker does not start with {options}")
        self.ports = tuple(map(int, ports))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        self.close()

    @property
    def bootstrap(self) -> str:
        """The addresses of all nodes, as `bootstrap.servers` takes them."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    @property
    def pid(self) -> int:
        """The id of the process, for its CPU time in `/proc`."""
        return self._running().pid

    def close(self) -> None:
        """End the process; a second call does nothing."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(EXIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def stats(self) -> NullBrokerStats:
        """Return the counters."""
        return NullBrokerStats(**json.loads(self._ask("stats")))

    def reset(self) -> None:
        """Set all counters and arrivals back to nothing; offsets and sequences go on."""
        self._command("reset")

    def arrivals(self) -> list[tuple[int, int]]:
        """Return the arrival time and the number of records of each Produce request.

        The arrival is the time at which the first byte was read, on the clock `time.monotonic_ns`.
        The list has at most the first 65,536 requests since the last `reset`.
        """
        pairs = (word.split(":") for word in self._ask("arrivals").split())
        return [(int(at), int(records)) for at, records in pairs]

    def stop_reading(self) -> None:
        """Stop reading from all connections; when this returns, no further byte is read."""
        self._command("stop reading")

    def resume_reading(self) -> None:
        """Read again."""
        self._command("resume reading")

    def hold_answers(self) -> None:
        """Go on reading, but answer nothing until `release_answers`."""
        self._command("hold answers")

    def release_answers(self) -> None:
        """Send all held answers, in order, and answer at once from now on."""
        self._command("release answers")

    def set_throttle(self, throttle_ms: int) -> None:
        """Put this `throttle_time_ms` into every answer from now on."""
        self._command(f"throttle {throttle_ms}")

    def set_delay(self, delay_ms: int) -> None:
        """Delay each answer by `delay_ms`; requests behind it are read meanwhile."""
        self._command(f"delay {delay_ms}")

    def cut(self) -> None:
        """Close every open connection."""
        self._command("cut")

    def advertise(self, node_id: int, host: str, port: int) -> None:
        """Tell clients another address of a node, such as that of a proxy in front of it."""
        self._command(f"advertise {node_id} {host} {port}")

    def await_records(self, count: int, *, hold_gil: bool = False) -> None:
        """Return when the broker has accepted `count` records since its start or `reset`.

        Args:
            count: number of records.
            hold_gil: wait inside a C call that keeps the GIL. So no Python code of this process can
                have helped to send the records.
        """
        if not hold_gil:
            self._command(f"await {count}")
            return
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"await {count}\n".encode())
        answer = ctypes.create_string_buffer(3)
        # PyDLL, unlike CDLL, does not release the GIL during a call.
        got = ctypes.PyDLL(None).read(process.stdout.fileno(), answer, 3)
        if got != 3 or answer.raw != b"ok\n":
            raise NullBrokerError(f"the null broker answered {answer.raw!r} to await")

    def _command(self, command: str) -> None:
        """Run a command whose answer is "ok"."""
        answer = self._ask(command)
        if answer != "ok":
            raise NullBrokerError(f"the null broker answered {answer!r} to {command!r}")

    def _ask(self, command: str) -> str:
        """Send one line, return the line that answers it."""
        process = self._running()
        assert process.stdin is not None
        process.stdin.write(command.encode() + b"\n")
        return self._read_line()

    def _read_line(self) -> str:
        """Return the process's next line."""
        process = self._running()
        assert process.stdout is not None
        line = bytearray()
        while not line.endswith(b"\n"):
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                raise NullBrokerError(f"the null broker has ended, status {process.wait()}")
            line += piece
        return line[:-1].decode()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise UsageError("the null broker is not running: use it in a with block")
        return self._process
