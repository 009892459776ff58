"""Each sanitizer finds a fault of its kind, and only that: the check can fail, and can pass."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sanitize import run as run_tests
from tests.sanitize.sanitizers import (
    SANITIZERS,
    MissingError,
    compile_module,
    environment,
    probe,
    reports,
)

HERE = Path(__file__).parent
INCLUDES = (sysconfig.get_path("include"), str(HERE.parents[1] / "src_c"))

IN_TWO_THREADS = """
import threading
from planted import {name}
threads = [threading.Thread(target={name}, args=args) for args in ({first}, {second})]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
IN_A_CHILD = """
import subprocess, sys

def test_nothing():
    subprocess.run([sys.executable, "-c", {!r}], stderr=subprocess.DEVNULL)
"""


def in_two_threads(name: str, first: str = "()", second: str = "()") -> str:
    return IN_TWO_THREADS.format(name=name, first=first, second=second)


def called(what: str) -> str:
    return f"import planted; planted.{what}"


Run = Callable[[str], "tuple[int, str]"]


@pytest.fixture(scope="module", params=SANITIZERS)
def sanitizer(request: pytest.FixtureRequest) -> str:
    """The name of a sanitizer; without it the test is skipped, and fails with CI=true."""
    name: str = request.param
    try:
        probe(SANITIZERS[name])
    except MissingError as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must run the sanitizers: {missing}")
        pytest.skip(f"no sanitizer for {name} here: {missing}")
    return name


@pytest.fixture(scope="module")
def module(sanitizer: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the extension with the faults, built for the sanitizer."""
    folder = tmp_path_factory.mktemp(sanitizer)
    includes = [f"-I{path}" for path in INCLUDES]
    compile_module(SANITIZERS[sanitizer], HERE / "planted.c", folder / "planted.so", *includes)
    return folder


@pytest.fixture
def run(sanitizer: str, module: Path, tmp_path: Path) -> Run:
    """Run a script under the sanitizer; return its status and what was reported."""

    def run(script: str) -> tuple[int, str]:
        env = {**environment(SANITIZERS[sanitizer], tmp_path), "PYTHONPATH": str(module)}
        ran = subprocess.run(
            [sys.executable, "-c", script], env=env, capture_output=True, timeout=60
        )
        return ran.returncode, "\n".join(reports(tmp_path))

    return run


ADDRESS = pytest.mark.parametrize("sanitizer", ["address"], indirect=True)
THREAD = pytest.mark.parametrize("sanitizer", ["thread"], indirect=True)


@ADDRESS
@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("write_block(1)", "heap-buffer-overflow"),
        ("read_bytes(b'abc', 4)", "heap-buffer-overflow"),
        ("shift(40)", "AddressSanitizer: ILL"),
    ],
)
def test_memory(run: Run, fault: str, name: str) -> None:
    status, report = run(called(fault))
    assert status != 0
    assert name in report
    assert "planted.c" in report


@THREAD
@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (in_two_threads("race"), "data race"),
        (
            in_two_threads("take_locks", "(True,)", "(False,)"),
            "lock-order-inversion (potential deadlock)",
        ),
    ],
    ids=["race", "locks"],
)
def test_threads(run: Run, fault: str, name: str) -> None:
    status, report = run(fault)
    assert status != 0
    assert name in report
    assert "planted.c" in report


@pytest.mark.parametrize(
    "script",
    [
        called("write_block(0)"),
        called("read_bytes(b'abc', 3)"),
        called("shift(3)"),
        in_two_threads("count", "(True,)", "(False,)"),
        in_two_threads("write_with_the_gil"),
        in_two_threads("take_locks", "(True,)", "(True,)"),
    ],
    ids=["block", "bytes", "shift", "counter", "gil", "locks"],
)
def test_what_is_no_fault(run: Run, script: str) -> None:
    """Statistics are relaxed atomics; what the GIL puts in order needs no lock of its own."""
    assert run(script) == (0, "")


@ADDRESS
@pytest.mark.parametrize(("more", "status"), [(0, 0), (1, 1)])
def test_a_run_fails_if_a_child_of_its_tests_has_a_fault(
    sanitizer: str,
    module: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    more: int,
    status: int,
) -> None:
    """Tests kill children, and may not look how they end."""
    (tmp_path / "test_child.py").write_text(IN_A_CHILD.format(called(f"write_block({more})")))
    shutil.copy(module / "planted.so", tmp_path)
    for name in ("make_tree", "work_folder"):
        monkeypatch.setattr(run_tests, name, lambda _: tmp_path)
    assert run_tests.run(SANITIZERS[sanitizer], ["test_child.py"]) == status
    said = capfd.readouterr().out
    assert "1 passed" in said
    assert said.endswith(f"sanitize: address test_child.py: {more} reports\n")
    assert ("heap-buffer-overflow" in said) == bool(more)
