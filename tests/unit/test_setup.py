"""setup.py, with a compiler that only says what it was asked for: what is an error to whom."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from email import message_from_string
from email.message import Message
from pathlib import Path
from types import ModuleType

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
SETUP = """
import multiprocessing, os, runpy, sys, sysconfig
import Cython.Build, setuptools.command.build_clib, setuptools.command.build_ext
multiprocessing.set_start_method("forkserver")
exec(os.environ.get("BEFORE", ""))
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
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith("KAFKA_FAST_")
        }
        mine = {"CC": str(compiler), "COMPILED": str(tmp_path / "compiled"), "PKG_CONFIG_PATH": ""}
        return subprocess.run(
            [sys.executable, "-c", SETUP, "-q", command],
            cwd=tmp_path,
            env={**kept, **mine, "KAFKA_FAST_NATIVE_CODECS": "0", **variables},
            capture_output=True,
            text=True,
            timeout=110,
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
    assert "no headers for gzip, snappy, lz4, zstd here, so slower Python packages, which" in line
    assert "install libdeflate-dev libsnappy-dev liblz4-dev libzstd-dev" in line
    assert "pip install --no-cache-dir --force-reinstall" in line


def metadata(built: subprocess.CompletedProcess[str], folder: Path) -> Message:
    """Return what a package index reads, from a build of `egg_info`."""
    assert built.returncode == 0, built.stderr
    return message_from_string((folder / "kafka_fast.egg-info" / "PKG-INFO").read_text())


def test_a_build_without_codecs_requires_their_packages(build: Build, tmp_path: Path) -> None:
    """Regression: such a build was installed alone, and failed at the first batch in lz4."""
    said = metadata(build("egg_info"), tmp_path)
    required = said.get_all("Requires-Dist") or []
    always = [package for package in required if "extra ==" not in package]
    assert always == ["cramjam>=2.8", "lz4>=4.3", "zstandard>=0.22"]
    extra = [package.partition(";")[0] for package in required if package.endswith('"codecs"')]
    assert [package.replace(" ", "") for package in extra] == always
    assert "requires-dist" in map(str.lower, said.get_all("Dynamic") or []), "for those of an sdist"


def test_a_build_with_codecs_requires_no_package(build: Build, tmp_path: Path) -> None:
    built = build("egg_info", CC="true", KAFKA_FAST_NATIVE_CODECS="1", PATH=os.environ["PATH"])
    required = metadata(built, tmp_path).get_all("Requires-Dist") or []
    assert [package for package in required if "extra ==" not in package] == []


def test_what_an_index_shows_has_no_dead_link(build: Build, tmp_path: Path) -> None:
    """Regression: the README's links to the pages, all of them, led nowhere there."""
    said = metadata(build("egg_info", KAFKA_FAST_REPOSITORY=""), tmp_path)
    text = str(said.get_payload())
    assert "More: the producer (docs/producer.md)." in text
    assert "](docs/" not in text
    assert said.get_all("Project-URL") is None
    assert said["Author"] == "The kafka_fast authors"


def test_what_an_index_shows_links_to_the_repository(build: Build, tmp_path: Path) -> None:
    place = "https://forge.example/kafka_fast"
    said = metadata(build("egg_info", KAFKA_FAST_REPOSITORY=place), tmp_path)
    text = str(said.get_payload())
    targets = re.findall(r"\]\(([^)]*)\)", text)
    assert f"{place}/blob/v{said['Version']}/docs/producer.md" in targets
    assert [target for target in targets if not target.startswith("https://")] == []
    assert f"Source, {place}" in (said.get_all("Project-URL") or [])


def test_the_supported_pythons_are_the_same_everywhere() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    minors = re.findall(r":: Python :: 3\.(\d+)", project)
    assert f'requires-python = ">=3.{minors[0]}"' in project
    (wheels,) = re.findall(r'^build = "(.*)"', project, re.MULTILINE)
    assert wheels.split() == [f"cp3{minor}-*" for minor in minors]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "PYTHONS ?= " + " ".join(f"python3.{minor}" for minor in minors) in makefile
    for name in ("README.md", "docs/support.md", "setup.py"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert f"CPython 3.{minors[0]} to 3.{minors[-1]}" in text, name


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        ("sys.platform = 'darwin'", "kafka_fast runs on Linux only: on macOS use it in a Linux"),
        ("sys.platform = 'win32'", "kafka_fast runs on Linux only: on Windows use it inside the W"),
        ("sys.platform = 'aix'", "kafka_fast runs on Linux only"),
        (
            "sysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1",
            "kafka_fast does not support free-threaded Python yet: install it with a standard",
        ),
    ],
)
def test_what_is_not_supported_is_refused_in_a_sentence(
    build: Build, before: str, sentence: str
) -> None:
    refused = build("--version", BEFORE=before)
    assert refused.returncode != 0
    assert refused.stderr.startswith(sentence)
    assert refused.stderr.count("\n") == 1


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
    assert all("-I/opt/a -I/opt/b c" in probe and "-L/opt/lib -l" in probe for probe in probes)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return setup.py as a module that finds the sources of the package below `tmp_path`."""
    spec = importlib.util.spec_from_file_location("setup_script", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    libraries = {"kf_high": ["kf_other.c", "kf_high.c"], "kf_low": ["kf_low.c"], "kf_none": []}
    monkeypatch.setattr(module, "C_LIBRARIES", libraries)
    plant(tmp_path, dict.fromkeys(("kf_low.h", "kf_low.c", "kf_other.h", "kf_other.c"), ""))
    plant(tmp_path, {"kf_high.h": "", "kf_high.c": '#include "kf_high.h"\n#include "kf_low.h"\n'})
    return module


def plant(root: Path, files: dict[str, str]) -> None:
    """Write sources: C into src_c, Cython into the package."""
    for name, text in files.items():
        path = root / ("kafka_fast" if name.endswith((".pyx", ".pxd")) else "src_c") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


LOW = 'cdef extern from "kf_low.h":\n    int low()\n'
HIGH = 'cdef extern from "kf_high.h":\n    int high()\n'


@pytest.mark.parametrize(
    ("sources", "libraries"),
    [
        ({"_a.pyx": "import os\n"}, []),
        ({"_a.pyx": LOW}, ["kf_low"]),
        ({"_a.pyx": "", "_a.pxd": LOW}, ["kf_low"]),
        # And what the C behind its headers includes.
        ({"_a.pyx": HIGH}, ["kf_high", "kf_low"]),
        ({"_a.pyx": "from kafka_fast.low cimport *\n", "low.pxd": LOW}, ["kf_low"]),
        ({"_a.pyx": "from kafka_fast cimport low\n", "low.pxd": LOW}, ["kf_low"]),
        ({"_a.pyx": "cimport kafka_fast.low\n", "low.pxd": LOW}, ["kf_low"]),
        (
            {
                "_a.pyx": "from kafka_fast.room cimport (  # why\n    other,\n    low as l,\n)\n",
                "room/low.pxd": LOW,
            },
            ["kf_low"],
        ),
        (
            {
                "_a.pyx": "from kafka_fast.room cimport (\n    other,  # why (not)\n    low,\n)\n",
                "room/low.pxd": LOW,
            },
            ["kf_low"],
        ),
        # Another extension links what it declares, and its own users call it.
        ({"_a.pyx": "from kafka_fast._b cimport f\n", "_b.pyx": LOW, "_b.pxd": LOW}, []),
        ({"_a.pyx": "from libc.string cimport memcpy\n"}, []),
    ],
)
def test_an_extension_links_what_it_declares_itself(
    script: ModuleType, tmp_path: Path, sources: dict[str, str], libraries: list[str]
) -> None:
    plant(tmp_path, sources)
    assert script.linked_libraries(tmp_path / "kafka_fast" / "_a.pyx") == libraries
