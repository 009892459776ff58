"""`kafka-fast lag --watch`: looks again and again, until Ctrl-C.

On a terminal the table stays in one place of a screen of its own, and the last one is left behind
in the end. Elsewhere the tables, or JSON objects, come one below the other. A look that fails after
the first one does not end this: it is said, and the next one may succeed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from kafka_fast.cli.lag.figures import Figures, document_of, figures_of, note_of_uncommitted
from kafka_fast.cli.lag.looks import Look, look_at
from kafka_fast.cli.showing.progress import keeping_lines
from kafka_fast.cli.showing.standard_error import say
from kafka_fast.cli.showing.tables import printable
from kafka_fast.errors import KafkaError
from kafka_fast.times import iso_time

if TYPE_CHECKING:
    from kafka_fast import Admin

_LOOK_AT_SIZE = 0.1
"""Seconds between two looks at the size of the terminal."""

_TERMINATED = 143
_USUAL_SIZE = os.terminal_size((80, 24))
_OWN_SCREEN, _SCREEN_BEFORE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _END_OF_LINE, _END_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
_AROUND = 3
"""Lines of the screen beside the rows: title, head and total."""
_NOTES = 3
"""Most messages that are shown below the table."""


def watch(admin: Admin, args: argparse.Namespace) -> int:
    """Look until a signal ends this; return the exit status if the first look shows nothing.

    Raises:
        KafkaError: the first look fails.
    """
    if args.output == "text" and _is_screen():
        return _watch_on_screen(admin, args)
    first = look_at(admin, args.group, args.topic, args.reset)
    _say_what_is_missing(first)
    look: Look | None = first
    before: Look | None = None
    while True:
        if look is not None:
            _print_again(look, before, args.output)
            before = look
        time.sleep(args.every.total_seconds())
        look = _next_look(admin, args)


def _is_screen() -> bool:
    """Return whether standard output is a terminal that can put text in its place."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _next_look(admin: Admin, args: argparse.Namespace) -> Look | None:
    """Return a look; None: it has failed, which is said."""
    try:
        look = look_at(admin, args.group, args.topic, args.reset, rebalance_wait=0.0)
    except KafkaError as error:
        say(str(error))
        return None
    _say_what_is_missing(look)
    return look


def _say_what_is_missing(look: Look) -> None:
    for text in (*look.notes, *map(str, look.errors.values())):
        say(text)


def _print_again(look: Look, before: Look | None, form: str) -> None:
    if form == "json":
        print(json.dumps({"time_ms": look.time_ms, **document_of(look)}), flush=True)
        return
    lines = figures_of(look, before, has_change=True).lines()
    print(_time(look), *lines, "", sep="\n", flush=True)


# ---- on a terminal ----


def _watch_on_screen(admin: Admin, args: argparse.Namespace) -> NoReturn:
    before: Look | None = None
    look = look_at(admin, args.group, args.topic, args.reset)
    with keeping_lines() as messages, _restored_by_sigterm():
        _say_what_is_missing(look)
        sys.stdout.write(_OWN_SCREEN)
        try:
            while True:
                deadline = time.monotonic() + args.every.total_seconds()
                size = None
                while time.monotonic() < deadline:
                    if size != _size_of_screen():
                        size = _size_of_screen()
                        sys.stdout.write(_screen(look, before, size, messages, args))
                        sys.stdout.flush()
                    time.sleep(min(_LOOK_AT_SIZE, args.every.total_seconds()))
                messages.clear()
                new = _next_look(admin, args)
                if new is not None:
                    before, look = look, new
        finally:
            sys.stdout.write(_SCREEN_BEFORE)
            print("\n".join(figures_of(look).lines()))
            sys.stdout.flush()


def _size_of_screen() -> os.terminal_size:
    size = os.get_terminal_size(sys.stdout.fileno())
    return size if size.columns and size.lines else _USUAL_SIZE  # a terminal that does not tell


def _screen(
    look: Look,
    before: Look | None,
    size: os.terminal_size,
    messages: list[str],
    args: argparse.Namespace,
) -> str:
    """Return what draws a look: no line is wider than the terminal, and none too many."""
    name = "all groups" if args.group is None else f"group {args.group}"
    state = "" if look.is_of_all else f", {look.groups[0].state or '-'}"
    title = f"{name}{state}, {_time(look)}, every {args.every.total_seconds():g} s"
    notes = messages[-_NOTES:]
    uncommitted = "" if look.is_of_all else note_of_uncommitted(look)
    if uncommitted:
        notes.append(f"kafka-fast: {uncommitted}")
    room = max(1, size.lines - _AROUND - len(notes) - 1)
    figures = figures_of(look, before, has_change=True)
    shown, left_out = _most_behind(figures, room)
    head, *lines = shown.narrow_lines(size.columns)
    if left_out:
        lines.insert(len(lines) - 1, f"... and {left_out} more that are less behind")
    text = [printable(title), head, *lines, *map(printable, notes)]
    text = [line[: size.columns] for line in text[: size.lines]]
    text[1:2] = map(_bold, text[1:2])
    return _HOME + f"{_END_OF_LINE}\r\n".join(text) + _END_OF_LINE + _END_OF_SCREEN


def _most_behind(figures: Figures, room: int) -> tuple[Figures, int]:
    """Return the rows that have room, and how many have not; these are those least behind."""
    if len(figures.rows) <= room:
        return figures, 0
    places = sorted(range(len(figures.rows)), key=lambda place: -figures.lags[place])
    kept = sorted(places[: max(0, room - 1)])
    shown = Figures(
        figures.head,
        [figures.rows[place] for place in kept],
        figures.total,
        [figures.lags[place] for place in kept],
    )
    return shown, len(figures.rows) - len(kept)


def _time(look: Look) -> str:
    return iso_time(look.time_ms // 1000 * 1000)


def _bold(text: str) -> str:
    return text if os.environ.get("NO_COLOR") else f"{_BOLD}{text}{_PLAIN}"


@contextmanager
def _restored_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the process by an exception, so that the terminal is as it was."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(_TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
