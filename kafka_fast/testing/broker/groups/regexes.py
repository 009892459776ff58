r"""Subscriptions by regular expression: RE2's syntax on Python's engine.

Kafka's coordinator uses RE2, which has no look-around and no back-references. Whatever RE2 refuses
is refused here; of what it has and Python has not (`\pN`, `[[:alpha:]]`, flags in the middle)
only `\z` and `\Q...\E` are translated, the rest is refused as well.
"""

from __future__ import annotations

import re

from kafka_fast.errors import BrokerError, InvalidRegularExpression

_MOST_REPEATS = 1000
_FLAGS = frozenset("ims-")
_GROUP = re.compile(r"\(\?(?:(?P<name>P<)|(?P<flags>[a-zA-Z-]*)(?P<end>[:)]))")
_REPEAT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)


def compile_re2(pattern: str) -> re.Pattern[str]:
    """Return a pattern for `fullmatch`.

    Raises:
        InvalidRegularExpression: RE2 would not take it, or it cannot be told in Python's syntax.
    """
    text = _QUOTED.sub(lambda quoted: re.escape(quoted[1]), pattern)
    translated = []
    pos = 0
    repeated = False  # the last thing read was a repetition
    while pos < len(text):
        size, piece = _piece(pattern, text, pos)
        is_repeat = text[pos] in "*+?" or (text[pos] == "{" and size > 1)
        if is_repeat and repeated and piece != "?":
            raise _invalid(pattern, f"nested repetition at {pos}")
        repeated = is_repeat and not (repeated and piece == "?")
        translated.append(piece)
        pos += size
    try:
        return re.compile("".join(translated))
    except (re.error, OverflowError, RecursionError) as error:
        raise _invalid(pattern, str(error)) from error


def _piece(pattern: str, text: str, pos: int) -> tuple[int, str]:
    """Return how many characters belong together at `pos`, and what they are in Python."""
    char = text[pos]
    if char == "\\":
        return _escape(pattern, text, pos)
    if char == "[":
        return _character_class(pattern, text, pos)
    if text.startswith("(?", pos):
        match = _GROUP.match(text, pos)
        if match is None or not _FLAGS.issuperset(match["flags"] or ""):
            raise _invalid(pattern, f"group syntax at {pos}")
        if match["end"] == ")" and pos > 0:
            raise _invalid(pattern, f"flags at {pos}: Python has them in front")
        return match.end() - pos, match[0]
    if char == "{":
        match = _REPEAT.match(text, pos)
        if match is None:
            return 1, "\\{"
        if any(int(count) > _MOST_REPEATS for count in match.groups() if count):
            raise _invalid(pattern, f"more than {_MOST_REPEATS} repetitions")
        return match.end() - pos, match[0]
    return 1, char


def _escape(pattern: str, text: str, pos: int) -> tuple[int, str]:
    following = text[pos + 1 : pos + 2]
    if following == "z":
        return 2, r"\Z"
    if not following or following in "123456789ZNuUg" or following in "pPCXkEQ":
        raise _invalid(pattern, f"escape \\{following} at {pos}")
    return 2, text[pos : pos + 2]


def _character_class(pattern: str, text: str, pos: int) -> tuple[int, str]:
    """Take a whole class: what is special elsewhere is not in it."""
    end = pos + 1
    if text.startswith("^", end):
        end += 1
    if text.startswith("]", end):
        end += 1
    while end < len(text) and text[end] != "]":
        if text.startswith("[:", end):
            raise _invalid(pattern, "named character classes are not supported here")
        if text[end] == "\\":
            _escape(pattern, text, end)
            end += 1
        end += 1
    if end >= len(text):
        raise _invalid(pattern, f"missing ] for the class at {pos}")
    return end + 1 - pos, text[pos : end + 1].replace("[", "\\[").replace("\\[", "[", 1)


def _invalid(pattern: str, reason: str) -> BrokerError:
    return InvalidRegularExpression(
        f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}."
    )
