"""Build the extensions: every `kafka_fast/**/_*.pyx` is one, and links what it declares of C.

`KAFKA_FAST_STRICT=1` makes errors of warnings and of what Cython hints at. For those who change the
code: elsewhere a newer compiler, which warns of more, must not stop an installation.
`KAFKA_FAST_DEBUG=1` keeps symbols and debug information, which are three quarters of the size.
`KAFKA_FAST_NATIVE_CODECS=0` builds as on a machine that has no compression headers.
`KAFKA_FAST_NATIVE_TLS=0` builds as on one that has no headers of OpenSSL 3.
`KAFKA_FAST_SANITIZE=-fsanitize=address` gives these flags to compiler and linker after all others.
`KAFKA_FAST_BUILD_JOBS=n` runs n compilers at a time (default 2).
`KAFKA_FAST_REPOSITORY=https://…` is where others find the repository; without it the package's
description names files where it would link to them.
A build with other options than the last one in the same folder compiles everything anew; a changed
header compiles what may include it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup
from setuptools.command.build_clib import build_clib
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
JOBS = int(os.environ.get("KAFKA_FAST_BUILD_JOBS", "2"))
STRICT = os.environ.get("KAFKA_FAST_STRICT", "0") == "1"
SANITIZE = shlex.split(os.environ.get("KAFKA_FAST_SANITIZE", ""))
DEBUG = os.environ.get("KAFKA_FAST_DEBUG", "0") == "1" or bool(SANITIZE)

# Static library -> its sources in src_c/. An extension links those whose headers it declares
# (`linked_libraries`), and the linker takes from them only what it needs. State that must exist
# once (the chosen CRC path, for example) is declared by one extension, and the others cimport it
# from there. The planes' shared state is functions over structs and holds nothing of its own.
C_LIBRARIES: dict[str, list[str]] = {
    "kf_crc32c": ["kf_crc32c.c"],
    "kf_codecs": ["kf_compress.c", "kf_gzip.c", "kf_snappy.c", "kf_lz4.c", "kf_zstd.c"],
    "kf_arrow": ["kf_arrow_build.c"],
    "kf_tls": ["kf_tls.c", "kf_tls_context.c"],
    "kf_planes": [
        "kf_pool.c",
        "kf_event.c",
        "kf_events.c",
        "kf_commands.c",
        "kf_plane.c",
        "kf_producer.c",
        "kf_batch.c",
        "kf_queue.c",
        "kf_split.c",
        "kf_link.c",
        "kf_frame.c",
        "kf_fetch.c",
    ],
}
CIMPORT = re.compile(
    r"^\s*(?:from ([\w.]+) cimport (\([^)]*\)|[^\n(]+)|cimport ([\w.]+))", re.MULTILINE
)
COMMENT = re.compile(r"#.*")
DECLARED = re.compile(r'cdef extern from "(kf_\w+)\.h"')
INCLUDED = re.compile(r'#include "(kf_\w+)\.h"')

# Macro that says the library is there -> pkg-config name, header, linker name. zlib serves gzip
# where libdeflate, which is faster, is missing.
CODEC_LIBRARIES = {
    "KF_HAVE_LZ4": ("liblz4", "lz4frame.h", "lz4"),
    "KF_HAVE_ZSTD": ("libzstd", "zstd.h", "zstd"),
    "KF_HAVE_SNAPPY": ("snappy", "snappy-c.h", "snappy"),
    "KF_HAVE_LIBDEFLATE": ("libdeflate", "libdeflate.h", "deflate"),
    "KF_HAVE_ZLIB": ("zlib", "zlib.h", "z"),
}
# Codec -> macros of the libraries that serve it, Debian's package of the best one, and the Python
# packages that serve it otherwise (record/fallback.py; the extra `codecs` has them all).
CODECS: dict[str, tuple[tuple[str, ...], str, list[str]]] = {
    "gzip": (("KF_HAVE_LIBDEFLATE", "KF_HAVE_ZLIB"), "libdeflate-dev", []),
    "snappy": (("KF_HAVE_SNAPPY",), "libsnappy-dev", ["cramjam>=2.8"]),
    "lz4": (("KF_HAVE_LZ4",), "liblz4-dev", ["lz4>=4.3"]),
    "zstd": (("KF_HAVE_ZSTD",), "libzstd-dev", ["zstandard>=0.22"]),
}

# The only place that says it. It is empty: the repository has no public address yet.
REPOSITORY = os.environ.get("KAFKA_FAST_REPOSITORY", "").rstrip("/")
RELATIVE_LINK = re.compile(r"\[([^\]]+)\]\((?!\w+:|#)([^)\s]+)\)")
"""In Markdown: its text and its target, which is no address and no heading of the same page."""

OPENSSL_MACRO = ("KF_HAVE_OPENSSL", "1")
OPENSSL_LINKS = ["-lssl", "-lcrypto"]
OPENSSL_PACKAGES = ("openssl", "openssl3")
"""Names for pkg-config; Enterprise Linux 8 has OpenSSL 3 beside its own, under the second one."""

Found = tuple[list[tuple[str, str]], list[str], list[str]]
"""Macros, include directories and link flags for libraries that this machine has."""

COMPILE_ARGS = ["-std=gnu11", "-O3", "-fvisibility=hidden", "-fno-strict-overflow"]
OUR_WARNINGS = ["-Wall", "-Wextra", "-Wconversion"]
# A switch of the planes names every kind; elsewhere one is on another library's enum.
EXHAUSTIVE = {"kf_planes": ["-Wswitch-enum"]}
# Generated code: Cython emits unused helpers, implicit narrowing and unused parameters by design.
# From version 16 on gcc takes what Cython's helper for calls leaves unset for a fault of ours.
GENERATED_WARNINGS = [
    *("-Wall", "-Wno-unused-function", "-Wno-unused-variable", "-Wno-maybe-uninitialized"),
]
ERRORS = ["-Werror"] if STRICT else []
FLAGS = ("CFLAGS", "CPPFLAGS", "LDFLAGS")
"""Of the environment; setuptools hands them to the compiler."""

DIRECTIVES = {
    "language_level": 3,
    "binding": False,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "embedsignature": True,
    "embedsignature.format": "clinic",  # inspect.signature reads it
    "show_performance_hints": True,
}
TRANSLATED = "build/cython"
HINT = "performance hint:"
# Here, not where Cython is called: from Python 3.14 on its workers import this file again, and know
# nothing else of what this process has set.
Options.warning_errors = Options.fast_fail = STRICT


# ---- what this machine has ----


def pkg_config(*args: str) -> list[str] | None:
    """Return what pkg-config prints, split, or None if it knows nothing of the library."""
    if shutil.which("pkg-config") is None:
        return None
    run = subprocess.run(["pkg-config", *args], capture_output=True, text=True, check=False)
    return run.stdout.split() if run.returncode == 0 else None


def compiles(header: str, library: str, condition: str = "1") -> bool:
    """Return whether the compiler finds the header and the library, as it will be called.

    Args:
        header: to include.
        library: to link.
        condition: of the preprocessor, which must hold behind the header.
    """
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    if shutil.which(compiler[0]) is None:
        return False  # nothing is compiled for an sdist; a build says by itself what it lacks
    flags = {name: shlex.split(os.environ.get(name, "")) for name in FLAGS}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text(
            f"#include <stddef.h>\n#include <{header}>\n#if !({condition})\n#error too old\n"
            "#endif\nint main(void) {return 0;}\n"
        )
        run = subprocess.run(
            [
                *[*compiler, *flags["CFLAGS"], *flags["CPPFLAGS"], str(source)],
                *[*flags["LDFLAGS"], f"-l{library}", "-o", str(Path(folder, "probe"))],
            ],
            capture_output=True,
            check=False,
        )
    return run.returncode == 0


def find_library(package: str, header: str, library: str) -> tuple[list[str], list[str]] | None:
    """Return include directories and link flags of a library, or None if it is not there.

    pkg-config knows libraries in unusual places; the compiler's own paths find those that ship
    no description for it (snappy on Debian 12).
    """
    includes = pkg_config("--cflags-only-I", package)
    if includes is not None:
        links = pkg_config("--libs", package) or [f"-l{library}"]
        return [flag.removeprefix("-I") for flag in includes], links
    return ([], [f"-l{library}"]) if compiles(header, library) else None


def find_codecs() -> Found:
    """Return macros, include directories and link flags for the compression libraries here."""
    macros: list[tuple[str, str]] = []
    include_dirs: list[str] = []
    links: list[str] = []
    if os.environ.get("KAFKA_FAST_NATIVE_CODECS", "1") == "0":
        return macros, include_dirs, links
    for macro, names in CODEC_LIBRARIES.items():
        if macro == "KF_HAVE_ZLIB" and ("KF_HAVE_LIBDEFLATE", "1") in macros:
            continue
        located = find_library(*names)
        if located is not None:
            macros.append((macro, "1"))
            include_dirs += located[0]
            links += located[1]
    return macros, include_dirs, links


def find_openssl() -> Found:
    """Return macro, include directories and link flags for OpenSSL 3 or later."""
    if os.environ.get("KAFKA_FAST_NATIVE_TLS", "1") == "0":
        return [], [], []
    for package in OPENSSL_PACKAGES:
        includes = pkg_config("--cflags-only-I", f"{package} >= 3.0")
        if includes is not None:
            links = pkg_config("--libs", package) or OPENSSL_LINKS
            return [OPENSSL_MACRO], [flag.removeprefix("-I") for flag in includes], links
    if compiles("openssl/ssl.h", "ssl", "OPENSSL_VERSION_NUMBER >= 0x30000000L"):
        return [OPENSSL_MACRO], [], OPENSSL_LINKS
    return [], [], []


def missing_codecs(macros: list[tuple[str, str]]) -> dict[str, tuple[str, list[str]]]:
    """Return the codecs without a library here; Debian's and Python's packages of each."""
    defined = {macro for macro, _ in macros}
    return {
        codec: (debian, packages)
        for codec, (by, debian, packages) in CODECS.items()
        if not defined & {*by}
    }


def tell_of_missing(macros: list[tuple[str, str]]) -> None:
    """Say in a line each what will be slow, and how to mend that."""
    if OPENSSL_MACRO not in macros:
        print(
            "kafka_fast: no headers of OpenSSL 3 here, so Python's ssl serves TLS, which is "
            "slower; install them (Debian: apt-get install libssl-dev) and build again "
            "(pip install --no-cache-dir --force-reinstall)",
            file=sys.stderr,
        )
    if missing := missing_codecs(macros):
        headers = " ".join(debian for debian, _ in missing.values())
        print(
            f"kafka_fast: no headers for {', '.join(missing)} here, so slower Python packages, "
            f"which this build requires, serve {'it' if len(missing) == 1 else 'them'}; for "
            f"compiled codecs install the headers (Debian: apt-get install {headers}) and build "
            "again (pip install --no-cache-dir --force-reinstall)",
            file=sys.stderr,
        )


# ---- what the package's metadata say ----


def required_packages() -> list[str]:
    """Return what pip is to install beside this build, so that it reads every codec."""
    missing = missing_codecs(found_here["kf_codecs"][0])
    return [package for _, packages in missing.values() for package in packages]


def description() -> str:
    """Return the README for a package index, where its relative links would lead nowhere."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    if not REPOSITORY:
        return RELATIVE_LINK.sub(r"\1 (\2)", text)
    version = runpy.run_path(str(ROOT / "kafka_fast" / "_version.py"))["__version__"]
    return RELATIVE_LINK.sub(rf"[\1]({REPOSITORY}/blob/v{version}/\2)", text)


