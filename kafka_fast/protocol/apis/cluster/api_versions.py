"""ApiVersions (18): what the broker speaks. The first request of a connection.

Its response header is version 0 always, and a version that the broker does not know is answered
in the shape of version 0 with UNSUPPORTED_VERSION (`frame.decode_api_versions_response`).

What the versions changed:
    3: the client's name and version (KIP-511), finalized features (KIP-584). 4: features whose
    least version is 0. 5: cluster and node id to check (KIP-1242).
"""

from __future__ import annotations

from kafka_fast.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int16,
    int32,
    int64,
    string,
)


class ApiVersionsRequest(Request, api_key=18, versions="0-5", flexible="3+"):
    """Who asks, and since version 5 which node it believes to ask."""

    client_software_name: str = string("3+", ignorable=True)
    client_software_version: str = string("3+", ignorable=True)
    cluster_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    node_id: int = int32("5+", default=-1, ignorable=True)


class ApiVersion(Struct):
    """An entry of `ApiVersionsResponse.api_keys`."""

    api_key: int = int16("0+")
    min_version: int = int16("0+")
    max_version: int = int16("0+")


class SupportedFeatureKey(Struct):
    """An entry of `ApiVersionsResponse.supported_features`."""

    name: str = string("3+")
    min_version: int = int16("3+")
    max_version: int = int16("3+")


class FinalizedFeatureKey(Struct):
    """An entry of `ApiVersionsResponse.finalized_features`."""

    name: str = string("3+")
    max_version_level: int = int16("3+")
    min_version_level: int = int16("3+")


class ApiVersionsResponse(Response, api_key=18, versions="0-5", flexible="3+"):
    """Version ranges of the APIs, and the cluster's features."""

    error_code: int = int16("0+")
    api_keys: list[ApiVersion] = array(ApiVersion, "0+")
    throttle_time_ms: int = int32("1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(
        SupportedFeatureKey, "3+", ignorable=True, tag=0, tagged="3+"
    )
    finalized_features_epoch: int = int64("3+", default=-1, ignorable=True, tag=1, tagged="3+")
    finalized_features: list[FinalizedFeatureKey] = array(
        FinalizedFeatureKey, "3+", ignorable=True, tag=2, tagged="3+"
    )
    zk_migration_ready: bool = bool_("3+", ignorable=True, tag=3, tagged="3+")
