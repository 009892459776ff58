"""The entry of `kafka-fast`: parse the arguments, run the command, turn errors into a status."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Callable, Sequence

from kafka_fast import __version__
from kafka_fast.cli import broker, check, config, consume, info, lag, produce, topics
from kafka_fast.cli.points import joined_times
from kafka_fast.cli.standard_error import say, showing_logs
from kafka_fast.errors import ConfigError, KafkaError, MissingPackageError, UsageError

OK = 0
FAILED = 1
"""Something was not done: records not delivered, no broker reached."""
MISUSED = 2
"""The arguments or the configuration are wrong; argparse's status too."""
INTERRUPTED = 130
"""Ctrl-C: 128 + SIGINT, as shells have it."""

STATUSES = """kafka-fast COMMAND --help tells of its options, with examples.

exit status:
  0    all was done
  1    something was not: records not delivered, no broker reached, a file missing
  2    the arguments or the configuration are wrong
  130  Ctrl-C (143: SIGTERM)
"""

WIDTH = 78


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        argv: the arguments after the program's name; None: those of the process.
    """
    args = _parser().parse_args(joined_times(sys.argv[1:] if argv is None else argv))
    with showing_logs(args.verbose):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    """Run the command of the arguments and turn errors into a status."""
    run: Callable[[argparse.Namespace], int] = args.run
    try:
        status = run(args)
        if sys.stdout is not None:  # None if the parent process closed it
            sys.stdout.flush()
        return status
    except (ConfigError, UsageError, MissingPackageError) as error:
        return _fail(error, MISUSED)
    except BrokenPipeError:
        # The reader of our output has left (`kafka-fast config | head`). The interpreter's own
        # flush at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (KafkaError, OSError) as error:
        return _fail(error, FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED


def _fail(error: BaseException, status: int) -> int:
    say(_sentence(error))
    return status


def _sentence(error: BaseException) -> str:
    """Return an error's text without the operating system's number, which helps nobody."""
    if isinstance(error, KafkaError) or not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-fast",
        description="An Apache Kafka client on the command line.",
        epilog=STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"kafka-fast {__version__}")
    _add_verbose(parser, default=0)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (produce, consume, topics, lag, check, broker, config, info):
        module.add_parser(commands)
    for command in commands.choices.values():
        _add_verbose(command, default=argparse.SUPPRESS)  # keeps a -v before the command
        if command.epilog:  # the epilog has examples, whose lines must not be wrapped
            command.formatter_class = argparse.RawDescriptionHelpFormatter
            command.description = textwrap.fill(command.description or "", WIDTH)
    return parser


def _add_verbose(parser: argparse.ArgumentParser, default: object) -> None:
    parser.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=default,
        help="log what the client does to standard error; twice: everything",
    )
