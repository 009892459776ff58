"""gcc's sanitizers: how extensions are built for them, and how processes run under them.

The interpreter stays the ordinary one; the extensions alone are instrumented. A process loads the
sanitizer's runtime before everything else. The runtime then sees each malloc and each lock, those
of CPython too. The GIL consists of pthread locks, so ThreadSanitizer knows the order it gives.

A report ends its process. That may be a child which its test kills anyway. Each report is therefore
a file as well, and a run that leaves a file has failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "COMPILER",
    "SANITIZERS",
    "MissingError",
    "Sanitizer",
    "compile_module",
    "environment",
    "probe",
    "reports",
]

COMPILER = os.environ.get("CC", "gcc")
REPORT = "report"
"""A report's file is called so, with a dot and the number of the process."""

QUICK = ("-O1", "-g1", "-fno-omit-frame-pointer")
"""Reports name lines, and the compiler takes half the time."""


class MissingError(Exception):
    """The sanitizer cannot run on this machine; the message says what it lacks."""


@dataclass(frozen=True, slots=True)
class Sanitizer:
    """How extensions are built for one sanitizer, and how processes run with them.

    Attributes:
        name: what the Makefile and the marker `not_under` call it.
        flags: for compiler and linker, after all others.
        runtime: the library that a process loads first.
        symbol: of the runtime; whatever is instrumented refers to it.
        variable: of the environment; the runtime reads its options there.
        options: those of the runtime, and their values.
        variables: further variables of the environment, unless they are set.
    """

    name: str
    flags: tuple[str, ...]
    runtime: str
    symbol: str
    variable: str
    options: Mapping[str, int]
    variables: Mapping[str, str]


ADDRESS = Sanitizer(
    name="address",
    # Undefined behaviour traps, and AddressSanitizer reports the trap with its line: the runtime of
    # UBSan writes to stderr only. The check object-size would come before AddressSanitizer's own
    # and says less. AddressSanitizer does not know glibc's fortified functions.
    flags=(
        *QUICK,
        "-fsanitize=address,undefined",
        "-fsanitize-undefined-trap-on-error",
        "-fno-sanitize=object-size",
        "-U_FORTIFY_SOURCE",
    ),
    runtime="libasan.so",
    symbol="__asan_init",
    variable="ASAN_OPTIONS",
    options={
        # CPython ends without freeing interned strings and static types. Suppressions for it would
        # hide ours: what our code allocates is nearly always beneath a frame of CPython. Leaks of
        # our C are found by src_c/tsan/run.sh, those of clients by
        # tests/embedded/engine/test_resources.py.
        "detect_leaks": 0,
        # What is too large to allocate is NULL, as without the sanitizer.
        "allocator_may_return_null": 1,
        # The defaults (30 frames, 256 MiB) cost a third of the time.
        "malloc_context_size": 6,
        "quarantine_size_mb": 64,
        # No other handler of these signals replaces the sanitizer's.
        "handle_sigill": 2,
        "handle_segv": 2,
    },
    # Each Python object is a block of its own, so that a read beyond it is seen.
    variables={"PYTHONMALLOC": "malloc"},
)

THREAD = Sanitizer(
    name="thread",
    # gcc warns that ThreadSanitizer ignores fences (kf_fence). Ours serve handshakes of a store and
    # a load only, which give no order to other data.
    flags=(*QUICK, "-fsanitize=thread", "-Wno-tsan"),
    runtime="libtsan.so",
    symbol="__tsan_init",
    # There are no suppressions: CPython needs none.
    variable="TSAN_OPTIONS",
    options={"halt_on_error": 1, "second_deadlock_stack": 1},
    variables={},
)

SANITIZERS = {sanitizer.name: sanitizer for sanitizer in (ADDRESS, THREAD)}


def runtime(sanitizer: Sanitizer) -> str:
    """Return the path of the compiler's runtime library."""
    path = library(sanitizer.runtime)
    if path is None:
        raise MissingError(f"{COMPILER} has no {sanitizer.runtime}")
    return path


def library(name: str) -> str | None:
    """Return the path of a library that the compiler links; None if it has none of that name."""
    command = [COMPILER, f"-print-file-name={name}"]
    try:
        path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except FileNotFoundError:
        raise MissingError(f"{COMPILER} is not installed") from None
    return path if Path(path).is_absolute() else None


def environment(sanitizer: Sanitizer, folder: Path) -> dict[str, str]:
    """Return the environment of a process under the sanitizer; its reports come into `folder`."""
    options = {**sanitizer.options, "log_path": folder / REPORT}
    # C++ is loaded with it: greenlet throws exceptions, which the runtime must find at the start.
    preloaded = filter(None, (runtime(sanitizer), library("libstdc++.so.6")))
    return {
        **sanitizer.variables,
        **os.environ,
        sanitizer.variable: ":".join(f"{name}={value}" for name, value in options.items()),
        "LD_PRELOAD": ":".join(preloaded),
        "KAFKA_FAST_SANITIZER": sanitizer.name,
    }


def reports(folder: Path) -> list[str]:
    """Return what processes have reported into `folder`."""
    return [path.read_text(errors="replace") for path in sorted(folder.glob(f"{REPORT}.*"))]


def compile_module(sanitizer: Sanitizer, source: Path, module: Path, *more: str) -> None:
    """Make an extension module of one C file, as the shipped ones are made."""
    arguments = ["-shared", "-fPIC", *sanitizer.flags, *more, str(source), "-o", str(module)]
    made = subprocess.run([COMPILER, *arguments], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise MissingError(f"{COMPILER} {' '.join(sanitizer.flags)} fails: {made.stderr.strip()}")


def probe(sanitizer: Sanitizer) -> None:
    """Raise MissingError unless the compiler knows the sanitizer and this Python runs under it."""
    linked = runtime(sanitizer)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, module = folder / "probe.c", folder / "probe.so"
        source.write_text("int probe(int by);\nint probe(int by) { return 1 << by; }\n")
        compile_module(sanitizer, source, module)
        ran = subprocess.run(
            [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(module)!r})"],
            env=environment(sanitizer, folder),
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode != 0:
            said = [*"\n".join(reports(folder)).splitlines(), *ran.stderr.splitlines()]
            why = said[-1] if said else f"status {ran.returncode}"
            raise MissingError(f"this Python does not run under {linked}: {why}")
