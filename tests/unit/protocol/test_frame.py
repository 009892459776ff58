"""Frames: headers of both sides, ApiVersions' exceptions, and the data plane's prefixes."""

from __future__ import annotations

import pytest

from kafka_fast.errors import MalformedError, UnsupportedVersionError
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis import api_keys, request_class
from kafka_fast.protocol.apis.cluster.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest, MetadataResponse
from kafka_fast.protocol.apis.groups.heartbeat import HeartbeatRequest
from kafka_fast.protocol.apis.records.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_fast.protocol.apis.records.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafka_fast.protocol.apis.security.sasl_handshake import SaslHandshakeRequest
from kafka_fast.protocol.apis.transactions.txn_offset_commit import TxnOffsetCommitRequest


def test_request_header_v1_golden_bytes():
    data = frame.encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 7, "me")
    assert data.hex(" ") == "00 00 00 13 00 11 00 01 00 00 00 07 00 02 6d 65 00 05 50 4c 41 49 4e"


def test_request_header_v2_golden_bytes():
    """The client id keeps its two-byte length in the flexible header."""
    data = frame.encode_request(
        ApiVersionsRequest(client_software_name="n", client_software_version="1"), 3, 1, "c"
    )
    assert data.hex(" ") == "00 00 00 11 00 12 00 03 00 00 00 01 00 01 63 00 02 6e 02 31 00"


def test_a_null_client_id():
    data = frame.encode_request(MetadataRequest(), 0, 1, None)
    header, body = frame.decode_request(data[4:])
    assert header == frame.RequestHeader(3, 0, 1, None)
    assert body == MetadataRequest()


def test_header_versions():
    assert frame.request_header_version(18, 2) == 1
    assert frame.request_header_version(18, 3) == 2
    assert frame.response_header_version(18, 3) == 0
    assert frame.response_header_version(3, 8) == 0
    assert frame.response_header_version(3, 9) == 1
    assert frame.response_header_version(17, 1) == 0


@pytest.mark.parametrize("api_key", api_keys())
def test_every_request_passes_from_a_client_to_a_broker(api_key):
    cls = request_class(api_key)
    for version in range(cls.versions.low, cls.versions.high + 1):
        sent = frame.encode_request(cls(), version, 99, "client")
        assert int.from_bytes(sent[:4], "big") == len(sent) - 4
        header, body = frame.decode_request(sent[4:])
        assert header == frame.RequestHeader(api_key, version, 99, "client")
        assert body == cls()


@pytest.mark.parametrize("version", range(14))
def test_a_response_passes_from_a_broker_to_a_client(version):
    sent = frame.encode_response(MetadataResponse(controller_id=-1), version, 12)
    assert int.from_bytes(sent[:4], "big") == len(sent) - 4
    assert frame.decode_response(MetadataResponse, sent[4:], version) == (12, MetadataResponse())


def test_a_version_that_the_broker_lacks_carries_the_header():
    data = bytes.fromhex("0003 0063 00000005 0001 63")
    with pytest.raises(UnsupportedVersionError, match="Metadata v99") as caught:
        frame.decode_request(data)
    assert caught.value.header == frame.RequestHeader(3, 99, 5, None)
    with pytest.raises(UnsupportedVersionError, match="API 1000 v0"):
        frame.decode_request(bytes.fromhex("03e8 0000 00000005"))


def test_truncated_frames():
    data = frame.encode_request(TxnOffsetCommitRequest(group_id="g"), 3, 1, "c")[4:]
    for size in range(len(data)):
        with pytest.raises(MalformedError):
            frame.decode_request(data[:size])
    answer = frame.encode_response(MetadataResponse(), 9, 1)[4:]
    for size in range(len(answer)):
        with pytest.raises(MalformedError):
            frame.decode_response(MetadataResponse, answer[:size], 9)


def test_api_versions_answer():
    body = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=3, min_version=0, max_version=13)],
        finalized_features=[FinalizedFeatureKey(name="transaction.version", max_version_level=2)],
    )
    for version in (3, 4, 5):
        sent = frame.encode_response(body, version, 4)
        assert frame.decode_api_versions_response(sent[4:], version) == (4, body)


def test_api_versions_refusal_comes_in_the_shape_of_version_0():
    body = ApiVersionsResponse(
        error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=3)]
    )
    sent = frame.encode_response(body, 0, 4)
    assert frame.decode_api_versions_response(sent[4:], 5) == (4, body)


