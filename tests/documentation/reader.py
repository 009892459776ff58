"""A reader who does what a page says, block by block, and compares what it prints.

Each Python block is a program of its own, and each shell block a shell of its own, in one folder
for the page. Only two things differ from the page: the broker's port, and the port that the
page's own servers listen on, because the reader is not alone on the machine.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from kafka_fast import __version__
from kafka_fast.testing._kafka.java_process import PortPool
from tests.conftest import without_codec_warnings
from tests.documentation.pages import ELSEWHERE, ROOT, RUN, Block

STEP_TIMEOUT = 60.0
BROKERS = ("broker1:9092,broker2:9092", "localhost:9092")
"""What the pages call the broker."""
SERVER_PORT = "8000"
"""Where the pages' own servers listen."""
_SERVER = re.compile(rf"\b{SERVER_PORT}\b")

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
"""What a reader's processes see of this one's; read once: pytest changes it from test to test."""


class Reader:
    """Follows a page in a folder; use it in a `with` block, which ends what it has started.

    Args:
        folder: where to work; empty.
        port: the broker's, on localhost.
        python: the interpreter that has kafka_fast; None: this one, with the checkout.
        said_by_broker: what `kafka-fast broker` has printed, if that is the broker.
    """

    def __init__(
        self, folder: Path, port: int, *, python: Path | None = None, said_by_broker: str = ""
    ) -> None:
        self._folder = folder
        self._port = port
        self._said_by_broker = said_by_broker
        self._ports = PortPool()
        self._server_port = self._ports.take_port()
        self._background: list[Program] = []
        self._environment = _environment(folder, port, python)

    def __enter__(self) -> Reader:
        """Nothing runs yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the programs in the background, the latest first."""
        for program in reversed(self._background):
            program.kill()
        self._ports.close()

    def follow(self, blocks: Sequence[Block]) -> None:
        """Do what the blocks of a page say.

        Raises:
            AssertionError: something failed, or printed something else; it names the line.
        """
        for number, block in enumerate(blocks):
            after = blocks[number + 1] if number + 1 < len(blocks) else None
            shown = after.text if after and after.language == "text" and not after.how else ""
            self._do(block, shown)

    def _do(self, block: Block, shown: str) -> None:
        if block.how.startswith(ELSEWHERE):
            return
        if block.how == "the broker":
            if self._said_by_broker and shown:
                compare(block, shown, self._as_on_page(self._said_by_broker))
        elif block.language == "text":
            self._look_again(block)
        elif block.title:
            self._save(block, block.title)
        elif block.language in RUN:
            self._run(block, shown)

    def _save(self, block: Block, name: str) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # A program in the background gets the signals, not its shell.
        shell = "exec " if block.how == "in the background" and block.language == "sh" else ""
        path.write_text(shell + self._as_here(block.text), encoding="utf-8")

    def _run(self, block: Block, shown: str) -> None:
        """Run a block; compare what it has printed when it ends, or goes on in the background."""
        name = f"line_{block.line}"
        if block.how == "pytest":
            command, name = ["python", "-m", "pytest", "-q"], f"test_{name}.py"
        elif block.language == "python":
            command, name = ["python"], f"{name}.py"
        else:
            command, name = ["bash", "-euo", "pipefail"], f"{name}.sh"
        self._save(block, name)
        program = Program([*command, name], self._folder, self._environment)
        self._background.append(program)
        if block.how == "in the background":
            self._await(block, shown, program)
        else:
            status = program.wait(block.place)
            said = self._as_on_page(program.said())
            compare(block, shown, said)
            assert status == 0, f"{block.place} ended with status {status}:\n{said}"

    def _look_again(self, block: Block) -> None:
        """Compare what the latest program in the background has printed since."""
        if not block.how:
            return  # shown by the block before
        program = next(
            background for background in reversed(self._background) if background.goes_on
        )
        if block.how == "later":
            self._await(block, block.text, program)
            return
        program.signal(signal.Signals[block.how.removeprefix("after ")])
        program.wait(block.place)
        compare(block, block.text, self._as_on_page(program.said()))

    def _await(self, block: Block, shown: str, program: Program) -> None:
        """Wait until a program that goes on has printed what the page shows; then forget that."""
        deadline = time.monotonic() + STEP_TIMEOUT
        while not matches(shown, self._as_on_page(program.said())):
            if time.monotonic() > deadline or not program.goes_on:
                compare(block, shown, self._as_on_page(program.said()))
            time.sleep(0.02)
        program.forget()

    def _as_here(self, text: str) -> str:
        """Put our ports in place of the page's."""
        for name in BROKERS:
            text = text.replace(name, f"localhost:{self._port}")
        return _SERVER.sub(str(self._server_port), text)

    def _as_on_page(self, text: str) -> str:
        """Put the page's ports in place of ours; leave out what only this build has to say."""
        text = without_codec_warnings(text).replace(f":{self._port}", ":9092")
        return text.replace(str(self._server_port), SERVER_PORT)