def project_urls() -> dict[str, str]:
    """Return the links beside the description, if there is a place to link to."""
    if not REPOSITORY:
        return {}
    return {
        "Source": REPOSITORY,
        "Documentation": f"{REPOSITORY}/tree/main/docs",
        "Changelog": f"{REPOSITORY}/blob/main/CHANGELOG.md",
        "Issues": f"{REPOSITORY}/issues",
    }


# ---- what is built ----


def libraries(found: dict[str, Found]) -> list[tuple[str, dict[str, Any]]]:
    """Return our own C as static libraries, as setuptools wants them."""
    nothing: Found = ([], [], [])
    headers = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "src_c").rglob("*.h"))]
    return [
        (
            name,
            {
                "sources": [f"src_c/{source}" for source in sources],
                "obj_deps": {"": headers},
                "include_dirs": ["src_c", *found.get(name, nothing)[1]],
                "macros": found.get(name, nothing)[0],
                "cflags": [*compile_args(), *OUR_WARNINGS, *EXHAUSTIVE.get(name, []), *ERRORS],
            },
        )
        for name, sources in C_LIBRARIES.items()
    ]


def linked_libraries(module: Path) -> list[str]:
    """Return the static libraries that a .pyx links, in the order in which the linker reads them.

    They are those which define what its headers declare, and what those include: the headers that
    it, its own .pxd, or a cimported .pxd of nothing but declarations names as `extern`. What it
    cimports from another extension, that one links.
    """
    headers: set[str] = set()
    waiting, seen = [module, module.with_suffix(".pxd")], set[Path]()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        text = text_of(path)
        headers.update(DECLARED.findall(text))
        waiting += [file for file in cimported(text) if not file.with_suffix(".pyx").exists()]
    names = [*headers]
    for name in names:  # it grows meanwhile
        for file in ((ROOT / "src_c" / name).with_suffix(suffix) for suffix in (".h", ".c")):
            names += sorted({*INCLUDED.findall(text_of(file))} - {*names})
    return [
        library
        for library, sources in C_LIBRARIES.items()
        if any(source.removesuffix(".c") in names for source in sources)
    ]