@pytest.mark.parametrize("rest", ["", "00", "00000000ffff", "7fffffff"])
def test_api_versions_refusal_with_a_body_that_is_not_valid(rest):
    """The error code alone is enough to ask again with a lower version."""
    data = bytes.fromhex("00000009 0023" + rest)
    assert frame.decode_api_versions_response(data, 4) == (9, ApiVersionsResponse(error_code=35))


def test_api_versions_success_must_be_well_formed():
    with pytest.raises(MalformedError):
        frame.decode_api_versions_response(bytes.fromhex("00000009 0000"), 3)
    with pytest.raises(MalformedError):
        frame.decode_api_versions_response(bytes.fromhex("0000"), 3)


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("transactional_id", [None, "tx"])
def test_produce_prefixes_stitch_into_a_whole_request(version, transactional_id):
    """What the data plane does by hand gives the bytes of the table codec."""
    topic_id = bytes(range(16))
    prefix = frame.produce_prefix(version, "client", transactional_id, -1, 30000)
    assert prefix[:4] == bytes(4)
    topic = frame.produce_topic_prefix(version, "topic", topic_id)
    flexible = version >= 9
    one, tags = (b"\x02", b"\x00") if flexible else (b"\x00\x00\x00\x01", b"")
    size = b"\x04" if flexible else b"\x00\x00\x00\x03"
    partition = one + (5).to_bytes(4, "big") + size + b"abc" + tags
    stitched = bytearray(prefix + one + topic + partition + tags + tags)
    stitched[:4] = (len(stitched) - 4).to_bytes(4, "big")
    stitched[8:12] = (77).to_bytes(4, "big")
    body = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=30000,
        topic_data=[
            TopicProduceData(
                name="topic",
                topic_id=topic_id,
                partition_data=[PartitionProduceData(index=5, records=b"abc")],
            )
        ],
    )
    assert bytes(stitched) == frame.encode_request(body, version, 77, "client")


@pytest.mark.parametrize("rack", ["", "rack-1", "r" * 130])
@pytest.mark.parametrize("version", FetchRequest.versions)
def test_fetch_parts_stitch_into_a_whole_request(version, rack):
    """What the data plane does by hand gives the bytes of the table codec."""
    limits = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20}
    topic_id = bytes(range(16))
    parts = frame.fetch_parts(version, "client", **limits, read_committed=True, rack_id=rack)
    flexible = version >= 12
    one, none = (b"\x02", b"\x01") if flexible else (b"\x00\x00\x00\x01", bytes(4))
    tags = b"\x00" if flexible else b""
    partition = (
        (5).to_bytes(4, "big")
        + ((3).to_bytes(4, "big") if version >= 9 else b"")
        + (1000).to_bytes(8, "big")
        + (b"\xff" * 4 if version >= 12 else b"")
        + (b"\xff" * 8 if version >= 5 else b"")
        + (4096).to_bytes(4, "big")
    )
    topic = frame.fetch_topic_prefix(version, "topic", topic_id)
    forgotten = none if version >= 7 else b""
    stitched = bytearray(
        parts.prefix + one + topic + one + partition + tags + tags + forgotten + parts.suffix
    )
    stitched[:4] = (len(stitched) - 4).to_bytes(4, "big")
    stitched[8:12] = (77).to_bytes(4, "big")
    session = {"session_id": 9, "session_epoch": 4} if version >= 7 else {}
    if session:
        at = len(parts.prefix)
        stitched[at - 8 : at] = (9).to_bytes(4, "big") + (4).to_bytes(4, "big")
    body = FetchRequest(
        **limits,
        **session,
        isolation_level=1,
        rack_id=rack if version >= 11 else "",
        topics=[
            FetchTopic(
                topic="topic",
                topic_id=topic_id,
                partitions=[
                    FetchPartition(
                        partition=5,
                        current_leader_epoch=3,
                        fetch_offset=1000,
                        partition_max_bytes=4096,
                    )
                ],
            )
        ],
    )
    assert bytes(stitched) == frame.encode_request(body, version, 77, "client")


@pytest.mark.parametrize("client_id", [None, "", "client"])
@pytest.mark.parametrize("version", range(5))
def test_where_a_field_stands_in_a_frame(version: int, client_id: str | None) -> None:
    """The header and the strings before a field have no fixed length."""
    request = HeartbeatRequest(group_id="gröup", generation_id=0x01020304, member_id="m")
    pos = frame.request_position_of("generation_id", request, version, client_id)
    assert frame.encode_request(request, version, 9, client_id)[pos : pos + 4].hex() == "01020304"