class Program:
    """A program of the page, in a session of its own; what it prints goes to one file."""

    def __init__(self, command: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
        self._output = folder / f"{command[-1]}.output"
        self._forgotten = 0
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def goes_on(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def said(self) -> str:
        """Return what it has printed, as far as it is not forgotten."""
        return self._output.read_text(encoding="utf-8")[self._forgotten :]

    def forget(self) -> None:
        """Leave out from now on what it has printed so far."""
        self._forgotten += len(self.said())

    def wait(self, place: str) -> int:
        """Return its exit status."""
        try:
            return self._process.wait(STEP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{place} does not end; it said:\n{self.said()}") from None

    def signal(self, number: signal.Signals) -> None:
        """Give it a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it and all that it has started."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has ended, and was waited for
        self._process.wait()


def matches(shown: str, said: str) -> bool:
    """Say whether a program has printed what a page shows, `...` standing for anything.

    A line `...` stands for any lines, or none.
    """
    pattern = "".join(
        r"(?:.*\n)*?" if line == "...\n" else ".*?".join(map(re.escape, line.split("...")))
        for line in _lines(shown).splitlines(True)
    )
    return re.fullmatch(pattern, _lines(said)) is not None


def compare(block: Block, shown: str, said: str) -> None:
    """Fail, with both, if a block has printed something else than its page shows."""
    assert matches(shown, said), (
        f"{block.place} shows\n{shown or '(nothing)'}\nbut this is printed:\n{said or '(nothing)'}"
    )


def _lines(text: str) -> str:
    return "".join(line.rstrip() + "\n" for line in text.strip("\n").splitlines())


def _environment(folder: Path, port: int, python: Path | None) -> dict[str, str]:
    """Return an environment in which `python` and `kafka-fast` are there, as on the reader's."""
    names = dict(ENVIRONMENT)
    names["PYTHONUNBUFFERED"] = "1"
    names["PYTEST_ADDOPTS"] = "-p no:hypothesispytest -p no:xdist"  # ours; their import takes long
    names.pop("PYTHONPATH", None)
    interpreter = python or Path(sys.executable)
    commands = folder / ".commands"
    commands.mkdir()
    if python is None:
        names["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(commands)])
        _install(commands)
    for name, text in {"python": _PYTHON, "kafka-fast": _KAFKA_FAST}.items():
        script = commands / name
        script.write_text(text.format(python=shlex.quote(str(interpreter)), port=port))
        script.chmod(0o755)
    path = [str(commands), str(interpreter.parent), names["PATH"]]
    return {**names, "PATH": os.pathsep.join(path)}


def _install(folder: Path) -> None:
    """Let pytest find the plugin, as where the package is installed."""
    about = folder / f"kafka_fast-{__version__}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: kafka_fast\nVersion: {__version__}\n")
    plugin = "kafka_fast.testing.plugin"  # found twice under one name it is loaded once
    (about / "entry_points.txt").write_text(f"[pytest11]\n{plugin} = {plugin}\n")


_PYTHON = """\
#!/bin/sh
exec {python} "$@"
"""
# Its broker is at localhost:9092 unless it is told another one.
_KAFKA_FAST = """\
#!/bin/bash
case "$1" in
produce | consume | topics | records | lag)
    [[ " $* " == *" -b "* ]] || set -- "$@" --bootstrap localhost:{port} ;;
esac
exec {python} -m kafka_fast "$@"
"""
