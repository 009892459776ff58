"""The codec: golden bytes written from the specification, bounds, and messages of errors."""

from __future__ import annotations

import pickle

import pytest

from kafka_fast.errors import MalformedError, UnsupportedVersionError
from kafka_fast.protocol import schema
from kafka_fast.protocol._encode import position_of
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_fast.protocol.schema import Message, Struct, array, struct


def uvarint(value: int) -> bytes:
    """Encode an unsigned varint."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Part(Struct):
    """A nested struct."""

    number: int = schema.int32("0+", default=7)
    text: str = schema.string("1+")


class Sample(Message, versions="0-3", flexible="2+"):
    """A message that uses every kind of field."""

    flag: bool = schema.bool_("0+")
    tiny: int = schema.int8("0+")
    small: int = schema.int16("0+")
    port: int = schema.uint16("0+")
    medium: int = schema.int32("0+")
    counter: int = schema.uint32("0+")
    large: int = schema.int64("0+")
    real: float = schema.float64("0+")
    id: bytes = schema.uuid("0+")
    text: str | None = schema.string("0+", nullable="1+")
    blob: bytes | None = schema.bytes_("0+", nullable="1+")
    batch: schema.Buffer | None = schema.records("0+", nullable="0+")
    part: Part = struct(Part, "0+")
    maybe: Part | None = struct(Part, "1+", nullable="1+", default=None)
    numbers: list[int] = array(schema.int32, "0+")
    names: list[str] | None = array(schema.string, "0+", nullable="1+")
    parts: list[Part] = array(Part, "0+")
    late: int = schema.int32("3+", default=-1)
    dropped: int = schema.int32("3+", default=-1, ignorable=True)
    tagged_text: str | None = schema.string("2+", nullable="2+", default=None, tag=0, tagged="2+")
    tagged_part: Part = struct(Part, "2+", tag=3, tagged="2+")


def full() -> Sample:
    return Sample(
        flag=True,
        tiny=-2,
        small=-3,
        port=65535,
        medium=-4,
        counter=0xFFFFFFFF,
        large=-5,
        real=1.5,
        id=bytes(range(16)),
        text="häh",
        blob=b"\x01\x02",
        batch=b"\x03",
        part=Part(number=1),
        numbers=[1, -1],
        names=["a"],
        parts=[Part(number=2), Part()],
    )


FIXED = (
    "01 fe fffd ffff fffffffc ffffffff fffffffffffffffb 3ff8000000000000"
    "000102030405060708090a0b0c0d0e0f"
)  # fmt: skip
GOLDEN = {
    0: FIXED
    + "0004 68c3a468 00000002 0102 00000001 03"
    "00000001"
    "00000002 00000001 ffffffff"
    "00000001 0001 61"
    "00000002 00000002 00000007",
    1: FIXED
    + "0004 68c3a468 00000002 0102 00000001 03"
    "00000001 0000"
    "ff"
    "00000002 00000001 ffffffff"
    "00000001 0001 61"
    "00000002 00000002 0000 00000007 0000",
    2: FIXED
    + "05 68c3a468 03 0102 02 03"
    "00000001 01 00"
    "ff"
    "03 00000001 ffffffff"
    "02 02 61"
    "03 00000002 01 00 00000007 01 00"
    "00",
    3: FIXED
    + "05 68c3a468 03 0102 02 03"
    "00000001 01 00"
    "ff"
    "03 00000001 ffffffff"
    "02 02 61"
    "03 00000002 01 00 00000007 01 00"
    "ffffffff ffffffff"
    "00",
}  # fmt: skip


@pytest.mark.parametrize("version", GOLDEN)
def test_every_kind_of_field_has_the_bytes_of_the_specification(version):
    data = bytes.fromhex(GOLDEN[version])
    assert full().encode(version) == data
    assert Sample.decode(data, version) == full()


@pytest.mark.parametrize(
    ("version", "field", "rest"),
    [
        (0, "flag", "01 fe"),
        (0, "medium", "fffffffc ffffffff"),
        (0, "names", "00000001 0001 61"),
        (1, "maybe", "ff 00000002 00000001"),
        (2, "text", "05 68c3a468 03"),
        (2, "parts", "03 00000002 01 00"),
        (3, "late", "ffffffff ffffffff 00"),
    ],
)
def test_the_position_of_a_field(version: int, field: str, rest: str) -> None:
    pos = full().position_of(field, version)
    assert full().encode(version)[pos:].startswith(bytes.fromhex(rest))


@pytest.mark.parametrize("field", ["late", "tagged_text", "number", ""])
def test_a_field_without_a_place_of_its_own_has_no_position(field: str) -> None:
    with pytest.raises(ValueError, match=f"^Sample v2 has no field {field} in a place of its own"):
        full().position_of(field, 2)


def test_a_position_behind_a_value_that_does_not_fit_is_refused_with_its_path() -> None:
    message = full()
    message.small = 1 << 20
    assert message.position_of("small", 0) == 2
    with pytest.raises(ValueError, match="small: 1048576 is out of range"):
        message.position_of("port", 0)
    with pytest.raises(TypeError, match="Sample expected, not Part"):
        position_of(Sample.program(0), Part(), "flag")


def test_tagged_fields_are_written_in_order_and_only_if_set():
    message = full()
    message.tagged_part = Part(number=9, text="x")
    message.tagged_text = "t"
    expected = GOLDEN[2][:-2] + "02 00 02 0274 03 07 00000009 0278 00"  # fmt: skip
    data = bytes.fromhex(expected)
    assert message.encode(2) == data
    assert Sample.decode(data, 2) == message


def test_a_tagged_value_of_the_wrong_class_is_refused_with_its_path():
    with pytest.raises(TypeError, match="Sample v2: tagged_part: Part expected, not Sample"):
        Sample(tagged_part=full()).encode(2)
    with pytest.raises(TypeError, match="Sample v2: tagged_text: str expected, not int"):
        Sample(tagged_text=5).encode(2)


def test_a_tagged_value_of_several_kilobytes_moves_up_behind_its_size():
    message = Sample(tagged_text="z" * 70_000)
    assert Sample.decode(message.encode(2), 2) == message


def test_unknown_tags_are_skipped():
    data = bytes.fromhex(GOLDEN[2][:-2] + "02 01 03 aabbcc 05 00")  # fmt: skip
    assert Sample.decode(data, 2) == full()


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ("02 05 00 05 00", "tag 5 behind tag 5"),
        ("02 05 00 04 00", "tag 4 behind tag 5"),
        ("01 05 02 00", "too few bytes for tag 5"),
        ("01 00 03 0274 00", "1 byte left over in tag 0"),
        ("01 00 01 02", "in 0 bytes"),
        ("ffffffff0f", "4294967295 tagged fields"),
        ("ffffffffff0f", "tagged fields"),
    ],
)  # fmt: skip
def test_malformed_tagged_sections(section, reason):
    with pytest.raises(MalformedError, match=reason):
        Sample.decode(bytes.fromhex(GOLDEN[2][:-2] + section), 2)


def test_more_tagged_fields_than_the_limit():
    count = 10_001
    section = uvarint(count) + b"".join(uvarint(tag) + b"\x00" for tag in range(100, 100 + count))
    with pytest.raises(MalformedError, match="10001 tagged fields"):
        Sample.decode(bytes.fromhex(GOLDEN[2][:-2]) + section, 2)


@pytest.mark.parametrize("version", GOLDEN)
def test_truncation_at_every_byte(version):
    data = bytes.fromhex(GOLDEN[version])
    for size in range(len(data)):
        with pytest.raises(MalformedError, match=f"Sample v{version}: "):
            Sample.decode(data[:size], version)


@pytest.mark.parametrize("version", GOLDEN)
def test_bytes_left_over(version):
    with pytest.raises(MalformedError, match="1 byte left over"):
        Sample.decode(bytes.fromhex(GOLDEN[version]) + b"\x00", version)


@pytest.mark.parametrize(
    ("data", "version", "message"),
    [
        ("7fffffff" + "00" * 8, 1, "an array of 2147483647 elements in 8 bytes at byte 0 (topics)"),
        ("fffffffe", 1, "an array of -2 elements at byte 0 (topics)"),
        ("ffffffff", 0, "a null that the version does not allow at byte 0 (topics)"),
        ("00000001 fffe", 1, "a string of length -2 at byte 4 (topics[0].name)"),
        ("00000001 ffff", 1, "a null that the version does not allow at byte 4 (topics[0].name)"),
        ("00000001 0005 6162", 1, "a string of length 5 in 2 bytes at byte 4 (topics[0].name)"),
        ("00000001 0002 ff61", 1, "a string that is not UTF-8 (invalid start byte) at byte 4"),
        ("00000001 0003 eda080", 1, "a string that is not UTF-8 (invalid continuation byte)"),
        ("02 00 00 01 00 00 00", 9, "a null that the version does not allow at byte 1 (topics[0]"),
        ("8080808010", 9, "a count that cannot be read at byte 0 (topics)"),
    ],
)  # fmt: skip
def test_errors_name_the_field_and_the_position(data, version, message):
    with pytest.raises(MalformedError) as caught:
        MetadataRequest.decode(bytes.fromhex(data), version)
    error = caught.value
    assert f"MetadataRequest v{version}: {message}" in str(error)
    assert f"{error.problem} at byte {error.pos} ({error.place})" in str(error)
    assert pickle.loads(pickle.dumps(error)).place == error.place


def test_an_array_can_be_read_later():
    """Its elements are made one by one, of bytes that the iterator keeps."""
    decoded = Sample.decode(bytes.fromhex(GOLDEN[3]), 3, later="parts")
    parts = decoded.parts
    decoded.parts = []
    expected = full()
    expected.parts = []
    assert decoded == expected
    assert len(parts) == 2
    assert next(parts) == Part(number=2)
    assert len(parts) == 1
    assert list(parts) == [Part()]
    assert list(Sample.decode(bytes.fromhex(GOLDEN[0]), 0, later="numbers").numbers) == [1, -1]


@pytest.mark.parametrize("name", ["part", "number", "absent"])
def test_only_an_array_of_the_message_can_be_read_later(name):
    with pytest.raises(ValueError, match=f"Sample v3 has no array {name}"):
        Sample.decode(bytes.fromhex(GOLDEN[3]), 3, later=name)


@pytest.mark.parametrize("version", GOLDEN)
def test_an_array_that_is_read_later_is_checked_at_once(version):
    data = bytes.fromhex(GOLDEN[version])
    for size in range(len(data)):
        with pytest.raises(MalformedError, match=f"Sample v{version}: ") as caught:
            Sample.decode(data[:size], version, later="parts")
        with pytest.raises(MalformedError) as expected:
            Sample.decode(data[:size], version)
        assert str(caught.value) == str(expected.value)


def test_an_array_has_at_most_a_million_elements():
    class Wide(Message, versions="0"):
        """Nothing but bytes."""

        items: list[int] = array(schema.int8, "0+")

    fits = (1_000_000).to_bytes(4, "big") + bytes(1_000_000)
    assert len(Wide.decode(fits, 0).items) == 1_000_000
    with pytest.raises(MalformedError, match="1000001 elements"):
        Wide.decode((1_000_001).to_bytes(4, "big") + bytes(1_000_001), 0)


def test_records_are_views_of_the_bytes_that_were_decoded():
    data = bytes.fromhex(GOLDEN[0])
    batch = Sample.decode(data, 0).batch
    assert isinstance(batch, memoryview)
    assert batch.obj is data
    assert batch == b"\x03"
    inner = Sample.decode(memoryview(b"pad" + data)[3:], 0).batch
    assert inner == b"\x03"
    odd = memoryview(bytearray(data)).cast("B", (1, len(data)))
    assert Sample.decode(odd, 0).batch == b"\x03"


def test_decode_accepts_any_bytes_like():
    data = bytes.fromhex(GOLDEN[3])
    assert Sample.decode(bytearray(data), 3) == Sample.decode(memoryview(data), 3) == full()


def test_a_field_that_the_version_lacks_must_be_unset_or_ignorable():
    message = Sample(dropped=5)
    assert Sample.decode(message.encode(2), 2) == Sample()
    message.late = 5
    with pytest.raises(UnsupportedVersionError, match="Sample v2: late: set, but"):
        message.encode(2)
    assert Sample.decode(message.encode(3), 3) == message
    with pytest.raises(UnsupportedVersionError, match=r"parts\[0\].text"):
        Sample(parts=[Part(text="x")]).encode(0)


@pytest.mark.parametrize(
    ("field", "value", "error", "message"),
    [
        ("tiny", 128, ValueError, "tiny: 128 is out of range"),
        ("port", -1, ValueError, "port: -1 is out of range"),
        ("large", 1 << 63, ValueError, "large: 9223372036854775808 is out of range"),
        ("medium", "1", TypeError, "medium: int expected, not str"),
        ("flag", 2, ValueError, "flag: 2 is out of range"),
        ("real", "1", TypeError, "real: float expected, not str"),
        ("id", bytes(15), ValueError, "id: a UUID has 16 bytes, not 15"),
        ("id", None, TypeError, "id: contiguous bytes expected, not NoneType"),
        ("text", b"x", TypeError, "text: str expected, not bytes"),
        ("text", "x" * 32768, ValueError, "text: 32768 is more than"),
        ("text", None, TypeError, "text: None where"),
        ("text", "\ud800", ValueError, "surrogates"),
        ("blob", "x", TypeError, "blob: contiguous bytes expected, not str"),
        ("blob", memoryview(b"abcd")[::2], TypeError, "blob: contiguous bytes expected"),
        ("part", None, TypeError, "part: None where"),
        ("part", full(), TypeError, "part: Part expected, not Sample"),
        ("numbers", (1, None), TypeError, r"numbers\[1\]: int expected"),
        ("numbers", 5, TypeError, "numbers: list expected, not int"),
        ("names", None, TypeError, "names: None where"),
        ("parts", [Part(), 1], TypeError, r"parts\[1\]: Part expected, not int"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_path(field, value, error, message):
    sample = full()
    setattr(sample, field, value)
    with pytest.raises(error, match=message):
        sample.encode(0)


def test_nulls_where_they_are_allowed():
    message = Sample(text=None, blob=None, batch=None, names=None)
    for version in (1, 2, 3):
        assert Sample.decode(message.encode(version), version) == message


def test_metadata_response_v9_golden_bytes():
    """A whole answer, written down by hand from the message definition."""
    data = bytes.fromhex(
        "00000000"  # throttle_time_ms
        "02 00000001 0a 6c6f63616c686f7374 00002384 00 00"  # one broker, no rack
        "04 636964 00000001"  # cluster_id "cid", controller_id
        "02 0000 02 74 00"  # one topic "t", not internal
        "02 0000 00000000 00000001 00000005"  # one partition, leader 1, epoch 5
        "02 00000001 02 00000001 01 00"  # replicas, isr, offline
        "80000000 00"  # topic_authorized_operations
        "80000000"  # cluster_authorized_operations
        "00"
    )  # fmt: skip
    expected = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="localhost", port=9092)],
        cluster_id="cid",
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                name="t",
                partitions=[
                    MetadataResponsePartition(
                        leader_id=1, leader_epoch=5, replica_nodes=[1], isr_nodes=[1]
                    )
                ],
            )
        ],
    )
    assert MetadataResponse.decode(data, 9) == expected
    assert expected.encode(9) == data


def test_a_request_without_topics_means_all_of_them():
    assert MetadataRequest(topics=None).encode(1) == bytes.fromhex("ffffffff")
    assert MetadataRequest(topics=None).encode(9) == bytes.fromhex("00 01 00 00 00")  # fmt: skip
    assert MetadataRequest(topics=[MetadataRequestTopic(name="t")]).encode(4) == bytes.fromhex(
        "00000001 0001 74 01"
    )  # fmt: skip
