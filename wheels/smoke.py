"""What an installed wheel must be able to do with nothing installed beside what it requires.

Run by an interpreter that has kafka_fast and these packages only, outside the checkout: every
module can be imported, `info` prints, a record batch survives each codec, and all of it is small.
With `--all-codecs`, as for a wheel that others install, all of them must have been compiled in, and
the wheel must require no package.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
import subprocess
import sys
from pathlib import Path

import kafka_fast
from kafka_fast.record import Codec, RecordBatchBuilder, codecs_available, read_batches

INSTALLED_SIZE_MAX = 18_000_000
"""Bytes on disk, with the libraries that came along."""

# Edges whose optional package (pyspark, pytest, numpy) is not there in a clean environment.
OPTIONAL = ("kafka_fast.spark", "kafka_fast.testing.plugin")


def import_all() -> int:
    """Import every module of the package; return how many there are."""
    count = 0
    for module in pkgutil.walk_packages(kafka_fast.__path__, "kafka_fast."):
        if module.name.endswith("__main__") or module.name.startswith(OPTIONAL):
            continue
        importlib.import_module(module.name)
        count += 1
    return count


def installed_size(package: Path) -> int:
    """Return how many bytes the package's files and its libraries have, as the wheel brings them.

    The interpreter's bytecode beside them is not counted: whether it is there is the installer's
    choice.
    """
    folders = [package, package.with_name("kafka_fast.libs")]
    files = (file for folder in folders for file in folder.rglob("*") if file.is_file())
    return sum(file.stat().st_size for file in files if file.suffix != ".pyc")


def round_trip(codec: Codec) -> None:
    """Encode a batch of a thousand records with `codec` and read it back."""
    values = [b"value %d" % i for i in range(1000)]
    builder = RecordBatchBuilder(codec=codec)
    for value in values:
        builder.append(b"key", value, 1_700_000_000_000, [("header", b"h")])
    (batch,) = read_batches(builder.build()).batches
    if [record.value for record in batch.records()] != values:
        raise SystemExit(f"a batch did not survive {codec.name}")


def required() -> list[str]:
    """Return the packages that pip installs with kafka_fast, whoever asks for it."""
    named = importlib.metadata.requires("kafka_fast") or []
    return [package for package in named if "extra ==" not in package]


def missing_tls(info: str) -> bool:
    """Return whether the wheel has no OpenSSL of its own, by what `info` prints."""
    return not any(line.startswith("TLS:") and "native" in line for line in info.splitlines())


def main() -> int:
    """Run the smoke test; return the exit status."""
    installed = Path(kafka_fast.__file__)
    if "site-packages" not in installed.parts:
        raise SystemExit(f"this is the checkout, not the wheel: {installed}")
    modules = import_all()
    info = subprocess.run(
        [sys.executable, "-I", "-m", "kafka_fast", "info"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    print(info.strip())
    available = codecs_available()
    missing = [name for name, server in available.items() if server != "native"]
    if missing and "--all-codecs" in sys.argv[1:]:
        raise SystemExit(f"not compiled in: {', '.join(missing)}")
    if missing_tls(info) and "--all-codecs" in sys.argv[1:]:
        raise SystemExit("TLS is not compiled in")
    if required() and not missing:
        raise SystemExit(f"all codecs are compiled in, and yet it requires {required()}")
    codecs = [Codec[name.upper()] for name in available]
    for codec in [Codec.NONE, *codecs]:
        round_trip(codec)
    size = installed_size(installed.parent)
    if size > INSTALLED_SIZE_MAX:
        raise SystemExit(f"{size:,} bytes installed, more than {INSTALLED_SIZE_MAX:,}")
    print(f"smoke: {modules} modules, all codecs, {size:,} bytes installed: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
