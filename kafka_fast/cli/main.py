"""The entry of `kafka-fast`: parse the arguments, run the command, turn errors into a status."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Sequence

from kafka_fast.cli.commands import parse
from kafka_fast.cli.hints import hint
from kafka_fast.cli.records.points import joined_times
from kafka_fast.cli.showing.standard_error import say, showing_logs
from kafka_fast.errors import ConfigError, KafkaError, MissingPackageError, UsageError

OK = 0
FAILED = 1
"""Something was not done: records not delivered, no broker reached."""
MISUSED = 2
"""The arguments or the configuration are wrong; argparse's status too."""
INTERRUPTED = 130
"""Ctrl-C: 128 + SIGINT, as shells have it."""


NEW_OBJECTS = 10_000
"""How many make Python look for cycles: imports make many objects, and hardly any garbage."""


def run_process() -> int:
    """Run the command of this process, and return its exit status; the process must end then.

    Without the two changes to Python's collector, a short command would spend a sixth of its time
    on looking through what it has imported.
    """
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
    try:
        return main()
    finally:
        gc.freeze()  # nothing of this is garbage before the memory is the system's again


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        argv: the arguments after the program's name; None: those of the process.
    """
    arguments = joined_times(sys.argv[1:] if argv is None else argv)
    meant = hint(arguments)
    if meant is not None:
        say(meant)
        return MISUSED
    try:
        args = parse(arguments)
    except UsageError as error:
        return _fail(error, MISUSED)
    with showing_logs(args.verbose):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    """Run the command of the arguments and turn errors into a status."""
    run: Callable[[argparse.Namespace], int] = args.run
    try:
        try:
            status = run(args)
        except BrokenPipeError:
            raise
        except (KafkaError, OSError) as error:
            is_misuse = isinstance(error, (ConfigError, UsageError, MissingPackageError))
            status = _fail(error, MISUSED if is_misuse else FAILED)
            _show_failure(error, getattr(args, "output", None))
        if sys.stdout is not None:  # None if the parent process closed it
            sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader of our output has left (`kafka-fast config | head`). The interpreter's own
        # flush at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except OSError as error:  # standard output takes nothing any more: its disk is full
        return _fail(error, FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED


def _fail(error: BaseException, status: int) -> int:
    say(_sentence(error))
    return status


def _show_failure(error: Exception, form: str | None) -> None:
    """Give programs that asked for an object one with the error."""
    if form is not None and sys.stdout is not None:
        from kafka_fast.cli.showing.reports import show_failure

        show_failure(error, _sentence(error), form)


def _sentence(error: BaseException) -> str:
    """Return an error's text without the operating system's number, which helps nobody."""
    if isinstance(error, KafkaError) or not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
