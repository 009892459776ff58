"""What users of kcat type, and what does the same here."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

MODES = {"-C": "consume", "-P": "produce", "-L": "topics describe", "-Q": "topics offsets"}
"""Mode of kcat -> command; -G, a group's member, is `consume`, too."""

_WITH_VALUE = frozenset("bcdDfFGHkKoprstXz")
"""Letters of options that have a value, which may stand right behind the letter."""

_CONSUMES = frozenset("cefGJou")
"""Letters of options that only a consumer has, so that -C may be left out."""

_NOT_OURS = {
    "consume": frozenset("CPLQtoefcJKGuDZkslz"),
    "produce": frozenset("CPLQtkDZlzoeJcsG"),
}
"""Command -> letters of kcat that its own options do not have."""

_PLAIN = re.compile(r"[\w.,:\-\[\]@=/]+")
_OFFSETS = {"beginning": "--from beginning", "end": "--from end", "stored": "--group GROUP"}
_PACKED = {"s": "string", "i": "integer", "q": "long"}
_MAY_BE_SECRET = re.compile(r"pass|secret|token|jaas|\bkey\b|credential", re.IGNORECASE)
"""In the name of a property whose value is not said again: it may be a password."""

_IN_A_FILE = "--config FILE"
_SAME = {"b": "-b", "p": "-p", "X": "-X", "c": "-n", "F": "--config"}


def command_of(arguments: Sequence[str]) -> str | None:
    """Return our command for the arguments of kcat; None: they name no mode."""
    options = [*_options(arguments)]
    letters = {letter for letter, _ in options}
    mode = next((MODES[f"-{letter}"] for letter, _ in options if f"-{letter}" in MODES), None)
    if mode is None:
        if not letters & _CONSUMES:
            return None
        mode = "consume"
    return " ".join([mode, *_translated(mode, options)])


def is_kcat(arguments: Sequence[str]) -> bool:
    """Return whether these, which name no command, begin as kcat's do."""
    return bool(arguments) and any(arguments[0] == f"-{letter}" for letter in "CPLQGbtofecJKpuX")


def kcat_options(command: str, arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return what options of kcat stand behind a command of ours, and what to use for them."""
    foreign = _NOT_OURS.get(command, frozenset())
    options = [(letter, value) for letter, value in _options(arguments) if letter in foreign]
    names = list(dict.fromkeys(f"-{letter}" for letter, _ in options))
    return names, _translated(command, options)


def _options(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the letters of options with their values; a letter that is empty: another argument."""
    rest = iter(arguments)
    for text in rest:
        if not re.fullmatch(r"-[A-Za-z].*", text, re.DOTALL):
            yield "", text
            continue
        letter, value = text[1], text[2:]
        if letter in _WITH_VALUE:
            yield letter, value.removeprefix("=") if value else next(rest, "")
            continue
        yield letter, ""
        for more in value:  # -Ce is -C -e
            yield more, ""


def _translated(command: str, options: Sequence[tuple[str, str]]) -> list[str]:
    """Return what stands behind the command."""
    words: list[str] = []
    names: list[str] = []  # of topics; last, as options of argparse may take several values
    from_tail = any(letter == "o" and value.startswith("-") for letter, value in options)
    for letter, value in options:
        if letter == "" and command == "produce":
            words += _if_plain("-f ", value)
        elif letter in ("t", ""):
            names += _of_topic(command, value)
        elif letter == "X" and _MAY_BE_SECRET.search(value.partition("=")[0]):
            words += [] if _IN_A_FILE in words else [_IN_A_FILE]
        elif letter in _SAME and (letter != "c" or command == "consume"):
            words += _if_plain(f"{_SAME[letter]} ", value)
        elif letter == "G":
            words += _if_plain("-g ", value)
        elif letter == "J":
            words.append("-o json" if command.startswith("topics") else "-F json")
        elif command == "consume":
            words += _of_consumer(letter, value, from_tail=from_tail)
        elif command == "produce":
            words += _of_producer(letter, value)
    return [*words, *names]


def _of_topic(command: str, value: str) -> list[str]:
    if command == "topics offsets":  # TOPIC:PARTITION:TIMESTAMP
        topic, _, place = value.partition(":")
        partition, _, time = place.partition(":")
        if partition.isdigit() and time.isdigit():
            return [*_if_plain("", topic), f"--partition {partition} --at @{time}"]
    return _if_plain("", value)


def _of_consumer(letter: str, value: str, *, from_tail: bool) -> list[str]:
    if letter == "o":
        return _of_offset(value)
    if letter == "e":
        return [] if from_tail else ["--until end"]
    if letter == "f":
        return [f"-F {shlex.quote(value.replace('%s', '%v'))}"]
    if letter == "K":
        return [f"-F {shlex.quote(f'%k{value}%v' + chr(92) + 'n')}"]
    if letter == "D":
        return [f"-F {shlex.quote(f'%v{value}')}"]
    if letter == "s":
        return _of_kind(value)
    return []


def _of_offset(value: str) -> list[str]:
    if value in _OFFSETS:
        return [_OFFSETS[value]]
    if re.fullmatch(r"-[0-9]+", value):
        return [f"--tail {value[1:]}"]
    if re.fullmatch(r"[0-9]+", value):
        return [f"--from {value}"]
    if re.fullmatch(r"[se]@[0-9]+", value):
        return [f"{'--from' if value[0] == 's' else '--until'} {value[1:]}"]
    return ["--from POINT"]


def _of_kind(value: str) -> list[str]:
    """Return what -s says of keys, values, or both."""
    which, equals, kind = value.rpartition("=")
    name = _PACKED.get(kind.lstrip(">"))
    if name is None:
        return []
    return [f"--{part}-as {name}" for part in ([which] if equals else ["key", "value"])]


def _of_producer(letter: str, value: str) -> list[str]:
    if letter == "K":
        return [f"-K {shlex.quote(value)}"]
    if letter == "Z":
        return ["--null ''"]
    if letter == "z":
        return _if_plain("-X compression.type=", value)
    if letter == "H":
        return [f"-H {shlex.quote(value)}"]
    return []


def _if_plain(before: str, value: str) -> list[str]:
    """Return a value with what stands before it, unless it would need quotes."""
    return [f"{before}{value}"] if _PLAIN.fullmatch(value) and not value.startswith("-") else []
