"""A terminal for tests: a pseudo terminal, and what a user sees on it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyte

from tests.waiting import TIMEOUT

ROOT = Path(__file__).parents[3]
LINES, COLUMNS = 24, 80
END = b"\x04"  # Ctrl-D
INTERRUPT = b"\x03"  # Ctrl-C
IN_FRONT = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that the terminal's Ctrl-C reaches this process
from kafka_fast.cli.main import main
sys.exit(main())
"""


def hiding(packages: Iterable[str]) -> str:
    """Return Python code after which packages cannot be imported."""
    return f"import sys; sys.modules.update(dict.fromkeys({[*packages]}))\n"


class Terminal:
    """A command whose standard streams are one terminal."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self._master = master
        self.process = process
        self.text = ""
        self.bytes = b""

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def await_text(self, text: str) -> None:
        """Wait until it has been shown."""
        deadline = time.monotonic() + TIMEOUT
        while text not in self.text:
            assert time.monotonic() < deadline, f"no {text!r} in {self.text!r}"
            self.read(0.1)

    def end(self) -> int:
        """Wait for the end; return the exit status."""
        deadline = time.monotonic() + TIMEOUT
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.text
            self.read(0.05)
        while self.read(0.0):
            pass
        return self.process.returncode

    def read(self, timeout: float) -> bool:
        """Take what is shown; tell whether there was anything."""
        if not select.select([self._master], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other side has closed it
            return False
        self.bytes += data
        self.text += data.decode().replace("\r\n", "\n")
        return bool(data)

    def resize(self, columns: int, lines: int = LINES) -> None:
        """Give the terminal another size, and forget what it has shown."""
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)
        while self.read(0.0):
            pass
        self.text, self.bytes = "", b""

    def screen(self, columns: int = COLUMNS, lines: int = LINES) -> pyte.Screen:
        """Return what a terminal of this size shows in the end."""
        screen = pyte.Screen(columns, lines)
        pyte.ByteStream(screen).feed(self.bytes)
        return screen

    def lines(self, columns: int = COLUMNS, lines: int = LINES) -> list[str]:
        """Return the lines of the screen down to the last one that has a text."""
        return (
            "\n".join(line.rstrip() for line in self.screen(columns, lines).display)
            .rstrip()
            .split("\n")
        )


@contextmanager
def terminal(
    *arguments: str,
    output: IO[bytes] | int | None = None,
    columns: int = COLUMNS,
    environment: Mapping[str, str] | None = None,
    without: Iterable[str] = (),
) -> Iterator[Terminal]:
    """Run `kafka-fast` on a terminal of its own, as the one in front.

    Args:
        arguments: the command line.
        output: where standard output goes; None: to the terminal.
        columns: of the terminal.
        environment: more variables, or others.
        without: packages that are not installed, as far as the command can see.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
    of_tests = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"}
    names = {name: value for name, value in os.environ.items() if name not in of_tests}
    process = subprocess.Popen(
        [sys.executable, "-c", hiding(without) + IN_FRONT, *arguments],
        stdin=slave,
        stdout=slave if output is None else output,
        stderr=slave,
        cwd=ROOT,
        env={**names, "TERM": "xterm-256color", **(environment or {})},
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)
