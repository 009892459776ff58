"""Serializers: Java's bytes, refusals that name topic and type, what a user may give."""

from __future__ import annotations

import json
import math
import pickle
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_fast.errors import SerializationError
from kafka_fast.serialization import (
    DESERIALIZERS,
    SERIALIZERS,
    BytesDeserializer,
    BytesSerializer,
    CallableDeserializer,
    CallableSerializer,
    DoubleDeserializer,
    DoubleSerializer,
    IntegerDeserializer,
    IntegerSerializer,
    JsonDeserializer,
    JsonSerializer,
    LongDeserializer,
    LongSerializer,
    StringDeserializer,
    StringSerializer,
    as_deserializer,
    as_serializer,
    serialize,
)

PAIRS: dict[Any, Any] = {
    StringSerializer: StringDeserializer,
    BytesSerializer: BytesDeserializer,
    IntegerSerializer: IntegerDeserializer,
    LongSerializer: LongDeserializer,
    DoubleSerializer: DoubleDeserializer,
    JsonSerializer: JsonDeserializer,
}


@pytest.mark.parametrize(
    ("serializer", "value", "data"),
    [
        (StringSerializer(), "Zürich", b"Z\xc3\xbcrich"),
        (StringSerializer("utf-16-be"), "A", b"\x00A"),
        (BytesSerializer(), b"ab", b"ab"),
        (BytesSerializer(), bytearray(b"ab"), b"ab"),
        (BytesSerializer(), memoryview(b"abcd")[1:3], b"bc"),
        (IntegerSerializer(), 1, b"\0\0\0\1"),
        (IntegerSerializer(), -1, b"\xff" * 4),
        (IntegerSerializer(), -(2**31), b"\x80\0\0\0"),
        (LongSerializer(), 2**63 - 1, b"\x7f" + b"\xff" * 7),
        (LongSerializer(), -2, b"\xff" * 7 + b"\xfe"),
        (DoubleSerializer(), 1.0, b"\x3f\xf0" + b"\0" * 6),
        (DoubleSerializer(), -2, b"\xc0" + b"\0" * 7),
        (JsonSerializer(), {"id": 1, "name": "Zürich"}, '{"id":1,"name":"Zürich"}'.encode()),
        (JsonSerializer(ensure_ascii=True), ["ü"], b'["\\u00fc"]'),
        (
            JsonSerializer(sort_keys=True, separators=(", ", ": ")),
            {"b": 1, "a": 2},
            b'{"a": 2, "b": 1}',
        ),
        (JsonSerializer(default=str), {"price": Decimal("1.50")}, b'{"price":"1.50"}'),
        (JsonSerializer(allow_nan=True), math.inf, b"Infinity"),
    ],
)
def test_bytes_are_javas(serializer: Any, value: object, data: bytes) -> None:
    result = serializer.serialize("t", value, None)
    assert result == data
    assert type(result) is bytes


@pytest.mark.parametrize(("serializer", "deserializer"), PAIRS.items())
def test_none_is_none_both_ways(serializer: Any, deserializer: Any) -> None:
    assert serializer().serialize("t", None, None) is None
    assert deserializer().deserialize("t", None, None) is None


@given(
    st.one_of(
        st.tuples(st.just(StringSerializer), st.text()),
        st.tuples(st.just(BytesSerializer), st.binary()),
        st.tuples(st.just(IntegerSerializer), st.integers(-(2**31), 2**31 - 1)),
        st.tuples(st.just(LongSerializer), st.integers(-(2**63), 2**63 - 1)),
        st.tuples(st.just(DoubleSerializer), st.floats()),
        st.tuples(
            st.just(JsonSerializer),
            st.dictionaries(st.text(), st.lists(st.integers() | st.booleans() | st.text())),
        ),
    )
)
def test_round_trip(case: tuple[Any, Any]) -> None:
    serializer, value = case
    try:
        data = serializer().serialize("t", value, ())
    except SerializationError:
        assert isinstance(value, str | dict)  # a lone surrogate has no UTF-8 form
        return
    result = PAIRS[serializer]().deserialize("t", data, ())
    assert result == value or (math.isnan(result) and math.isnan(value))


