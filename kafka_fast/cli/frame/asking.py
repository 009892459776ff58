"""Questions before what cannot be undone: on a terminal they are asked, elsewhere --yes answers."""

from __future__ import annotations

import argparse
import sys

from kafka_fast.cli.showing.standard_error import is_terminal, say
from kafka_fast.cli.showing.tables import ReportTable, print_text, printable
from kafka_fast.errors import UsageError


def add_yes(parser: argparse.ArgumentParser) -> None:
    """Add the option to a command that asks."""
    parser.add_argument(
        "-y", "--yes", action="store_true", help="do not ask; needed where there is no terminal"
    )


def check_can_ask(args: argparse.Namespace) -> None:
    """Refuse to go on if somebody must be asked, and nobody can be.

    Raises:
        UsageError: standard input or standard error is no terminal, and --yes is not given.
    """
    if args.yes or args.dry_run:
        return
    if sys.stdin is None or not sys.stdin.isatty() or not is_terminal():
        raise UsageError("this cannot be undone, and there is no terminal to ask on: give --yes")


def is_confirmed(args: argparse.Namespace, question: str, plan: ReportTable | None = None) -> bool:
    """Return whether the user wants it: by --yes, or by the answer to the question.

    Args:
        args: of the command, whose terminal was checked by `check_can_ask`.
        question: names what is lost.
        plan: shown above the question.
    """
    if args.yes:
        return True
    if plan is not None:
        print_text(plan, sys.stderr)
    sys.stderr.write(f"kafka-fast: {printable(question)} [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):  # Ctrl-D: the cursor is still behind the question
        sys.stderr.write("\n")
    if answer.strip().lower() in ("y", "yes"):
        return True
    say("nothing was changed")
    return False
