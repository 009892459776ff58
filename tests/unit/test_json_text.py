"""JSON: one meaning, whichever library serves; the standard library's is the rule."""

from __future__ import annotations

import ast
import math
import struct
import sys
import uuid
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_fast import json_text
from kafka_fast._json_alike import is_read_alike, is_written_alike
from kafka_fast.json_text import COMPACT, make_reader, make_writer

OPTIONS: dict[str, Any] = {
    "ensure_ascii": False,
    "separators": COMPACT,
    "sort_keys": False,
    "default": None,
    "allow_nan": False,
}
NO_HOOKS: dict[str, Any] = {"object_hook": None, "parse_float": None, "allow_nan": False}


@pytest.fixture(autouse=True)
def fresh_choice() -> Iterator[None]:
    """Let each test choose its library anew."""
    json_text._orjson.cache_clear()
    yield
    json_text._orjson.cache_clear()


def without_orjson(make: Callable[..., Any], **options: Any) -> Any:
    """Return what `make` makes where orjson is not installed."""
    json_text._orjson.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "orjson", None)
        made = make(**options)
    json_text._orjson.cache_clear()
    return made


def with_orjson(make: Callable[..., Any], **options: Any) -> Any:
    pytest.importorskip("orjson")
    return make(**options)


def outcome(function: Callable[[Any], Any], argument: Any) -> object:
    """Return what a call returns, to the last bit, or the error that it raises."""
    try:
        return repr(function(argument))
    except (TypeError, ValueError, RecursionError) as error:
        return type(error), str(error)


def written_alike(value: object, **changes: Any) -> object:
    """Return what becomes of a value, which must be the same in both ways."""
    options = {**OPTIONS, **changes}
    plain = outcome(without_orjson(make_writer, **options), value)
    assert outcome(with_orjson(make_writer, **options), value) == plain
    return plain


def read_alike(data: bytes, **changes: Any) -> object:
    options = {**NO_HOOKS, **changes}
    plain = outcome(without_orjson(make_reader, **options), data)
    assert outcome(with_orjson(make_reader, **options), data) == plain
    return plain


# ---- writing ----


class Number(IntEnum):
    ONE = 1


class Word(str, Enum):
    A = "a"


class Colour(Enum):
    RED = "red"


@dataclass
class Order:
    id: int


Pair = namedtuple("Pair", "a b")  # noqa: PYI024  what the untyped one does
NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": [1, 2.5, True, None, "ü"], "a": ()}, '{"b":[1,2.5,true,null,"ü"],"a":[]}'),
        (2**70, str(2**70)),
        (-(2**63), str(-(2**63))),
        (2**63, str(2**63)),
        (1e16, "1e+16"),
        (1e-5, "1e-05"),
        (-0.0, "-0.0"),
        ({1: "a", None: "b", 2.5: "c"}, '{"1":"a","null":"b","2.5":"c"}'),
        (Pair(1, 2), "[1,2]"),
        (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
        ([Number.ONE, Word.A], '[1,"a"]'),
        ('"\\\n\r\t\b\f\x00\x1f\x7f/\u2028', '"\\"\\\\\\n\\r\\t\\b\\f\\u0000\\u001f\x7f/\u2028"'),
    ],
)
def test_what_is_written(value: object, text: str) -> None:
    assert written_alike(value) == repr(text.encode())


@pytest.mark.parametrize(
    "value",
    [
        NOON,
        uuid.UUID(int=5),
        Order(1),
        Colour.RED,
        Decimal("1.5"),
        b"bytes",
        {1, 2},
        {"deep": [{"er": NOON}]},
        {(1, 2): 3},
        math.nan,
        [math.inf],
        "\ud800",
        {"\udfff": 1},
    ],
)
def test_what_is_refused_is_refused_with_orjson_too(value: object) -> None:
    plain = written_alike(value)
    assert isinstance(plain, tuple), "an error"


def test_options() -> None:
    value = {"b": "ü", "a": [1, 2]}
    assert written_alike(value, sort_keys=True) == repr('{"a":[1,2],"b":"ü"}'.encode())
    assert written_alike(value, ensure_ascii=True) == repr(b'{"b":"\\u00fc","a":[1,2]}')
    assert written_alike(value, separators=(", ", ": ")) == repr('{"b": "ü", "a": [1, 2]}'.encode())
    assert written_alike([math.nan, -math.inf], allow_nan=True) == repr(b"[NaN,-Infinity]")
    assert written_alike({"at": NOON, "n": Decimal("1.50")}, default=str) == repr(
        b'{"at":"2026-03-01 12:00:00+00:00","n":"1.50"}'
    )


