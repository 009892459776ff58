"""Requests read as Kafka's brokers read them: what they take, and what not even they take."""

from __future__ import annotations

import pytest

from kafka_fast.errors import MalformedError
from kafka_fast.protocol import schema
from kafka_fast.protocol._decode import decode_as_brokers_do
from kafka_fast.protocol.apis.records.produce import ProduceRequest
from kafka_fast.protocol.frame import decode_request, encode_request
from kafka_fast.protocol.schema import Message, Struct, array, struct
from tests.unit.protocol.test_codec import uvarint


class Part(Struct):
    """A nested struct with a tag."""

    late: int = schema.int32("2+", default=-1, tag=0, tagged="2+")


class Odd(Message, versions="0-2", flexible="1+"):
    """A message with all that may be odd."""

    flag: bool = schema.bool_("0+")
    text: str | None = schema.string("0+", nullable="0+")
    name: str = schema.string("0+")
    blob: bytes | None = schema.bytes_("0+", nullable="0+")
    numbers: list[int] | None = array(schema.int32, "0+", nullable="0+")
    part: Part = struct(Part, "1+")
    tagged: str | None = schema.string("1+", nullable="1+", default=None, tag=0, tagged="1+")
    later: int = schema.int32("2+", default=-1, tag=1, tagged="2+")


PLAIN = "01 ffff 0000 ffffffff ffffffff"
FLEXIBLE = "01 00 01 00 00"


def read(data: str, version: int) -> Odd:
    message, _ = decode_as_brokers_do(Odd.program(version), bytes.fromhex(data))
    assert isinstance(message, Odd)
    return message


def test_bytes_behind_the_message_are_left() -> None:
    assert decode_as_brokers_do(Odd.program(0), bytes.fromhex(PLAIN + "010203")) == (
        Odd(flag=True, text=None, blob=None, numbers=None),
        13,
    )


@pytest.mark.parametrize("size", [-1, -2, -3, -0x8000])
def test_each_negative_length_is_null(size: int) -> None:
    text, count = (size.to_bytes(width, "big", signed=True).hex() for width in (2, 4))
    message = read(f"00 {text} 0000 {count} {count}", 0)
    assert (message.text, message.blob, message.numbers) == (None, None, None)


@pytest.mark.parametrize("size", [0x80000001, 0xFFFFFFFE, 0xFFFFFFFF])
def test_a_compact_length_beyond_31_bits_is_null(size: int) -> None:
    length = uvarint(size).hex()
    message = read(f"00 {length} 01 {length} {length} 00 00", 1)
    assert (message.text, message.blob, message.numbers) == (None, None, None)


@pytest.mark.parametrize(
    ("data", "version", "reason"),
    [
        ("00 ffff fffe ffffffff ffffffff", 0, "a null that the version does not allow"),
        ("00 00 00 00 00 00", 1, "a null that the version does not allow"),
        (f"00 00 {uvarint(0x80000001).hex()} 00 00 00", 1, "a null that the version"),
        (f"00 00 {uvarint(0x80000000).hex()} 00 00 00", 1, "a string of length 2147483647 in 3"),
        ("00 ffff 0005 61", 0, "a string of length 5 in 1 byte"),
        (FLEXIBLE + "00 01 05 02", 1, "too few bytes for tag 5"),
        (FLEXIBLE + "00 01 00 01", 1, "a length that cannot be read"),
        (FLEXIBLE + "00 01 01 04 00000001", 1, "tag 1, which the version does not have"),
        (FLEXIBLE + "01 00 04 00000005 00", 1, "tag 0, which the version does not have"),
        (FLEXIBLE + "00 ffffffff0f", 1, "4294967295 tagged fields"),
    ],
)
def test_where_lenience_ends(data: str, version: int, reason: str) -> None:
    with pytest.raises(MalformedError, match=reason):
        read(data, version)


def test_a_string_has_at_most_32767_bytes() -> None:
    def message(size: int) -> bytes:
        return b"\0\0" + uvarint(size + 1) + b"a" * size + b"\0\0\0\0"

    assert len(decode_as_brokers_do(Odd.program(1), message(0x7FFF))[0].name) == 0x7FFF
    with pytest.raises(MalformedError, match="a string of length 32768"):
        decode_as_brokers_do(Odd.program(1), message(0x8000))
    assert len(Odd.decode(message(0x8000), 1).name) == 0x8000


@pytest.mark.parametrize(
    ("section", "tagged", "later"),
    [
        ("02 05 00 03 00", None, -1),
        ("02 05 00 05 01 61", None, -1),
        ("02 00 02 0261 00 02 0262", "b", -1),
        ("02 01 04 00000009 00 02 0261", "a", 9),
        ("03 01 04 00000009 07 00 00 02 0261", "a", 9),
        ("01 00 01 0261", "a", -1),
        ("01 00 7f 0261", "a", -1),
        ("02 00 00 0261 01 00 00000009", "a", 9),
    ],
)
def test_tags(section: str, tagged: str | None, later: int) -> None:
    message = read(FLEXIBLE + "00" + section, 2)
    assert (message.tagged, message.later) == (tagged, later)


def test_tags_of_a_nested_struct() -> None:
    assert read(FLEXIBLE + "01 00 04 00000005 00", 2).part == Part(late=5)


def test_text_that_is_not_utf8_has_a_replacement() -> None:
    assert read("00 0003 61ff62 0000 ffffffff ffffffff", 0).text == "a\N{REPLACEMENT CHARACTER}b"


def test_a_boolean_is_true_unless_it_is_0() -> None:
    assert read("80" + PLAIN[2:], 0).flag is True


def test_a_request_with_bytes_behind_it() -> None:
    request = ProduceRequest(acks=1)
    frame = encode_request(request, 12, 5, "x")[4:] + b"\0\0\0"
    header, body = decode_request(frame, as_brokers_do=True)
    assert (header.client_id, body) == ("x", request)
    with pytest.raises(MalformedError, match="3 bytes left over"):
        decode_request(frame)
