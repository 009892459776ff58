"""JSON text in UTF-8 with one meaning, whichever library serves.

The rule is the standard library's `json`. Where `orjson` is installed, it serves what it is known
to write, or read, exactly as `json` does (`_json_alike.pyx`), several times as fast. All else, and
everything that `orjson` refuses, goes to `json`, which has the last word. So to install `orjson`
never changes what is accepted, the bytes, or the text of an error.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias

Write: TypeAlias = Callable[[Any], bytes]
Read: TypeAlias = Callable[[bytes], Any]

COMPACT: Final = (",", ":")
"""Separators without blanks."""


def make_writer(
    *,
    ensure_ascii: bool,
    separators: tuple[str, str],
    sort_keys: bool,
    default: Callable[[Any], Any] | None,
    allow_nan: bool,
) -> Write:
    """Return a function from an object to its JSON text; the arguments are those of `json.dumps`.

    It raises what `json.dumps` raises: TypeError, ValueError, RecursionError.
    """
    from json import JSONEncoder  # not loaded where nothing is JSON

    encode = JSONEncoder(
        ensure_ascii=ensure_ascii,
        separators=separators,
        sort_keys=sort_keys,
        default=default,
        allow_nan=allow_nan,
    ).encode

    def write(value: Any) -> bytes:
        return encode(value).encode()

    orjson = _orjson()
    if orjson is None or ensure_ascii or tuple(separators) != COMPACT:
        return write
    from kafka_fast._json_alike import is_written_alike

    dumps, option = orjson.dumps, orjson.OPT_SORT_KEYS if sort_keys else None

    def write_faster(value: Any) -> bytes:
        if is_written_alike(value):
            try:
                data: bytes = dumps(value, None, option)
            except TypeError:  # a lone surrogate, for example
                pass
            else:
                return data
        return write(value)

    return write_faster


def make_reader(
    *,
    object_hook: Callable[[dict[str, Any]], Any] | None,
    parse_float: Callable[[str], Any] | None,
    allow_nan: bool,
) -> Read:
    """Return a function from JSON text to the object; the arguments are those of `json.loads`.

    It raises ValueError (of which JSONDecodeError is one) and RecursionError, or what the
    arguments raise.
    """
    from json import JSONDecoder

    refuse = None if allow_nan else _refuse_constant
    decode = JSONDecoder(
        object_hook=object_hook, parse_float=parse_float, parse_constant=refuse
    ).decode

    def read(data: bytes) -> Any:
        return decode(str(data, "utf-8"))

    orjson = _orjson()
    if orjson is None or object_hook is not None or parse_float is not None:
        return read
    from kafka_fast._json_alike import is_read_alike

    loads = orjson.loads

    def read_faster(data: bytes) -> Any:
        try:
            value = loads(data)
        except ValueError:
            return read(data)
        return value if is_read_alike(value) else read(data)

    return read_faster


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON (allow_nan=True takes it)")


@functools.cache
def _orjson() -> Any:
    """Return the module, or None where it is not installed."""
    try:
        return importlib.import_module("orjson")
    except ImportError:
        return None