@pytest.mark.parametrize(
    ("serializer", "value", "text"),
    [
        (IntegerSerializer(), 2**31, "2147483648 is out of range for int32"),
        (LongSerializer(), -(2**63) - 1, "is out of range for int64"),
        (DoubleSerializer(), 10**400, "is out of range for float64"),
        (IntegerSerializer(), "5", "expected a number for int32"),
        (IntegerSerializer(), True, "expected a number for int32"),
        (LongSerializer(), 5.0, "expected a number for int64"),
        (DoubleSerializer(), "x", "expected a number for float64"),
        (StringSerializer(), b"x", "expected a str"),
        (StringSerializer(), "\ud800", "'utf-8' codec"),
        (StringSerializer("ascii"), "ä", "'ascii' codec"),
        (BytesSerializer(), "x", "expected a bytes-like object"),
        (BytesSerializer(), 5, "expected a bytes-like object"),
        (StringSerializer(), {}, "a str (JsonSerializer writes it as JSON)"),
        (
            JsonSerializer(),
            {"at": object()},
            (
                "Object of type object is not JSON "
                "serializable; JsonSerializer(default=str) writes it as text"
            ),
        ),
        (JsonSerializer(), {(1, 2): 3}, "keys must be str"),
        (JsonSerializer(), [math.nan], "Out of range float values are not JSON compliant"),
        (JsonSerializer(), "\ud800", "'utf-8' codec"),
    ],
)
def test_refusals(serializer: Any, value: object, text: str) -> None:
    with pytest.raises(SerializationError) as caught:
        serializer.serialize("t", value, None)
    assert text in str(caught.value)


@pytest.mark.parametrize("size", [0, 1, 3, 5, 7, 9])
def test_wrong_sizes(size: int) -> None:
    for deserializer in (IntegerDeserializer(), LongDeserializer(), DoubleDeserializer()):
        with pytest.raises(SerializationError, match=f"^expected the .* not {size}$"):
            deserializer.deserialize("t", bytes(size), None)


def test_bad_text() -> None:
    with pytest.raises(SerializationError, match=r"^'utf-8' codec"):
        StringDeserializer().deserialize("t", b"\xff", None)


def test_bad_json() -> None:
    with pytest.raises(SerializationError, match=r"^Expecting value: line 1") as caught:
        JsonDeserializer().deserialize("t", b"", None)
    assert isinstance(caught.value.__cause__, json.JSONDecodeError)
    price = JsonDeserializer(parse_float=Decimal, object_hook=lambda members: members["price"])
    assert price.deserialize("t", b'{"price": 1.50}', None) == Decimal("1.50")


class Upper:
    """A user's own object."""

    def serialize(self, topic: str, value: str, headers: object) -> bytes:
        return f"{topic}:{value.upper()}".encode()


def test_what_a_user_may_give() -> None:
    mine = Upper()
    assert as_serializer(None) is None
    assert as_serializer(mine) is mine
    assert as_serializer("LongSerializer") == LongSerializer()
    assert as_serializer("JsonSerializer") == JsonSerializer()
    assert as_serializer("StringSerializer", "latin-1") == StringSerializer("latin-1")
    wrapped = as_serializer(str.encode)
    assert wrapped == CallableSerializer(str.encode)
    assert wrapped.serialize("t", None, None) is None
    assert as_deserializer(None) is None
    assert as_deserializer("org.apache.kafka.common.serialization.ByteArrayDeserializer") == (
        BytesDeserializer()
    )
    loads = as_deserializer(json.loads)
    assert loads == CallableDeserializer(json.loads)
    assert loads.deserialize("t", b"[1]", None) == [1]
    assert loads.deserialize("t", None, None) is None


def test_what_a_user_may_not_give() -> None:
    with pytest.raises(ValueError, match="'Avro' is not one of StringSerializer, "):
        as_serializer("Avro")
    for wrong in (5, LongSerializer, object()):
        with pytest.raises(TypeError, match="not a serializer"):
            as_serializer(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not a deserializer"):
        as_deserializer(LongDeserializer)  # type: ignore[arg-type]


def test_all_built_in_ones_are_picklable_and_hashable() -> None:
    for table in (SERIALIZERS, DESERIALIZERS):
        for made in table.values():
            one = made()
            assert pickle.loads(pickle.dumps(one)) == one
            assert hash(made()) == hash(one)
    sorting = JsonSerializer(sort_keys=True, default=str)
    assert pickle.loads(pickle.dumps(sorting)) == sorting != JsonSerializer()
    reading = JsonDeserializer(parse_float=Decimal)
    assert pickle.loads(pickle.dumps(reading)) == reading != JsonDeserializer()


def test_a_failure_names_record_part_topic_and_serializer() -> None:
    assert serialize(Upper(), "value", "t", "a", None) == b"t:A"
    with pytest.raises(
        SerializationError, match=r"^the key of a record for topic 't': Upper failed on int: "
    ) as caught:
        serialize(Upper(), "key", "t", 5, None)
    assert isinstance(caught.value.__cause__, AttributeError)
    dumps = as_serializer(json.dumps)  # type: ignore[arg-type]
    assert dumps is not None
    with pytest.raises(SerializationError, match=r"value of .* topic 't': dumps returned str"):
        serialize(dumps, "value", "t", {}, None)


def test_a_built_in_ones_failure_says_each_thing_once() -> None:
    with pytest.raises(SerializationError) as caught:
        serialize(StringSerializer(), "key", "t", 5, None)
    assert str(caught.value) == (
        "the key of a record for topic 't': StringSerializer failed on int: expected a str"
    )
