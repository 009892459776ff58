r"""Files of properties, as `java.util.Properties` reads them.

    # a comment                              ! one, too
    sasl.mechanism=PLAIN                     : or white space may stand for =
    sasl.jaas.config=...PlainLoginModule \
        required username="a" password="b";  continued; the indent is no part of it

A backslash escapes: \t \n \r \f and \uXXXX as in Java, any other character stands for itself. What
stands here is data: no variables are replaced, nothing is imported.

Such a file is often not ours alone: a schema registry's client and serializers of the JVM have
their properties in it. These are left out, and their names are logged.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from kafka_fast.config._given import Properties
from kafka_fast.config._key import ValueKind
from kafka_fast.config._values import coerce
from kafka_fast.config.spelling._normalize import dotted, knows, nearest, own_key
from kafka_fast.errors import ConfigError
from kafka_fast.logs import get_logger

_log = get_logger("kafka_fast.config")

_SPACE = " \t\f"
_NEWLINE = re.compile(r"\r\n|\r|\n")
_ESCAPE = re.compile(r"\\(u([0-9A-Fa-f]{4})?|.|$)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_NAME = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)

_ELSEWHERE = (
    "schema.registry.",
    "basic.auth.",
    "bearer.auth.",
    "confluent.",
    "auto.register.schemas",
    "use.latest.version",
    "use.schema.id",
    "normalize.schemas",
    "specific.avro.reader",
    "avro.",
    "json.",
    "key.subject.name.strategy",
    "value.subject.name.strategy",
)
"""How properties of schema registries and of their serializers begin."""

_OF_THE_JVM = ("metric.reporters", "interceptor.classes", "enable.metrics.push")
"""Properties that only a JVM could act upon, and that change nothing about records."""


def read_properties(path: str | os.PathLike[str]) -> Properties:
    """Return the properties in a file, as Java's clients and librdkafka's read them.

    The file may serve several clients: `Producer(read_properties(path))` ignores what only a
    consumer has, and the reverse. Give more as keywords, or with `|`:

        >>> Consumer(read_properties("client.properties"), group_id="audit")

    Properties of other programs, such as `schema.registry.url`, are left out, and their names are
    logged at INFO.

    Args:
        path: the file; in UTF-8, or else in ISO 8859-1, as in Java.

    Raises:
        ConfigError: a line is malformed, or a name looks like a misspelt property.
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:  # noqa: PTH123 - every import would take 4 ms more for pathlib
        parsed = parse_properties(_decoded(file.read()))
    if isinstance(parsed, int):
        raise ConfigError(f"{os.fspath(path)}, line {parsed}: \\u needs four hexadecimal digits")
    ours = Properties({name: value for name, value in parsed.items() if _is_ours(name, value)})
    others = [name for name in parsed if name not in ours]
    for name in others:
        near = None if knows(name) or dotted(name).startswith(_ELSEWHERE) else nearest(name)
        if near is not None:
            del parsed, ours  # an error's traceback has this frame: no secret may be in it
            raise ConfigError(
                f"{os.fspath(path)}: unknown property {name!r}; did you mean {near!r}?"
            )
    if others:
        _log.info("%s: not for a client of kafka_fast: %s", os.fspath(path), ", ".join(others))
    return ours


def parse_properties(text: str) -> dict[str, str] | int:
    """Return the properties in a text; or the number of a line that has a malformed escape.

    The caller raises the error, so that no frame of the error's traceback has a property's value.
    """
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        name = _NAME.match(line)[0]  # type: ignore[index]  # an empty name matches as well
        separator = _SEPARATOR.match(line, len(name))
        value = line[separator.end() :]  # type: ignore[union-attr]  # it may be empty
        unescaped = _unescaped(name), _unescaped(value)
        if unescaped[0] is None or unescaped[1] is None:
            return number
        properties[unescaped[0]] = unescaped[1]
    return properties


def _is_ours(name: str, value: str) -> bool:
    """Return whether a property means something here, or is refused by a client with a reason."""
    if not knows(name):
        return False
    key = own_key(name)
    if key is None:
        return True
    if key.kind in (ValueKind.SERIALIZER, ValueKind.DESERIALIZER):
        try:
            coerce(key, name, value)
        except ConfigError:  # a class of the JVM's; its owner gives another one in code
            return False
    return key.name not in _OF_THE_JVM


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers; a line that ends in a backslash goes on in the next one."""
    whole, first = "", 0
    for number, line in enumerate(_NEWLINE.split(text), 1):
        part = line.lstrip(_SPACE)
        if not whole:
            if not part or part[0] in "#!":
                continue
            first = number
        backslashes = len(part) - len(part.rstrip("\\"))
        if backslashes % 2:
            whole += part[:-1]
            continue
        yield first, whole + part
        whole = ""
    if whole:
        yield first, whole


def _unescaped(text: str) -> str | None:
    """Return the text without escapes; None if one is malformed."""
    if any(match[1] == "u" for match in _ESCAPE.finditer(text)):
        return None
    plain = _ESCAPE.sub(
        lambda match: chr(int(match[2], 16)) if match[2] else _CONTROLS.get(match[1], match[1]),
        text,
    )
    # Java writes a character beyond U+FFFF as two escapes, a pair of surrogates.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("iso-8859-1")
