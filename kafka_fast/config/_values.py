"""From what a user gave to the value that a key holds: types, words, ranges, choices."""

from __future__ import annotations

import math
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from kafka_fast.config._address import parse_addresses
from kafka_fast.config._key import LONG_MAX, Key, ValueKind
from kafka_fast.errors import ConfigError
from kafka_fast.secret import Secret
from kafka_fast.serialization import as_deserializer, as_serializer

NO_SECRET = object()
"""What is put in place of a value that can be no secret, before it is read: it is shown nowhere."""

FOR_BROKERS = frozenset(
    {
        "client.id",
        "client.rack",
        "group.id",
        "group.instance.id",
        "group.remote.assignor",
        "transactional.id",
    }
)
"""Texts that stand in requests."""

LONGEST_TEXT = 2**15 - 1
"""Bytes of a text that brokers read. Of a longer one they close the connection."""

_JAVA_PACKAGE = "org.apache.kafka."


def coerce(key: Key, given: str, value: object, scale: int = 1) -> object:
    """Return the value of `key` that the user means.

    Args:
        key: the property.
        given: how the user spelled the property; messages name it.
        value: what the user gave.
        scale: the unit of the user's spelling, in units of the property.

    Raises:
        ConfigError: it is of another type, out of range, or not supported yet.
    """
    label = key.name if _spells(given, key.name) else f"{given} ({key.name})"
    if key.ignored:
        return key.default
    if key.pending or (key.refused and not key.choices):
        return _inert(key, label, value)
    result = _typed(key, label, value)
    if isinstance(result, int | float) and not isinstance(result, bool):
        result *= scale
        _check_range(key, label, result, value)
    return result


def is_word(value: object) -> bool:
    """Return whether `value` may be one of a key's words."""
    return value is None or isinstance(value, str | int)


def describe_range(key: Key) -> str:
    """Return the values that `key` allows, in words; empty if its type says all."""
    if key.choices:
        names = {result: word for word, result in key.words.items() if not isinstance(result, str)}
        return ", ".join(str(names.get(choice, choice)) or "empty" for choice in key.choices)
    if key.pattern:
        return ", ".join(key.pattern.replace(":.+", ":…").split("|"))
    if key.low is None:
        return ""
    return f"at least {key.low}" if key.high in (None, LONG_MAX) else f"{key.low} to {key.high}"


def _spells(spelling: str, name: str) -> bool:
    return spelling.strip().lower().replace("_", ".") == name


def _inert(key: Key, label: str, value: object) -> object:
    """Return the default of a key, which asks for nothing; refuse any other value."""
    try:
        result = _typed(key, label, value)
    except ConfigError:
        result = value
    if result != key.default:
        why = key.refused or f"not supported yet: this version has no {key.pending}"
        raise ConfigError(f"{label}: {why}")
    return result


def _typed(key: Key, label: str, value: object) -> object:
    """Return `value` with the type of the key's kind; words are replaced by what they mean."""
    if key.words and key.kind is not ValueKind.LIST and is_word(value):  # a list's are its entries'
        word = _simple_name(str(value).strip().lower())
        if word in key.words:
            return key.words[word]
    if value is None:
        if key.nullable or key.default in ((), ""):
            return key.default
        raise _wrong_type(key, label, value)
    return _READERS[key.kind](key, label, value)


