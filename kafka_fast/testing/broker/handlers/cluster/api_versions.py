"""ApiVersions: what this broker can be asked, and the features of the cluster.

The faults narrow both, to emulate older brokers.
"""

from __future__ import annotations

import re

from kafka_fast.errors import InvalidRequest, RebootstrapRequired, UnsupportedVersion
from kafka_fast.protocol.apis.cluster.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kafka_fast.testing.broker.faults import Faults
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import OFFERED, answers
from kafka_fast.testing.broker.transactions.settings import FEATURE, NEWEST_VERSION
from kafka_fast.testing.broker.versions import API_VERSIONS, PRODUCE, UPDATE_FEATURES

_SOFTWARE_FROM_VERSION = 3  # since then the client says who it is (KIP-511)
_ANY_NODE = -1  # the client does not say which broker it expects (KIP-1242)
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@answers(ApiVersionsRequest)
def answer(request: ReceivedRequest) -> ApiVersionsResponse:
    """Return the offered versions, or an error: a malformed client name, or another cluster."""
    planned = request.planned_error()
    if planned is not None:
        return ApiVersionsResponse(error_code=planned.code)
    body = request.body
    if request.version >= _SOFTWARE_FROM_VERSION and not (
        _SOFTWARE.fullmatch(body.client_software_name)
        and _SOFTWARE.fullmatch(body.client_software_version)
    ):
        return ApiVersionsResponse(error_code=InvalidRequest.code)
    expects_cluster, expects_node = body.cluster_id is not None, body.node_id != _ANY_NODE
    if expects_cluster != expects_node:
        return ApiVersionsResponse(error_code=InvalidRequest.code)
    here = (request.state.cluster_id, request.node_id)
    if expects_cluster and (body.cluster_id, body.node_id) != here:
        return ApiVersionsResponse(error_code=RebootstrapRequired.code)
    response = ApiVersionsResponse(api_keys=_offered(request.faults))
    _add_features(response, request)
    return response


def unsupported(faults: Faults) -> ApiVersionsResponse:
    """Return UNSUPPORTED_VERSION with our own range of ApiVersions, to be sent as version 0."""
    own = [one for one in _offered(faults) if one.api_key == API_VERSIONS]
    return ApiVersionsResponse(error_code=UnsupportedVersion.code, api_keys=own)


def _add_features(response: ApiVersionsResponse, request: ReceivedRequest) -> None:
    """Say which version of transactions the cluster has, as brokers from 4.0 on do."""
    if UPDATE_FEATURES not in {one.api_key for one in response.api_keys if one.max_version >= 2}:
        return
    response.supported_features = [
        SupportedFeatureKey(name=FEATURE, min_version=0, max_version=NEWEST_VERSION)
    ]
    response.finalized_features_epoch = request.state.features_epoch
    level = request.state.transaction_version
    if level:  # as in Kafka a feature of level 0 is not named
        response.finalized_features = [
            FinalizedFeatureKey(name=FEATURE, max_version_level=level, min_version_level=level)
        ]


def _offered(faults: Faults) -> list[ApiVersion]:
    apis = []
    for api_key, (lowest, highest) in sorted(OFFERED.items()):
        offered = faults.version_range(api_key, lowest, highest)
        if offered is not None:
            # Produce 0 to 2 are listed though refused: librdkafka would not compress (KAFKA-18659).
            least = 0 if api_key == PRODUCE else offered[0]
            apis.append(ApiVersion(api_key=api_key, min_version=least, max_version=offered[1]))
    return apis
