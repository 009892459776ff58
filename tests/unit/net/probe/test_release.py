"""Which release of Kafka an answer to ApiVersions shows, and that a guess says it is one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafka_fast.net.probe import Release
from kafka_fast.net.probe.release import release_of
from kafka_fast.protocol.apis.cluster.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from kafka_fast.testing.broker.handlers import OFFERED
from kafka_fast.testing.broker.versions import FETCH, KAFKA_2_1, KAFKA_2_8, KAFKA_3_9

Ranges = Mapping[int, tuple[int, int]]


def answer(ranges: Ranges, **features: int) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in ranges.items()
        ],
        supported_features=[
            SupportedFeatureKey(name=name.replace("_", "."), min_version=1, max_version=level)
            for name, level in features.items()
        ],
    )


@pytest.mark.parametrize(
    ("level", "name"),
    [(4, "3.3"), (7, "3.3"), (19, "3.7"), (21, "3.9"), (25, "4.0"), (27, "4.1"), (33, "4.4")],
)
def test_brokers_tell_their_release(level: int, name: str) -> None:
    # The other feature's level means something else.
    told = answer(OFFERED, kraft_version=1, metadata_version=level, group_version=99)
    assert release_of(told) == Release(name, is_told=True)


def test_a_release_that_this_client_does_not_know() -> None:
    told = answer(OFFERED, metadata_version=90)
    assert release_of(told) == Release("newer than 4.4", is_told=True)


@pytest.mark.parametrize(
    ("ranges", "name"),
    [
        (KAFKA_2_1, "2.1 or older"),
        (KAFKA_2_8, "2.8"),
        (KAFKA_3_9, "3.9 or newer"),
        (OFFERED, "3.9 or newer"),
        # Two versions that the newest release has do not make a release of a mixture.
        ({**KAFKA_2_8, FETCH: (0, 17)}, "2.8"),
        ({**OFFERED, FETCH: (0, 11)}, "2.6"),
        ({}, "2.1 or older"),
    ],
)
def test_the_apis_of_others_are_compared(ranges: Ranges, name: str) -> None:
    assert release_of(answer(ranges)) == Release(name, is_told=False)


def test_a_level_before_all_levels_tells_nothing() -> None:
    assert release_of(answer(KAFKA_2_8, metadata_version=0)) == Release("2.8", is_told=False)