def _boolean(key: Key, label: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = value.strip().lower() if isinstance(value, str) else ""
    if text not in ("true", "false"):
        raise _wrong_type(key, label, value)
    return text == "true"


def _integer(key: Key, label: str, value: object) -> int:
    if isinstance(value, bool):
        raise _wrong_type(key, label, value)
    if isinstance(value, str):
        value = _number(key, label, value)
    if isinstance(value, float):
        if value == math.inf and isinstance(key.high, int):
            return key.high
        if not value.is_integer():
            raise _wrong_type(key, label, value)
        return int(value)
    try:
        return operator.index(value)  # type: ignore[arg-type]  # numpy's integers too
    except TypeError:
        raise _wrong_type(key, label, value) from None


def _float(key: Key, label: str, value: object) -> float:
    if isinstance(value, str):
        value = _number(key, label, value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong_type(key, label, value)
    return float(value)


def _number(key: Key, label: str, text: str) -> int | float:
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        return float(text)
    raise _wrong_type(key, label, text)


def _string(key: Key, label: str, value: object) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        raise _wrong_type(key, label, value)
    text = value.strip()
    problem = why_unsendable(text) if key.name in FOR_BROKERS else None
    if problem is not None:
        raise ConfigError(f"{label}: {problem}")
    return _choice(key, label, text)


def why_unsendable(text: str) -> str | None:
    """Return why brokers cannot get a text; None: they can.

    What they cannot get would raise where requests are framed, and end the client.
    """
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        return f"{text!r} cannot be written in UTF-8"
    if length > LONGEST_TEXT:
        return f"{text[:20]!r}… has {length} bytes, and may have {LONGEST_TEXT}"
    return None


def _secret(key: Key, label: str, value: object) -> Secret:
    if not isinstance(value, Secret):  # NO_SECRET
        raise _wrong_type(key, label, value)
    return value


def _list(key: Key, label: str, value: object) -> tuple[object, ...]:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, bytes | bytearray) or not isinstance(value, Iterable):
        raise _wrong_type(key, label, value)
    entries: list[object] = []
    for entry in value:
        if key.method and not isinstance(entry, str | type) and hasattr(entry, key.method):
            entries.append(entry)
            continue
        # A class or an object stands for itself only where the key has a feature to use it.
        name = entry if isinstance(entry, str) else getattr(entry, "__name__", repr(entry))
        word = _simple_name(name.strip().lower())
        entries.append(str(key.words.get(word) or _choice(key, label, name.strip())))
    # As in Java, what is given twice counts once; a user's object may not be hashable.
    return tuple(item for number, item in enumerate(entries) if item not in entries[:number])


def _choice(key: Key, label: str, value: str) -> str:
    """Return the choice of `key` that `value` spells, whatever its case."""
    if key.pattern and re.fullmatch(key.pattern, value) is None:
        raise ConfigError(f"{label}: {value!r} is not one of {describe_range(key)}")
    if not key.choices:
        return value
    word = _simple_name(value.lower())
    for choice in key.choices:
        if str(choice).lower() == word:
            return str(choice)
    if word in (later.lower() for later in key.later):
        raise ConfigError(f"{label}: {value} is not supported yet")
    instead = f": {key.refused}" if key.refused else ""
    raise ConfigError(f"{label}: {value!r} is not one of {describe_range(key)}{instead}")


def _simple_name(text: str) -> str:
    """Return the last part of a Java class name, any other text as it is."""
    return text.rpartition(".")[2] if text.startswith(_JAVA_PACKAGE) else text


def _addresses(key: Key, label: str, value: object) -> object:
    return parse_addresses(value, key.name)


def _serializer(key: Key, label: str, value: object) -> object:
    return _resolvable(as_serializer, key, label, value)


def _deserializer(key: Key, label: str, value: object) -> object:
    return _resolvable(as_deserializer, key, label, value)


def _resolvable(resolve: Callable[[Any], object], key: Key, label: str, value: object) -> object:
    """Return `value` as it is, if `resolve` accepts it: names wait for `serializer.encoding`."""
    try:
        resolve(value)
    except ValueError as error:
        raise ConfigError(f"{label}: {error}") from error
    except TypeError:
        raise _wrong_type(key, label, value) from None
    return value


def _partitioner(key: Key, label: str, value: object) -> object:
    return value if callable(value) else _string(key, label, value)


def _callable(key: Key, label: str, value: object) -> object:
    if not callable(value):
        raise _wrong_type(key, label, value)
    return value


def _context(key: Key, label: str, value: object) -> object:
    # What makes a context one, without the import of ssl that most clients do not need.
    if not hasattr(value, "wrap_bio"):
        raise _wrong_type(key, label, value)
    return value


def _token_provider(key: Key, label: str, value: object) -> object:
    """Return a callable: the value, or its method `token`, as kafka-python and aiokafka have it."""
    method = getattr(value, "token", None)
    if callable(method) and not isinstance(value, type):
        return method
    return _callable(key, label, value)


_READERS: Mapping[ValueKind, Callable[[Key, str, object], object]] = {
    ValueKind.BOOLEAN: _boolean,
    ValueKind.INT: _integer,
    ValueKind.FLOAT: _float,
    ValueKind.STRING: _string,
    ValueKind.PASSWORD: _secret,
    ValueKind.LIST: _list,
    ValueKind.ADDRESSES: _addresses,
    ValueKind.SERIALIZER: _serializer,
    ValueKind.DESERIALIZER: _deserializer,
    ValueKind.PARTITIONER: _partitioner,
    ValueKind.CALLABLE: _callable,
    ValueKind.CONTEXT: _context,
    ValueKind.TOKEN_PROVIDER: _token_provider,
}


def _check_range(key: Key, label: str, result: float, value: object) -> None:
    unit = f" {key.unit}" if key.unit else ""
    if key.choices:
        if result not in key.choices:
            raise ConfigError(f"{label}: {value!r} is not one of {describe_range(key)}")
        return
    if key.high is not None and result > key.high:
        raise ConfigError(f"{label}: {value!r} is out of range: must be at most {key.high}{unit}")
    if key.low is not None and result < key.low:
        raise ConfigError(
            f"{label}: {value!r} is out of range: must be {describe_range(key)}{unit}"
        )


_EXPECTED = {
    ValueKind.BOOLEAN: "true or false",
    ValueKind.INT: "an integer",
    ValueKind.FLOAT: "a number",
    ValueKind.STRING: "a string",
    ValueKind.PASSWORD: "a string, or a function that returns one",
    ValueKind.LIST: "a list of strings, or one string with commas",
    ValueKind.SERIALIZER: "a callable, an object with serialize(topic, value, headers), or the "
    "name of a built-in serializer",
    ValueKind.DESERIALIZER: "a callable, an object with deserialize(topic, data, headers), or the "
    "name of a built-in deserializer",
    ValueKind.PARTITIONER: "the name of a partitioner or a callable",
    ValueKind.CALLABLE: "a callable",
    ValueKind.CONTEXT: "an ssl.SSLContext",
    ValueKind.TOKEN_PROVIDER: "a callable, or an object with token()",
}


def _wrong_type(key: Key, label: str, value: object) -> ConfigError:
    expected = f"{label}: expected {_EXPECTED[key.kind]}"
    # What is given for a user's name may be a whole account, with its password.
    is_near_secrets = key.kind is ValueKind.PASSWORD or key.field
    return ConfigError(expected if is_near_secrets else f"{expected}, not {value!r}")
