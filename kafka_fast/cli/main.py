"""The entry of `kafka-fast`: parse the arguments, run the command, turn errors into a status."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TextIO

from kafka_fast import __version__
from kafka_fast.cli import broker, config, consume, info, lag, produce
from kafka_fast.errors import ConfigError, KafkaError, UsageError

OK = 0
FAILED = 1
"""Something was not done: records not delivered, no broker reached."""
MISUSED = 2
"""The arguments or the configuration are wrong; argparse's status too."""
INTERRUPTED = 130
"""Ctrl-C: 128 + SIGINT, as shells have it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        argv: the arguments after the program's name; by default those of the process.
    """
    args = _parser().parse_args(argv)
    if args.verbose:
        logging.basicConfig(
            level=logging.DEBUG if args.verbose > 1 else logging.INFO,
            format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        )
    run: Callable[[argparse.Namespace], int] = args.run
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            status = run(args)
        if sys.stdout is not None:  # closed by who started this
            sys.stdout.flush()
        return status
    except (ConfigError, UsageError) as error:
        return _fail(error, MISUSED)
    except BrokenPipeError:
        # The reader of our output left (`kafka-fast config | head`); the interpreter's own flush
        # at exit must not trip over it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (KafkaError, OSError) as error:
        return _fail(error, FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Say what the user can do something about, without the line of our code."""
    print(f"kafka-fast: {message}", file=sys.stderr)


def _fail(error: BaseException, status: int) -> int:
    print(f"kafka-fast: {error}", file=sys.stderr)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-fast", description="An Apache Kafka client on the command line."
    )
    parser.add_argument("--version", action="version", version=f"kafka-fast {__version__}")
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="log to stderr; twice: everything"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (produce, consume, lag, broker, config, info):
        module.add_parser(commands)
    return parser
