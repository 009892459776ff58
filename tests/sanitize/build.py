"""A copy of the checkout whose extensions are instrumented for one sanitizer.

    cache/address-<key>/      the extensions; the key is a hash of all that decides what they are
    build/sanitize/address/
      objects/  extensions/   of the compiler; a change compiles what it concerns
      tree/                   the checkout as it is, with the extensions of the cache
      reports/                of the last run

`KAFKA_FAST_SANITIZE_CACHE` names the cache (default `~/.cache/kafka-fast/sanitize`). What is in it
is not built again, by a clean checkout either.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from kafka_fast.record import codecs_available
from tests.sanitize.sanitizers import COMPILER, Sanitizer

__all__ = ["ROOT", "make_tree", "work_folder"]

ROOT = Path(__file__).parents[2]
KEPT = 3
"""Builds of each sanitizer that stay in the cache."""

LEFT_OUT = shutil.ignore_patterns(
    "*.so", "build", "dist", "wheelhouse", ".*", "__pycache__", "*.egg-info"
)


def work_folder(sanitizer: Sanitizer) -> Path:
    """Return the folder of everything that belongs to one sanitizer."""
    return ROOT / "build" / "sanitize" / sanitizer.name


def sources() -> list[Path]:
    """Return the files that the extensions are made of."""
    package = [path for end in ("pyx", "pxd") for path in (ROOT / "kafka_fast").rglob(f"*.{end}")]
    ours = [path for end in ("c", "h") for path in (ROOT / "src_c").glob(f"*.{end}")]
    return [ROOT / "setup.py", *sorted(package), *sorted(ours)]


def key_of(sanitizer: Sanitizer) -> str:
    """Return a hash of the sources, the flags and the tools."""
    compiler = subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=True)
    flags = [os.environ.get(name) for name in ("CFLAGS", "CPPFLAGS", "LDFLAGS")]
    tools = [compiler.stdout, sys.version, version("Cython"), codecs_available()]
    key = hashlib.sha256(json.dumps([sanitizer.flags, flags, tools]).encode())
    for path in sources():
        data = path.read_bytes()
        key.update(f"{path.relative_to(ROOT)} {len(data)}\n".encode() + data)
    return key.hexdigest()[:16]


def compiled(sanitizer: Sanitizer) -> list[Path]:
    """Have setup.py build what has changed; return the extensions."""
    folder = work_folder(sanitizer)
    objects, built = folder / "objects", folder / "extensions"
    static = ["build_clib", "--build-clib", str(objects), "--build-temp", str(objects)]
    shared = ["build_ext", "--build-lib", str(built), "--build-temp", str(objects)]
    # Not strict: instrumented code makes the compiler see what is not there.
    env = {
        **os.environ,
        "CC": COMPILER,
        "KAFKA_FAST_SANITIZE": " ".join(sanitizer.flags),
        "KAFKA_FAST_STRICT": "0",
    }
    subprocess.run(
        [sys.executable, "setup.py", "-q", *static, *shared], cwd=ROOT, env=env, check=True
    )
    paths = []
    for source in sorted((ROOT / "kafka_fast").rglob("_*.pyx")):
        (path,) = (built / source.relative_to(ROOT).parent).glob(f"{source.stem}.*.so")
        if sanitizer.symbol.encode() not in path.read_bytes():
            raise AssertionError(f"{path} is not instrumented: it has no {sanitizer.symbol}")
        paths.append(path)
    return paths


def cached(sanitizer: Sanitizer) -> Path:
    """Return the folder of the cache with the extensions of this checkout; build what lacks."""
    home = os.environ.get("KAFKA_FAST_SANITIZE_CACHE", "~/.cache/kafka-fast/sanitize")
    cache = Path(home).expanduser()
    entry = cache / f"{sanitizer.name}-{key_of(sanitizer)}"
    if entry.exists():
        os.utime(entry)
        return entry
    built = work_folder(sanitizer) / "extensions"
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".") as name:
        fresh = Path(name) / entry.name
        for path in compiled(sanitizer):
            copy = fresh / path.relative_to(built)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)
        fresh.rename(entry)  # it appears whole
    old = sorted(cache.glob(f"{sanitizer.name}-*"), key=lambda path: path.stat().st_mtime)
    for path in old[:-KEPT]:
        shutil.rmtree(path)
    return entry


def make_tree(sanitizer: Sanitizer) -> Path:
    """Return a fresh copy of the checkout with instrumented extensions."""
    extensions = cached(sanitizer)
    tree = work_folder(sanitizer) / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
    shutil.copytree(extensions, tree, dirs_exist_ok=True)
    return tree
