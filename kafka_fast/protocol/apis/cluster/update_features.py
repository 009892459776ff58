"""UpdateFeatures (57): raise or lower what the cluster's brokers agree on (KIP-584).

What the versions changed:
    1: kinds of upgrade instead of `allow_downgrade`, and a trial run (KIP-778). 2: one error for
    all features, without results of single ones.
"""

from __future__ import annotations

from kafka_fast.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int8,
    int16,
    int32,
    string,
)


class FeatureUpdateKey(Struct):
    """An entry of `UpdateFeaturesRequest.feature_updates`."""

    feature: str = string("0+")
    max_version_level: int = int16("0+")
    allow_downgrade: bool = bool_("0")
    upgrade_type: int = int8("1+", default=1)


class UpdateFeaturesRequest(Request, api_key=57, versions="0-2", flexible="0+"):
    """The level that each feature shall have; below 1 removes the feature."""

    timeout_ms: int = int32("0+", default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey, "0+")
    validate_only: bool = bool_("1+")


class UpdatableFeatureResult(Struct):
    """An entry of `UpdateFeaturesResponse.results`."""

    feature: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


class UpdateFeaturesResponse(Response, api_key=57, versions="0-2", flexible="0+"):
    """One error; up to version 1 also one per feature."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, "0-1", ignorable=True)
