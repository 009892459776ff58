"""Build the extensions: every `kafka_fast/**/_*.pyx` is one, its C sources are listed below.

`KAFKA_FAST_NATIVE_CODECS=0` builds without the compression libraries (the fallback build).
`KAFKA_FAST_SANITIZE=address,undefined` builds the extensions for a sanitizer run.
`KAFKA_FAST_BUILD_JOBS=n` runs n compilers at a time (default 2).
A build with other options than the last one in the same folder starts from scratch; a changed
header rebuilds what may include it.
Warnings are errors: in our own C with -Wconversion, in the code that Cython generates without the
classes of warning that its output always has (named where they are switched off).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
from pathlib import Path
from typing import Any

from Cython.Compiler import Errors, Options


def fail_on_hint(position: Any, message: str, env: Any) -> None:
    """Make an error of what Cython only hints at: code that takes the GIL, or that is slow."""
    if env.directives["show_performance_hints"]:
        Errors.error(position, f"performance hint: {message}")


# Before the compiler's other modules take the function by name.
Errors.performance_hint = fail_on_hint
Options.warning_errors = True
Options.fast_fail = True

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
JOBS = int(os.environ.get("KAFKA_FAST_BUILD_JOBS", "2"))

# Extension module -> sources in src_c/ that it links. State that must exist once (the chosen CRC
# path, for example) is linked by one extension, and the others cimport it from there.
# The planes' shared state is functions over structs and holds nothing of its own, so each extension
# that uses it links it.
PLANE_SOURCES = [
    "kf_pool.c",
    "kf_event.c",
    "kf_plane.c",
    "kf_batch.c",
    "kf_queue.c",
    "kf_split.c",
    "kf_link.c",
    "kf_frame.c",
    "kf_fetch.c",
]
PLANE_MODULES = [
    "dataplane._chunk",
    "dataplane._reading",
    "dataplane._lists",
    "dataplane._produce",
    "dataplane._outcomes",
    "dataplane._links",
    "dataplane._drain",
    "dataplane._fetch_request",
    "dataplane._fetch_answer",
    "dataplane._fetcher",
    "dataplane._repeats",
    "dataplane._fetch_commands",
    "dataplane._streams",
    "dataplane._commands",
    "dataplane._sender",
    "dataplane._plane",
    "dataplane._delivery",
    "dataplane._observers",
    "dataplane._partitioner",
    "dataplane._accumulator",
    "dataplane._batch_future",
    "dataplane._bulk",
    "dataplane._job",
    "net._pump",
    "net._compressor",
    "testing._memory",
]

C_SOURCES: dict[str, list[str]] = {
    "kafka_fast._wire._checksum": ["kf_crc32c.c"],
    "kafka_fast.record._compress": [
        "kf_compress.c",
        "kf_gzip.c",
        "kf_snappy.c",
        "kf_lz4.c",
        "kf_zstd.c",
    ],
    "kafka_fast.record._arrow_columns": ["kf_arrow_build.c"],
    "kafka_fast.record._arrow_export": ["kf_arrow_build.c"],
    **{f"kafka_fast.{module}": PLANE_SOURCES for module in PLANE_MODULES},
}

# Macro that says the library is there -> pkg-config name, header, linker name. Used by
# record/_compress only. zlib serves gzip where libdeflate, which is faster, is missing.
CODEC_LIBRARIES = {
    "KF_HAVE_LZ4": ("liblz4", "lz4frame.h", "lz4"),
    "KF_HAVE_ZSTD": ("libzstd", "zstd.h", "zstd"),
    "KF_HAVE_SNAPPY": ("snappy", "snappy-c.h", "snappy"),
    "KF_HAVE_LIBDEFLATE": ("libdeflate", "libdeflate.h", "deflate"),
    "KF_HAVE_ZLIB": ("zlib", "zlib.h", "z"),
}
CODEC_MODULE = "kafka_fast.record._compress"

OUR_WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]
# Generated code: Cython emits unused helpers, implicit narrowing and unused parameters by design.
GENERATED_WARNINGS = ["-Wall", "-Werror", "-Wno-unused-function", "-Wno-unused-variable"]

COMPILE_ARGS = ["-std=gnu11", "-O3", "-fvisibility=hidden", "-fno-strict-overflow"]

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


def pkg_config(*args: str) -> list[str] | None:
    """Return what pkg-config prints, split, or None if it knows nothing of the library."""
    if shutil.which("pkg-config") is None:
        return None
    run = subprocess.run(["pkg-config", *args], capture_output=True, text=True, check=False)
    return run.stdout.split() if run.returncode == 0 else None


def compiles(header: str, library: str) -> bool:
    """Return whether the compiler finds the header and the library without being told where."""
    compiler = os.environ.get("CC", "cc").split()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text(
            f"#include <stddef.h>\n#include <{header}>\nint main(void) {{return 0;}}\n"
        )
        run = subprocess.run(
            [*compiler, str(source), f"-l{library}", "-o", str(Path(folder, "probe"))],
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


def codec_options() -> dict[str, list[Any]]:
    """Return Extension keywords for the compression libraries found on this machine."""
    options: dict[str, list[Any]] = {"define_macros": [], "extra_link_args": [], "include_dirs": []}
    if os.environ.get("KAFKA_FAST_NATIVE_CODECS", "1") == "0":
        return options
    for macro, names in CODEC_LIBRARIES.items():
        if macro == "KF_HAVE_ZLIB" and ("KF_HAVE_LIBDEFLATE", "1") in options["define_macros"]:
            continue
        found = find_library(*names)
        if found is None:
            continue
        options["define_macros"].append((macro, "1"))
        options["include_dirs"] += found[0]
        options["extra_link_args"] += found[1]
    return options


def extensions() -> list[Extension]:
    """Return one Extension for each .pyx file of the package."""
    sanitize = os.environ.get("KAFKA_FAST_SANITIZE", "")
    extra = [f"-fsanitize={sanitize}", "-g", "-fno-omit-frame-pointer"] if sanitize else []
    headers = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "src_c").rglob("*.h"))]
    found = []
    for path in sorted((ROOT / "kafka_fast").rglob("_*.pyx")):
        relative = path.relative_to(ROOT)
        name = ".".join(relative.with_suffix("").parts)
        options = codec_options() if name == CODEC_MODULE else {}
        options.setdefault("include_dirs", []).append("src_c")
        options.setdefault("extra_link_args", []).extend(extra)
        found.append(
            Extension(
                name,
                [str(relative), *(f"src_c/{source}" for source in C_SOURCES.get(name, []))],
                extra_compile_args=[*COMPILE_ARGS, *extra],
                depends=headers,
                **options,
            )
        )
    return found


class BuildExt(build_ext):  # type: ignore[misc] # setuptools' commands are untyped
    """Compile our own C with all warnings, generated C with those that mean something there."""

    def finalize_options(self) -> None:
        """Compile several extensions at a time; start afresh if the options have changed."""
        super().finalize_options()
        self.parallel: int | bool | None = self.parallel or JOBS
        self._used = Path(self.build_temp) / ("inplace.json" if self.inplace else "options.json")
        if not self._used.exists() or self._used.read_text() != self._options():
            self.force = True

    def build_extensions(self) -> None:
        """Let each source be compiled with the warnings that fit it, then build as usual."""
        compile_one = self.compiler._compile
        locks: dict[str, threading.Lock] = {}
        compiled: dict[str, list[str]] = {}

        def compile_with_warnings(
            obj: str,
            src: str,
            suffix: str,
            cc_args: list[str],
            extra: list[str],
            pp_opts: list[str],
        ) -> None:
            ours = Path(src).parts[:1] == ("src_c",)
            warnings = OUR_WARNINGS if ours else GENERATED_WARNINGS
            # Extensions that are built at the same time share sources, and so object files.
            with locks.setdefault(obj, threading.Lock()):
                options = [*cc_args, *extra, *pp_opts]
                if compiled.get(obj) != options:
                    compile_one(obj, src, suffix, cc_args, [*extra, *warnings], pp_opts)
                    compiled[obj] = options

        self.compiler._compile = compile_with_warnings
        try:
            super().build_extensions()
        finally:
            self.compiler._compile = compile_one
        self._used.parent.mkdir(parents=True, exist_ok=True)
        self._used.write_text(self._options())

    def _options(self) -> str:
        """Return, as text, everything but the sources that decides what the compiler makes."""
        decided = {
            ext.name: [
                ext.sources,
                ext.define_macros,
                ext.include_dirs,
                ext.extra_compile_args,
                ext.extra_link_args,
            ]
            for ext in self.extensions
        }
        flags = [OUR_WARNINGS, GENERATED_WARNINGS, os.environ.get("CFLAGS"), os.environ.get("CC")]
        return json.dumps([decided, flags, sys.version], indent=1)


def refuse_unsupported() -> None:
    """Say in one sentence where kafka_fast cannot be built, before a compiler says it in many."""
    if sys.platform == "win32":
        raise SystemExit(
            "kafka_fast runs on Linux only; on Windows use it inside the Windows Subsystem for "
            "Linux."
        )
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise SystemExit(
            "kafka_fast does not support free-threaded Python yet: install it with a standard "
            "build of CPython 3.10 to 3.13."
        )


refuse_unsupported()
setup(
    ext_modules=cythonize(
        extensions(),
        compiler_directives=DIRECTIVES,
        include_path=["."],
        build_dir="build/cython",
        nthreads=JOBS,
    ),
    cmdclass={"build_ext": BuildExt},
)
