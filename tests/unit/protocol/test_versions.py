"""Negotiation: the highest version of both sides, under clamps."""

from __future__ import annotations

import pytest

from kafka_fast.errors import UnsupportedVersionError
from kafka_fast.protocol.apis.cluster.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest
from kafka_fast.protocol.apis.records.produce import ProduceRequest
from kafka_fast.protocol.apis.transactions.end_txn import EndTxnRequest
from kafka_fast.protocol.apis.transactions.init_producer_id import InitProducerIdRequest
from kafka_fast.protocol.schema import Versions
from kafka_fast.protocol.versions import TRANSACTION_V1_CLAMPS, ApiVersions, retry_version


def offered(**ranges: tuple[int, int]) -> ApiVersionsResponse:
    keys = {"produce": 0, "metadata": 3, "api_versions": 18, "init_producer_id": 22, "end_txn": 26}
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=keys[name], min_version=low, max_version=high)
            for name, (low, high) in ranges.items()
        ]
    )


def test_the_highest_common_version_is_used():
    older = ApiVersions.from_response(offered(produce=(0, 7), metadata=(0, 99)))
    assert older.version(ProduceRequest) == 7
    assert older.version(MetadataRequest) == 13
    assert older.version(MetadataRequest, at_most=12) == 12


def test_nothing_in_common_says_what_both_sides_speak():
    ancient = ApiVersions.from_response(offered(produce=(0, 2)))
    assert ancient.highest(ProduceRequest) is None
    with pytest.raises(UnsupportedVersionError, match=r"Produce: .* speaks 3-13, .* offers 0-2"):
        ancient.version(ProduceRequest)
    with pytest.raises(UnsupportedVersionError, match=r"Metadata: .* the broker does not offer it"):
        ancient.version(MetadataRequest)
    future = ApiVersions({3: Versions(14, 20)})
    assert future.highest(MetadataRequest) is None
    assert ApiVersions({3: Versions(5, 13)}).highest(MetadataRequest, at_most=4) is None


def test_an_unstable_version_is_not_used_even_if_offered():
    broker = ApiVersions.from_response(offered(init_producer_id=(0, 6)))
    assert broker.version(InitProducerIdRequest) == 5


def test_clamps_limit_what_a_transaction_may_use():
    answer = offered(produce=(0, 13), end_txn=(0, 5))
    broker = ApiVersions.from_response(answer, TRANSACTION_V1_CLAMPS)
    assert broker.version(ProduceRequest) == 11
    assert broker.version(EndTxnRequest) == 4


def test_features_are_read_from_the_answer():
    answer = offered()
    answer.finalized_features = [
        FinalizedFeatureKey(name="transaction.version", min_version_level=1, max_version_level=2)
    ]
    assert ApiVersions.from_response(answer).features == {"transaction.version": 2}


@pytest.mark.parametrize(
    ("answer", "asked", "expected"),
    [
        (offered(api_versions=(0, 3)), 5, 3),
        (offered(api_versions=(0, 9)), 5, 4),  # it refused 5, whatever it claims
        (offered(), 5, 0),
        (offered(), 0, None),
        (offered(api_versions=(6, 9)), 5, None),
    ],
)
def test_retry_after_a_refusal(answer, asked, expected):
    answer.error_code = 35
    assert retry_version(answer, asked) == expected


def test_repr_names_apis_and_ranges():
    assert repr(ApiVersions({3: Versions(0, 9)})) == "ApiVersions(Metadata 0-9)"
