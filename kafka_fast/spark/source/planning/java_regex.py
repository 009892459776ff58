r"""A Java regular expression as one of Python's, for the option subscribePattern.

Most patterns mean the same to both. A construct that Python writes in another way is translated,
and one that it does not have, or reads as something else, is refused: a pattern that matches other
topics than before is worse than an error. Names of topics are ASCII, so classes like `\w` agree.
"""

from __future__ import annotations

import re

from kafka_fast.errors import UsageError

#: Java's classes \p{...} whose members among the characters of topics are known.
CLASSES = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "ASCII": r"\x00-\x7f",
    "XDigit": "0-9a-fA-F",
    "Ll": "a-z",
    "Lu": "A-Z",
    "L": "a-zA-Z",
    "N": "0-9",
    "Nd": "0-9",
    "IsAlphabetic": "a-zA-Z",
    "IsDigit": "0-9",
    "IsLowercase": "a-z",
    "IsUppercase": "A-Z",
    "javaLowerCase": "a-z",
    "javaUpperCase": "A-Z",
}
#: Escapes that mean the same to Python.
SAME = frozenset("dDwWsSbBAtnrfx") | frozenset("0123456789")
#: Escapes that Python writes otherwise.
OTHER = {"z": r"\Z", "Z": r"(?=\n?\Z)", "e": r"\x1b", "h": r"[ \t]", "a": r"\x07"}

#: Groups of both languages, and Java's named groups and references.
GROUP = re.compile(r"\(\?(?::|=|!|<=|<!|<([a-zA-Z][a-zA-Z0-9]*)>|[ims]+\))")
QUANTIFIER = re.compile(r"[*+?]|\{\d+(?:,\d*)?\}")


def from_java(pattern: str) -> re.Pattern[str]:
    """Return a Java regular expression as Python's.

    Raises:
        UsageError: the pattern is malformed, or has a part that cannot be translated.
    """
    try:
        return re.compile(_Translation(pattern).translated(), re.ASCII)
    except re.error as error:
        raise _refused(pattern, str(error)) from error


def _refused(pattern: str, why: str) -> UsageError:
    return UsageError(
        f"subscribePattern {pattern!r} cannot be used: {why}; write it in another way, or name the "
        "topics in the option 'subscribe'"
    )


class _Translation:
    """One pattern on its way; `pos` is the place of the next character."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.pos = 0

    def translated(self) -> str:
        parts: list[str] = []
        while self.pos < len(self.pattern):
            char = self.pattern[self.pos]
            if char == "\\":
                parts.append(self._escape(in_class=False))
            elif char == "[":
                parts.append(self._class())
            elif char == "(":
                parts.append(self._group())
            elif match := QUANTIFIER.match(self.pattern, self.pos):
                parts.append(self._quantifier(match))
            elif char == "$":
                parts.append(r"(?=\n?\Z)")  # as Java has it; Python's differs with re.MULTILINE
                self.pos += 1
            elif char == "{":
                raise self._refusal("a brace that is no quantifier")
            else:
                parts.append(char)
                self.pos += 1
        return "".join(parts)

    def _quantifier(self, match: re.Match[str]) -> str:
        self.pos = match.end()
        follows = self.pattern[self.pos : self.pos + 1]
        if follows == "+":
            raise self._refusal(f"a possessive quantifier, {match[0]}+")
        if follows == "?":
            self.pos += 1
            return match[0] + "?"
        return match[0]

    def _group(self) -> str:
        if not self.pattern.startswith("(?", self.pos):
            self.pos += 1
            return "("
        match = GROUP.match(self.pattern, self.pos)
        if match is None:
            raise self._refusal(f"the group {self.pattern[self.pos : self.pos + 4]}...")
        if match[0].endswith(")") and self.pos > 0:
            raise self._refusal(f"flags behind the beginning, {match[0]}")
        if match[0].endswith(")") and "m" in match[0]:
            raise self._refusal(f"the flag m in {match[0]}")
        self.pos = match.end()
        return f"(?P<{match[1]}>" if match[1] else match[0]

    def _escape(self, *, in_class: bool) -> str:
        """Return the escape at `pos`; in a class without its own brackets."""
        char = self.pattern[self.pos + 1 : self.pos + 2]
        if char == "Q":
            return self._quoted()
        if char in ("p", "P"):
            return self._named_class(in_class=in_class, negated=char == "P")
        if char == "k" and not in_class:
            match = re.compile(r"\\k<([a-zA-Z][a-zA-Z0-9]*)>").match(self.pattern, self.pos)
            if match is not None:
                self.pos = match.end()
                return f"(?P={match[1]})"
        self.pos += 2
        if not char:
            raise self._refusal("a backslash at the end")
        if char == "0" or (in_class and char in "123456789bBAzZh"):
            raise self._refusal(f"the escape \\{char} in this place")
        if char in OTHER:
            return OTHER[char]
        if char in SAME or not (char.isascii() and char.isalpha()):
            return "\\" + char
        if char == "u" and re.match("[0-9a-fA-F]{4}", self.pattern[self.pos :]):
            return r"\u"
        raise self._refusal(f"the escape \\{char}")

    def _quoted(self) -> str:
        end = self.pattern.find(r"\E", self.pos)
        end = len(self.pattern) if end < 0 else end
        text = self.pattern[self.pos + 2 : end]
        self.pos = end + 2
        return re.escape(text)

    def _named_class(self, *, in_class: bool, negated: bool) -> str:
        match = re.compile(r"\\[pP](?:\{(\w+)\}|(\w))").match(self.pattern, self.pos)
        name = (match[1] or match[2]) if match else ""
        if match is None or name not in CLASSES or (in_class and negated):
            raise self._refusal(f"the class {self.pattern[self.pos : self.pos + 10]}")
        self.pos = match.end()
        return CLASSES[name] if in_class else f"[{'^' if negated else ''}{CLASSES[name]}]"

    def _class(self) -> str:
        """Return the class in brackets at `pos`. Java's have classes in them, and intersections."""
        start = self.pos
        parts = ["["]
        self.pos += 1
        if self.pattern.startswith("^", self.pos):
            parts.append("^")
            self.pos += 1
        first = self.pos
        while self.pos < len(self.pattern):
            char = self.pattern[self.pos]
            if char == "]" and self.pos > first:
                self.pos += 1
                return "".join(parts) + "]"
            if char in "[]" or self.pattern.startswith("&&", self.pos):
                self.pos = start
                raise self._refusal("a union or an intersection of classes in brackets")
            if char == "\\":
                parts.append(self._escape(in_class=True))
                continue
            parts.append("\\" + char if char in "-&~|" and self._is_doubled(char) else char)
            self.pos += 1
        raise self._refusal("a bracket that is not closed")

    def _is_doubled(self, char: str) -> bool:
        """Whether Python would warn of a set operation to come."""
        return self.pattern.startswith(char * 2, self.pos)

    def _refusal(self, what: str) -> UsageError:
        return _refused(self.pattern, f"{what} has no counterpart here")
