"""Versions that are offered, and bytes that are no request."""

from __future__ import annotations

import os
import struct
from typing import Any

import pytest

from kafka_fast import errors
from kafka_fast.protocol import frame as framing
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest
from tests.integration.scenarios.steps import (
    LATEST,
    list_offset,
)
from tests.integration.scenarios.wire import (
    ClosedError,
    WireClient,
    batch,
    connected,
    produce_request,
)


def api_versions(**fields: Any) -> ApiVersionsRequest:
    names: dict[str, Any] = {"client_software_name": "test", "client_software_version": "1.0"}
    return ApiVersionsRequest(**{**names, **fields})


@pytest.mark.parametrize("version", range(6))
def test_versions_that_are_offered(client: WireClient, version: int) -> None:
    response = client.ask(api_versions(), version)
    ranges = {one.api_key: (one.min_version, one.max_version) for one in response.api_keys}
    ours = {key: ranges[key] for key in (0, 1, 2, 3, 18, 19, 20, 22)}
    assert response.error_code == 0
    assert ours == {
        0: (0, 13),
        1: (4, 18),
        2: (1, 11),
        3: (0, 13),
        18: (0, 5),
        19: (2, 7),
        20: (1, 6),
        22: (0, 5),
    }


def test_a_newer_api_versions_is_answered_in_version_0(client: WireClient) -> None:
    body = struct.pack(">hhihb", 18, 99, 77, -1, 0)
    client.send_bytes(struct.pack(">i", len(body)) + body)
    correlation_id, response = framing.decode_api_versions_response(client.receive(), 0)
    assert (correlation_id, response.error_code) == (77, errors.UnsupportedVersion.code)
    assert [(one.api_key, one.min_version, one.max_version) for one in response.api_keys] == [
        (18, 0, 5)
    ]
    assert client.ask(api_versions(), 3).error_code == 0


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a b", "1"), ("-a", "1"), ("a", "")])
def test_a_client_has_to_say_who_it_is(client: WireClient, name: str, version: str) -> None:
    request = api_versions(client_software_name=name, client_software_version=version)
    response: ApiVersionsResponse = client.ask(request, 3)
    assert response.error_code == errors.InvalidRequest.code
    assert client.ask(request, 2).error_code == 0


def test_a_client_may_say_whom_it_looks_for(client: WireClient) -> None:
    cluster_id = client.metadata().cluster_id

    def ask(cluster: str | None, node: int) -> int:
        code: int = client.ask(api_versions(cluster_id=cluster, node_id=node), 5).error_code
        return code

    assert ask(cluster_id, 1) == 0
    assert ask("other", 1) == errors.RebootstrapRequired.code
    assert ask(cluster_id, 77) == errors.RebootstrapRequired.code
    assert ask(cluster_id, -1) == errors.InvalidRequest.code
    assert ask(None, 1) == errors.InvalidRequest.code


def frame_of(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize(
    "data",
    [
        frame_of(struct.pack(">hhih", 999, 0, 77, -1)),
        frame_of(struct.pack(">hhihb", 1, 99, 77, -1, 0)),
        frame_of(struct.pack(">hhih", 18, 99, 77, -1)),
        frame_of(struct.pack(">hhihhii", 0, 2, 77, -1, 1, 1000, 0)),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x00",
        b"\x7f\xff\xff\xff",
        frame_of(framing.encode_request(MetadataRequest(topics=None), 9, 1, "x")[4:-2]),
        frame_of(os.urandom(100)),
    ],
    ids=[
        "api",
        "version",
        "api-versions",
        "old-produce",
        "http",
        "negative",
        "empty",
        "huge",
        "cut",
        "random",
    ],
)
def test_what_is_no_request_ends_the_connection(address: str, data: bytes) -> None:
    with connected(address) as client:
        client.send_bytes(data)
        assert client.is_closed()
    with connected(address) as client:
        assert client.ask(api_versions(), 3).error_code == 0


def test_requests_sent_ahead_are_answered_in_order(client: WireClient, topic: str) -> None:
    sent = [client.send(produce_request(topic, [(0, batch())]), 12) for _ in range(20)]
    got = [struct.unpack(">i", client.receive()[:4])[0] for _ in sent]
    assert got == sent
    assert list_offset(client, topic, LATEST).offset == 20


def test_a_request_in_single_bytes(client: WireClient, topic: str) -> None:
    for byte in framing.encode_request(api_versions(), 3, 9, "x"):
        client.send_bytes(bytes([byte]))
    assert client.receive()[:4] == struct.pack(">i", 9)


def test_a_cut_request_is_forgotten(address: str) -> None:
    with connected(address) as client:
        client.send_bytes(framing.encode_request(api_versions(), 3, 9, "x")[:-3])
    with connected(address) as client:
        client.send_bytes(struct.pack(">i", 3) + b"abc")
        with pytest.raises(ClosedError):
            client.receive()