def test_keys_are_sorted_alike() -> None:
    keys = ["z", "Z", "é", "\U0001f600", "\uffff", "", "a\x00", "aa"]
    written_alike(dict.fromkeys(keys, 1), sort_keys=True)


@pytest.mark.parametrize("depth", [50, 99, 100, 101, 260, 100_000])
def test_depth(depth: int) -> None:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    written_alike(value)
    read_alike(b"[" * depth + b"]" * depth)


def test_a_circle_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert written_alike(circle) == (ValueError, "Circular reference detected")


def test_every_character_is_written_alike() -> None:
    everything = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assert without_orjson(make_writer, **OPTIONS)(everything) == (
        with_orjson(make_writer, **OPTIONS)(everything)
    )


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-(2**66), 2**66),
        st.floats(),
        st.floats(1e-5, 1e17),
        st.text(),
        st.text(st.characters(), max_size=3),  # surrogates as well
    ),
    lambda inner: st.one_of(
        st.lists(inner),
        st.tuples(inner),
        st.dictionaries(st.text(), inner),
        st.dictionaries(st.integers(), inner, max_size=2),
    ),
    max_leaves=8,
)


@given(JSON, st.booleans())
def test_any_value(value: object, sort_keys: bool) -> None:
    written_alike(value, sort_keys=sort_keys)
    text = outcome(without_orjson(make_writer, **{**OPTIONS, "allow_nan": True}), value)
    if isinstance(text, str):
        data = ast.literal_eval(text)
        read_alike(data)
        read_alike(data, allow_nan=True)


@given(st.integers(0, 2**64 - 1))
def test_any_float(bits: int) -> None:
    (number,) = struct.unpack("<d", struct.pack("<Q", bits))
    written_alike(number)
    read_alike(repr(number).encode())


# ---- reading ----


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b' {"a": [1, -0, -0.0, 1.0, 1E5]}\n', "{'a': [1, 0, -0.0, 1.0, 100000.0]}"),
        (b"18446744073709551616", "18446744073709551616"),
        (b"[-9223372036854775809]", "[-9223372036854775809]"),
        (b'{"a":{"b":9223372036854775808}}', "{'a': {'b': 9223372036854775808}}"),
        (b"1e300", "1e+300"),
        (b"1e400", "inf"),
        (b"1e-999", "0.0"),
        (b'"\\ud800"', "'\\ud800'"),
        (b'"\\u0000"', "'\\x00'"),
        (b'{"a":1,"a":2}', "{'a': 2}"),
        (b"null", "None"),
        (b"[" + b"1" * 4000 + b"]", f"[{'1' * 4000}]"),
    ],
)
def test_what_is_read(data: bytes, shown: str) -> None:
    assert read_alike(data) == shown


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "Expecting value: line 1 column 1 (char 0)"),
        (b"{", "Expecting property name"),
        (b"[1,]", "Illegal trailing comma" if sys.version_info >= (3, 13) else "Expecting value"),
        (b"01", "Extra data"),
        (b"\xef\xbb\xbf1", "Expecting value"),
        (b"\xff", "'utf-8' codec can't decode"),
        (b'"\xed\xa0\x80"', "'utf-8' codec can't decode"),
        ("{}".encode("utf-16"), "'utf-8' codec can't decode"),
        (b'"\n"', "Invalid control character"),
        (b"NaN", "NaN is not JSON (allow_nan=True takes it)"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b"1" * 5000, "Exceeds the limit"),
    ],
)
def test_what_is_no_json(data: bytes, complaint: str) -> None:
    refused = read_alike(data)
    assert isinstance(refused, tuple)
    assert complaint in refused[1]


def test_hooks() -> None:
    assert read_alike(b'{"a":1.50}', parse_float=Decimal) == "{'a': Decimal('1.50')}"
    assert (
        read_alike(b'{"a":{}}', object_hook=lambda members: list(members.items())) == "[('a', [])]"
    )
    assert read_alike(b"[NaN,1]", allow_nan=True) == "[nan, 1]"


@given(st.binary(max_size=20) | st.text('[]{}:,"\\0123456789.eE+-truefalsn \n', max_size=20))
def test_any_bytes(data: bytes | str) -> None:
    read_alike(data.encode() if isinstance(data, str) else data)


# ---- what goes which way ----


def test_usual_values_go_the_fast_way() -> None:
    order = {"id": 1, "at": 1.5, "tags": ["a", None], "more": {"ok": True}, "pair": (1, 2)}
    assert is_written_alike(order)
    assert is_read_alike(order)
    assert is_read_alike(2**63)
    for other in (2**63, 1e16, 1e-5, math.nan, Number.ONE, OrderedDict(), {1: 2}, [Order(1)], b""):
        assert not is_written_alike(other)
    for other in (1.9e19, [-1e300], math.inf):
        assert not is_read_alike(other)