@functools.cache
def text_of(path: Path) -> str:
    """Return the text of a file, which many extensions lead to; "" if there is none."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def cimported(text: str) -> Iterator[Path]:
    """Yield the .pxd files of this package that a text in Cython may cimport from."""
    for package, names, whole in CIMPORT.findall(COMMENT.sub("", text)):
        folder = ROOT.joinpath(*(package or whole).split("."))
        yield folder.with_suffix(".pxd")
        for name in names.strip("()").split(","):
            if name.split():  # nothing follows the last comma in parentheses
                yield folder / f"{name.split()[0]}.pxd"


def extensions(found: dict[str, Found]) -> list[Extension]:
    """Return one Extension for each .pyx file of the package."""
    made = []
    for path in sorted((ROOT / "kafka_fast").rglob("_*.pyx")):
        relative = path.relative_to(ROOT)
        name = ".".join(relative.with_suffix("").parts)
        linked = linked_libraries(path)
        made.append(
            Extension(
                name,
                [str(relative)],
                include_dirs=["src_c"],
                libraries=linked,
                extra_compile_args=[*compile_args(), *GENERATED_WARNINGS, *ERRORS],
                extra_link_args=[
                    *(flag for library in linked if library in found for flag in found[library][2]),
                    *SANITIZE,
                    *([] if DEBUG else ["-Wl,--strip-all"]),
                ],
                depends=[str(header.relative_to(ROOT)) for header in (ROOT / "src_c").rglob("*.h")],
            )
        )
    return made


def compile_args() -> list[str]:
    """Return what all C is compiled with."""
    return [*COMPILE_ARGS, "-DKF_DEBUG" if DEBUG else "-g0", *SANITIZE]


@contextlib.contextmanager
def standard_error_in(file: IO[str]) -> Iterator[None]:
    """Have what this process and its children say on stderr written to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def translate(modules: list[Extension]) -> list[Extension]:
    """Let Cython make C of each .pyx; in a strict build what it warns of or hints at is an error.

    A hint is code that takes the GIL, or is slow. Cython has no option that makes an error of it.
    """
    before = {path: path.stat().st_mtime_ns for path in Path(TRANSLATED).rglob("*.c")}
    with tempfile.TemporaryFile("w+") as said:
        try:
            with standard_error_in(said):
                made: list[Extension] = cythonize(
                    modules,
                    compiler_directives=DIRECTIVES,
                    include_path=["."],
                    build_dir=TRANSLATED,
                    nthreads=JOBS,
                )
        finally:
            said.seek(0)
            text = said.read()
            sys.stderr.write(text)
    if STRICT and any(line.startswith(HINT) for line in text.splitlines()):
        for path in Path(TRANSLATED).rglob("*.c"):
            if before.get(path) != path.stat().st_mtime_ns:
                path.unlink()  # the next build is to hear of it again
        raise SystemExit("Cython's performance hints are errors in a strict build")
    return made


