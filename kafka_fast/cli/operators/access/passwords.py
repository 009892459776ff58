"""Secrets that commands read: from a file, from the keyboard, or from a pipe; never an argument."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path

from kafka_fast.errors import UsageError
from kafka_fast.secret import Secret

STDIN = "-"


def read_secret(file: str | None, what: str, *, is_new: bool = False) -> Secret:
    """Return the first line of a file, what the user types, or the first line of a pipe.

    Args:
        file: its name; "-": standard input; None: whoever or whatever is there.
        what: the secret in words, for the question and for errors.
        is_new: whether it must be typed twice, because nobody can see what was typed.

    Raises:
        OSError: the file cannot be read.
        UsageError: it is empty, or the two differ.
    """
    if file is not None and file != STDIN:
        text = _first_line(file, what)
    elif file is None and sys.stdin is not None and sys.stdin.isatty():
        try:
            text = getpass.getpass(f"{what}: ")
            again = getpass.getpass(f"{what} again: ") if is_new else text
        except EOFError:
            raise UsageError(f"no {what} was typed: nothing was changed") from None
        if text != again:
            raise UsageError("the two differ: nothing was changed")
    else:
        line = "" if sys.stdin is None else sys.stdin.readline()
        text = line.removesuffix("\n").removesuffix("\r")
    if not text:
        raise UsageError(f"the {what} is empty")
    return Secret(text)


def _first_line(file: str, what: str) -> str:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError:  # its text would show a part of the secret
        raise UsageError(f"the {what} in {file} is no text in UTF-8") from None
    return text.partition("\n")[0].removesuffix("\r")
