"""`kafka-fast info`: what this installation is made of, for bug reports and for the curious."""

from __future__ import annotations

import argparse
import importlib.util
import platform
from collections.abc import Iterator

from kafka_fast import __version__

_OPTIONAL = ("numpy", "pyarrow", "pyspark", "tqdm", "lz4", "zstandard", "cramjam", "orjson")


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
    """Print one fact a line."""
    for name, value in facts():
        print(f"{name + ':':<12}{value}")
    return 0


def facts() -> Iterator[tuple[str, str]]:
    """Yield what `info` prints."""
    from kafka_fast._wire._checksum import paths
    from kafka_fast.record import codecs_available

    yield "kafka_fast", __version__
    yield "Python", f"{platform.python_implementation()} {platform.python_version()}"
    yield "platform", platform.platform()
    chosen, *others = paths()
    yield "crc32c", f"{chosen} (also here: {', '.join(others)})" if others else chosen
    yield (
        "codecs",
        ", ".join(
            f"{codec} ({by})" if by else f"{codec} (none)"
            for codec, by in codecs_available().items()
        ),
    )
    yield "optional", ", ".join(name for name in _OPTIONAL if _is_there(name)) or "none"


def _is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
