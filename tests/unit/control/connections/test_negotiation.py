"""The dialogue about versions ends, whatever the other side answers."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kafka_fast._version import __version__
from kafka_fast.control.connections.negotiation import Negotiation, NodeVersions
from kafka_fast.errors import (
    BrokerError,
    MalformedError,
    ProtocolError,
    UnsupportedVersionError,
)
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest
from kafka_fast.protocol.apis.records.produce import ProduceRequest

V0_REFUSAL = struct.Struct(">ihi")


def read_request(negotiation: Negotiation) -> tuple[frame.RequestHeader, ApiVersionsRequest]:
    """Read a request as a broker does."""
    header, request = frame.decode_request(negotiation.request()[4:])
    assert isinstance(request, ApiVersionsRequest)
    return header, request


def answer(negotiation: Negotiation, **fields: Any) -> bytes:
    """Answer the current request in its own version; without the length."""
    header, _ = read_request(negotiation)
    fields.setdefault("api_keys", [ApiVersion(api_key=3, min_version=0, max_version=13)])
    response = ApiVersionsResponse(**fields)
    return frame.encode_response(response, header.version, header.correlation_id)[4:]


def refuse(negotiation: Negotiation, *ranges: tuple[int, int, int]) -> bytes:
    """Answer UNSUPPORTED_VERSION in the shape of version 0."""
    header, _ = read_request(negotiation)
    head = V0_REFUSAL.pack(header.correlation_id, 35, len(ranges))
    return head + b"".join(struct.pack(">hhh", *each) for each in ranges)


def test_a_controller_is_recognised() -> None:
    """Regression: its port does not know Metadata, which was taken for a broker that is too old."""
    registers = ApiVersion(api_key=62, min_version=0, max_version=4)
    fetches = ApiVersion(api_key=1, min_version=4, max_version=17)
    response = ApiVersionsResponse(api_keys=[fetches, registers])
    versions = NodeVersions("broker1:9093", response)
    for request in (MetadataRequest, ProduceRequest):
        with pytest.raises(UnsupportedVersionError) as caught:
            versions.pick(request)
        assert str(caught.value) == (
            "broker1:9093: this is the port of a controller, where brokers register: connect to a "
            "listener for clients"
        )
    others = NodeVersions("broker1:9093", ApiVersionsResponse(api_keys=[fetches]))
    with pytest.raises(UnsupportedVersionError, match=r"Metadata: .* does not offer it"):
        others.pick(MetadataRequest)


def test_asks_with_the_highest_version_and_says_who_asks() -> None:
    negotiation = Negotiation("node 1", "me", cluster_id="c", node_id=1)
    header, request = read_request(negotiation)
    assert (header.api_key, header.version) == (18, ApiVersionsRequest.stable)
    assert header.client_id == "me"
    assert request.client_software_name == "kafka-fast-python"
    assert request.client_software_version == __version__
    if header.version >= 5:
        assert (request.cluster_id, request.node_id) == ("c", 1)


def test_answer_gives_versions_and_features() -> None:
    negotiation = Negotiation("node 1", "me")
    feature = FinalizedFeatureKey(name="transaction.version", max_version_level=2)
    versions = negotiation.handle_frame(
        answer(negotiation, finalized_features=[feature], finalized_features_epoch=7)
    )
    assert versions is not None
    assert versions.features == {"transaction.version": 2}
    assert versions.pick(MetadataRequest) == 13
    assert versions.pick(MetadataRequest, 9) == 9


def test_features_of_unknown_epoch_do_not_count() -> None:
    negotiation = Negotiation("node 1", "me")
    feature = FinalizedFeatureKey(name="transaction.version", max_version_level=2)
    versions = negotiation.handle_frame(answer(negotiation, finalized_features=[feature]))
    assert versions is not None
    assert versions.features == {}


@pytest.mark.parametrize("offered", [[], [(0, 14, 20)], [(0, 5, 3)], [(0, 0, 2)]])
def test_api_without_common_version_names_node_and_ranges(
    offered: list[tuple[int, int, int]],
) -> None:
    negotiation = Negotiation("node 7 (h:1)", "me")
    keys = [ApiVersion(api_key=k, min_version=a, max_version=b) for k, a, b in offered]
    keys.append(ApiVersion(api_key=3, min_version=0, max_version=13))
    versions = negotiation.handle_frame(answer(negotiation, api_keys=keys))
    assert isinstance(versions, NodeVersions)
    with pytest.raises(UnsupportedVersionError, match=r"node 7 \(h:1\).*3-13"):
        versions.pick(ProduceRequest)


def test_goes_down_to_the_brokers_own_highest() -> None:
    negotiation = Negotiation("node 1", "me")
    assert negotiation.handle_frame(refuse(negotiation, (18, 0, 2))) is None
    assert read_request(negotiation)[0].version == 2
    assert negotiation.handle_frame(answer(negotiation)) is not None


@pytest.mark.parametrize("body", [b"", b"\x7f\xff\xff\xff", b"\xff" * 12])
def test_refusal_with_an_unreadable_body_goes_down_to_0(body: bytes) -> None:
    negotiation = Negotiation("node 1", "me")
    assert negotiation.handle_frame(struct.pack(">ih", 0, 35) + body) is None
    assert read_request(negotiation)[0].version == 0


@pytest.mark.parametrize("ranges", [(), ((18, 0, 99),), ((18, 0, 0),), ((18, -5, -3),)])
def test_endless_refusal_ends(ranges: tuple[tuple[int, int, int], ...]) -> None:
    negotiation = Negotiation("node 1", "me")
    for _ in range(ApiVersionsRequest.stable):
        refusal = refuse(negotiation, *ranges)
        try:
            assert negotiation.handle_frame(refusal) is None
        except UnsupportedVersionError:
            return
    with pytest.raises(UnsupportedVersionError):
        negotiation.handle_frame(refuse(negotiation, *ranges))


def test_error_and_empty_answers() -> None:
    negotiation = Negotiation("node 1", "me")
    with pytest.raises(BrokerError) as caught:
        negotiation.handle_frame(answer(negotiation, error_code=129))
    assert caught.value.code == 129
    with pytest.raises(ProtocolError, match="no API"):
        negotiation.handle_frame(answer(negotiation, api_keys=[]))


def test_truncated_at_every_byte() -> None:
    negotiation = Negotiation("node 1", "me")
    whole = answer(negotiation)
    for size in range(len(whole)):
        with pytest.raises(MalformedError):
            negotiation.handle_frame(whole[:size])
