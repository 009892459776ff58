"""`kafka-fast info`: versions, codecs and packages of this installation, for bug reports."""

from __future__ import annotations

import argparse
import importlib.util
import platform
from collections.abc import Iterator

from kafka_fast import __version__

#: Debian's package with a codec's headers for the build, by codec.
_HEADERS = {
    "gzip": "libdeflate-dev",
    "snappy": "libsnappy-dev",
    "lz4": "liblz4-dev",
    "zstd": "libzstd-dev",
}
_OPTIONAL = (
    "numpy",
    "pyarrow",
    "pyspark",
    "tqdm",
    "rich",
    "yaml",
    "shtab",
    "lz4",
    "zstandard",
    "cramjam",
    "orjson",
)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "info",
        help="print version, CPU paths and codecs",
        description="Print version, interpreter, CPU paths, codecs and optional packages: put it "
        "into bug reports.",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print one fact per line."""
    for name, value in facts():
        print(f"{name + ':':<12}{value}")
    return 0


def facts() -> Iterator[tuple[str, str]]:
    """Yield the names and values that `info` prints."""
    from kafka_fast._wire._checksum import paths
    from kafka_fast.record import codecs_available

    yield "kafka_fast", __version__
    yield "Python", f"{platform.python_implementation()} {platform.python_version()}"
    yield "platform", platform.platform()
    chosen, *others = paths()
    codecs = codecs_available()
    yield "crc32c", f"{chosen} (also here: {', '.join(others)})" if others else chosen
    yield "codecs", ", ".join(f"{codec} ({by or 'none'})" for codec, by in codecs.items())
    yield "TLS", _tls()
    slow = [codec for codec, by in codecs.items() if by != "native"]
    if slow:
        headers = " ".join(_HEADERS[codec] for codec in slow)
        install = f"install the headers (Debian: apt-get install {headers})"
        yield "slow", f"{', '.join(slow)}: this build found no C library for it"
        yield "to mend it", f"{install}; pip install --no-cache-dir --force-reinstall builds again"
    yield "optional", ", ".join(name for name in _OPTIONAL if _is_there(name)) or "none"


def _tls() -> str:
    from kafka_fast.net.tls.serving import serving  # loads OpenSSL

    return serving()


def _is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
