"""Requests that follow no schema to the letter, and that Apache Kafka answers all the same.

Its readers were written for its own clients. What others have come to rely on is stated here.
"""

from __future__ import annotations

import struct

import pytest

from kafka_fast.protocol import frame as framing
from kafka_fast.protocol.apis import api_name, request_class
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest
from kafka_fast.protocol.apis.records.produce import ProduceRequest
from kafka_fast.protocol.apis.security.describe_acls import DescribeAclsRequest
from kafka_fast.protocol.apis.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from kafka_fast.testing.broker.handlers import OFFERED
from kafka_fast.testing.broker.versions import (
    ADD_PARTITIONS_TO_TXN,
    DESCRIBE_ACLS,
    FETCH,
    METADATA,
    PRODUCE,
)
from tests.integration.scenarios.wire import WireClient, connected

CORRELATION_ID = 77
ANY = 1
ALL_RULES = DescribeAclsRequest(
    resource_type_filter=ANY,
    resource_name_filter=None,
    pattern_type_filter=ANY,
    principal_filter=None,
    host_filter=None,
    operation=ANY,
    permission_type=ANY,
)
BODIES = {
    PRODUCE: ProduceRequest(acks=1),
    DESCRIBE_ACLS: ALL_RULES,
    ADD_PARTITIONS_TO_TXN: AddPartitionsToTxnRequest(
        transactions=[AddPartitionsToTxnTransaction(transactional_id="x")]
    ),
}
"""Where a request with nothing in it ends the connection, or is not answered."""
NO_CLIENT_ID = b"\xff\xff"
NO_TAGS = b"\0"
ALL_TOPICS = b"\xff\xff\xff\xff"  # Metadata before v9
NO_AUTO_CREATION = b"\0"
NO_OPTIONS = b"\0\0\0"  # Metadata v9: three booleans
NO_PARTITIONS = struct.pack(">iiibii", 0, 0, 1000, 0, 0, -1) + b"\1\1\1"  # Fetch, but for its tags
REPLICA_ID = b"\xff\xff\xff\xff"  # Fetch before v15


def request(api: int, version: int, *rest: bytes, client_id: bytes = NO_CLIENT_ID) -> bytes:
    """Return a request written by hand; `rest` begins with the tags of a flexible header."""
    header = struct.pack(">hhi", api, version, CORRELATION_ID) + client_id
    return framed(header + b"".join(rest))


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def is_answered(client: WireClient) -> bool:
    return client.receive()[:4] == struct.pack(">i", CORRELATION_ID)


@pytest.mark.parametrize("api", OFFERED, ids=api_name)
def test_bytes_behind_a_request(client: WireClient, api: int) -> None:
    body = BODIES.get(api) or request_class(api)()
    whole = framing.encode_request(body, OFFERED[api][1], CORRELATION_ID, "x")[4:]
    client.send_bytes(framed(whole + b"\0\1\2"))
    assert is_answered(client)
    assert client.ask(MetadataRequest(topics=[]), 12).brokers


ODD = {
    "client id of a negative length": request(
        METADATA, 4, ALL_TOPICS, NO_AUTO_CREATION, client_id=b"\xff\xfb"
    ),
    "client id that is no text": request(
        METADATA, 4, ALL_TOPICS, NO_AUTO_CREATION, client_id=b"\0\2\xff\xfe"
    ),
    "array of a negative count": request(METADATA, 4, b"\xff\xff\xff\xfb", NO_AUTO_CREATION),
    "array of a count beyond 31 bits": request(
        METADATA, 9, NO_TAGS, b"\x81\x80\x80\x80\x08", NO_OPTIONS, NO_TAGS
    ),
    "boolean that is neither 0 nor 1": request(METADATA, 4, ALL_TOPICS, b"\5"),
    "name that is no text": request(
        METADATA, 9, NO_TAGS, b"\2\3\xff\xfe", NO_TAGS, NO_OPTIONS, NO_TAGS
    ),
    "tags that descend": request(METADATA, 9, b"\2\5\0\3\0", b"\0", NO_OPTIONS, NO_TAGS),
    "tag twice": request(METADATA, 9, b"\2\5\0\5\1a", b"\0", NO_OPTIONS, NO_TAGS),
    "known tag twice": request(FETCH, 15, NO_TAGS, NO_PARTITIONS, b"\2\0\1\0\0\1\0"),
    "known tag of a wrong size": request(FETCH, 15, NO_TAGS, NO_PARTITIONS, b"\1\0\1\2a"),
}


@pytest.mark.parametrize("data", ODD.values(), ids=ODD)
def test_what_is_odd_is_answered(client: WireClient, data: bytes) -> None:
    client.send_bytes(data)
    assert is_answered(client)


REFUSED = {
    "filter of rules with unknown types": framing.encode_request(
        DescribeAclsRequest(resource_name_filter=None, principal_filter=None, host_filter=None),
        3,
        CORRELATION_ID,
        "x",
    ),
    "null for a name": request(METADATA, 4, b"\0\0\0\1\xff\xff", NO_AUTO_CREATION),
    "string beyond 32767 bytes": request(
        METADATA, 9, NO_TAGS, b"\2\x81\x80\2", b"a" * 32768, NO_TAGS, NO_OPTIONS, NO_TAGS
    ),
    "tag of a later version": request(FETCH, 12, NO_TAGS, REPLICA_ID, NO_PARTITIONS, b"\1\1\0"),
    "bytes of an unknown tag that are missing": request(
        METADATA, 9, NO_TAGS, b"\0", NO_OPTIONS, b"\1\5\2a"
    ),
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_where_lenience_ends(address: str, data: bytes) -> None:
    with connected(address) as client:
        client.send_bytes(data)
        assert client.is_closed()