def note_options(folder: str, ext_modules: list[Extension]) -> str:
    """Write down all that decides what the compiler makes of the sources; return the file.

    It is written only when it changes, and everything that is compiled depends on it.
    """
    decided = {
        ext.name: [ext.libraries, ext.include_dirs, ext.extra_link_args] for ext in ext_modules
    }
    compiler = [*map(os.environ.get, ("CC", *FLAGS)), compile_args(), sys.version]
    text = json.dumps([decided, found_here, compiler], indent=1)
    path = Path(folder, "options.json")
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(path)


class BuildClib(build_clib):  # type: ignore[misc] # setuptools' commands are untyped
    """Compile our own C."""

    def build_libraries(self, libraries: list[tuple[str, dict[str, Any]]]) -> None:
        """Compile anew if the options have changed."""
        options = note_options(self.build_temp, self.distribution.ext_modules)
        for _, library in libraries:
            library["obj_deps"][""].append(options)
        super().build_libraries(libraries)

    def get_library_names(self) -> list[str]:
        """Name none: each extension says what it links, and no other is to have it."""
        return []


class BuildExt(build_ext):  # type: ignore[misc] # setuptools' commands are untyped
    """Compile our own C, translate, compile the generated C."""

    def finalize_options(self) -> None:
        """Compile several extensions at a time."""
        super().finalize_options()
        self.parallel: int | bool | None = self.parallel or JOBS

    def run(self) -> None:
        """Do what only a build needs, an sdist not."""
        tell_of_missing([macro for macros, _, _ in found_here.values() for macro in macros])
        self.run_command("build_clib")
        folder = self.get_finalized_command("build_clib").build_clib
        options = note_options(self.build_temp, self.extensions)
        sources = {ext.name: ext.sources for ext in translate(self.extensions)}
        for ext in self.extensions:
            ext.sources = sources[ext.name]
            ext.depends += [options, *(f"{folder}/lib{library}.a" for library in ext.libraries)]
        super().run()


def refuse_unsupported() -> None:
    """Say in one sentence where kafka_fast cannot be built, before a compiler says it in many."""
    if sys.platform != "linux":
        elsewhere = {
            "darwin": ": on macOS use it in a Linux container or virtual machine",
            "win32": ": on Windows use it inside the Windows Subsystem for Linux",
        }
        raise SystemExit(f"kafka_fast runs on Linux only{elsewhere.get(sys.platform, '')}")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise SystemExit(
            "kafka_fast does not support free-threaded Python yet: install it with a standard "
            "build of CPython 3.10 to 3.15"
        )


if __name__ == "__main__":  # Cython's workers import this file, too
    refuse_unsupported()
    runpy.run_path(str(ROOT / "src_c" / "make_messages"))["write_all"](ROOT)
    found_here = {"kf_codecs": find_codecs(), "kf_tls": find_openssl()}
    setup(
        long_description=description(),
        long_description_content_type="text/markdown",
        project_urls=project_urls(),
        install_requires=required_packages(),
        libraries=libraries(found_here),
        ext_modules=extensions(found_here),
        cmdclass={"build_clib": BuildClib, "build_ext": BuildExt},
    )
