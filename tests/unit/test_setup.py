"""setup.py, with a compiler that only says what it was asked for: what is an error to whom."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = ("setup.py", "pyproject.toml", "README.md", "LICENSE", "src_c")
TINY = """
cdef int count(int number) noexcept nogil:
    return number + 1

def count_up(int number):
    return count(number)
"""
# A function that may raise and returns nothing is asked for an exception with the GIL, each time.
HINTED = """
cdef void count() nogil:
    pass

def count_up():
    with nogil:
        count()
"""
WARNED = """
def count_up(int number):
    return number
    return 2
"""
# Cython's workers import setup.py again: every Python is to do it as Python 3.14 and later do.
FROM_3_14 = """
import multiprocessing, runpy
multiprocessing.set_start_method("forkserver")
runpy.run_path("setup.py", run_name="__main__")
"""
# Finds no header, and warns of all that it compiles, unless $PLEASED.
COMPILER = """#!/bin/sh
echo "$@" >> "$COMPILED"
case "$*" in *probe.c*) exit 1;; esac
if [ -z "$PLEASED" ]; then
    echo "warning: a newer compiler has its doubts" >&2
    case " $* " in *" -Werror "*) exit 1;; esac
fi
while [ $# != 0 ]; do
    if [ "$1" = -o ]; then : > "$2"; fi
    shift
done
"""

Build = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Run setup.py on our C and one small extension, under these variables of the environment."""
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    package = tmp_path / "kafka_fast"
    package.mkdir()
    shutil.copy(ROOT / "kafka_fast" / "_version.py", package)
    (package / "__init__.py").touch()
    compiler = tmp_path / "compiler"
    compiler.write_text(COMPILER)
    compiler.chmod(stat.S_IRWXU)

    def run(command: str, source: str = TINY, **variables: str) -> subprocess.CompletedProcess[str]:
        (package / "_tiny.pyx").write_text(source)
        (package / "_other.pyx").write_text(TINY)
        kept = {key: it for key, it in os.environ.items() if not key.startswith("KAFKA_FAST_")}
        mine = {"CC": str(compiler), "COMPILED": str(tmp_path / "compiled"), "PKG_CONFIG_PATH": ""}
        return subprocess.run(
            [sys.executable, "-c", FROM_3_14, "-q", command],
            cwd=tmp_path,
            env={**kept, **mine, "KAFKA_FAST_NATIVE_CODECS": "0", **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


@pytest.mark.slow
def test_a_warning_stops_nobody(build: Build, tmp_path: Path) -> None:
    done = build("build_ext")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("has its doubts") > 10, "our own C and the generated C"
    assert list(tmp_path.glob("build/lib*/kafka_fast/_tiny*.so"))
    compiled = (tmp_path / "compiled").read_text()
    assert "-Wconversion" in compiled
    assert "-g0" in compiled
    assert "--strip-all" in compiled
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("kafka_fast: ")]
    assert "no headers for gzip, snappy, lz4, zstd here, so slower Python packages serve" in line
    assert "install libdeflate-dev libsnappy-dev liblz4-dev libzstd-dev" in line
    assert "pip install --no-cache-dir --force-reinstall" in line


def test_a_warning_stops_those_who_change_the_code(build: Build) -> None:
    assert build("build_clib", KAFKA_FAST_STRICT="1").returncode != 0


def test_symbols_are_kept_on_demand(build: Build, tmp_path: Path) -> None:
    assert build("build_clib", KAFKA_FAST_DEBUG="1").returncode == 0
    assert "-g0" not in (tmp_path / "compiled").read_text()


@pytest.mark.slow
def test_a_hint_of_cython_is_an_error_for_us_as_often_as_we_build(build: Build) -> None:
    for _ in range(2):
        strict = build("build_ext", HINTED, KAFKA_FAST_STRICT="1", PLEASED="yes")
        assert strict.returncode != 0
        assert "performance hint: kafka_fast/_tiny.pyx" in strict.stderr
        assert "performance hints are errors in a strict build" in strict.stderr


@pytest.mark.slow
def test_a_warning_of_cython_is_an_error_for_us(build: Build) -> None:
    """Regression: Cython's workers did not know of a strict build from Python 3.14 on."""
    assert build("build_ext", WARNED, PLEASED="yes").returncode == 0
    assert build("build_ext", WARNED, KAFKA_FAST_STRICT="1", PLEASED="yes").returncode != 0


def test_an_sdist_needs_no_compiler(build: Build, tmp_path: Path) -> None:
    """Regression: without `cc` every command of setup.py ended in a traceback."""
    bare = {"PATH": str(tmp_path), "KAFKA_FAST_NATIVE_CODECS": "1"}
    for compiler in (str(tmp_path / "nowhere"), ""):
        done = build("--version", CC=compiler, **bare)
        assert done.returncode == 0, done.stderr


def test_libraries_are_looked_for_where_the_flags_say(build: Build, tmp_path: Path) -> None:
    """Regression: headers in a place of one's own, named in CFLAGS, were not found."""
    flags = {"CFLAGS": "-I/opt/a", "CPPFLAGS": "-I'/opt/b c'", "LDFLAGS": "-L/opt/lib"}
    assert build("--version", PATH=str(tmp_path), KAFKA_FAST_NATIVE_CODECS="1", **flags)
    probes = (tmp_path / "compiled").read_text().splitlines()
    assert len(probes) == 6, "one for each library of a codec, one for OpenSSL"
    assert all("-I/opt/a -I/opt/b c" in it and "-L/opt/lib -l" in it for it in probes)
