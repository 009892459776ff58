"""Which release of Kafka a broker is of, or is like, as its answer to ApiVersions shows.

Brokers do not say their release. Those of 3.3 and later name the highest `metadata.version` that
they support, and each release has levels of its own. Of others there is only the newest version of
each API: a guess, because brokers that are not Apache Kafka have a mixture of these.
"""

from __future__ import annotations

from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsResponse
from kafka_fast.values import Value

__all__ = ["Release", "release_of"]

_LEVELS = (
    (4, "3.3"),
    (8, "3.4"),
    (9, "3.5"),
    (12, "3.6"),
    (15, "3.7"),
    (20, "3.8"),
    (21, "3.9"),
    (22, "4.0"),
    (26, "4.1"),
    (28, "4.2"),
    (30, "4.3"),
    (31, "4.4"),
    (34, "newer than 4.4"),
)
"""The first level of `metadata.version` (MetadataVersion.java) -> its release."""

_NEWS = (
    ("2.2", 11, 4),  # JoinGroup
    ("2.3", 1, 11),  # Fetch
    ("2.4", 3, 9),  # Metadata
    ("2.5", 14, 5),  # SyncGroup
    ("2.6", 32, 3),  # DescribeConfigs
    ("2.7", 1, 12),  # Fetch
    ("2.8", 0, 9),  # Produce
    ("3.0", 10, 4),  # FindCoordinator
    ("3.1", 1, 13),  # Fetch
    ("3.2", 11, 9),  # JoinGroup
    ("3.3 or 3.4", 35, 4),  # DescribeLogDirs; 3.4 brought nothing that clients see
    ("3.5", 1, 15),  # Fetch
    ("3.6", 24, 4),  # AddPartitionsToTxn
    ("3.7", 1, 16),  # Fetch
    ("3.8", 0, 11),  # Produce
    ("3.9 or newer", 1, 17),  # Fetch
)
"""A release, an API key, and the version of it that the release brought, the oldest first."""


class Release(Value):
    """A release of Kafka."""

    name: str
    """As "4.4"; "3.3 or 3.4", "3.9 or newer", "newer than 4.4": more is not known."""
    is_told: bool
    """True: the broker has said so. False: its APIs are like those of that release."""


def release_of(response: ApiVersionsResponse) -> Release:
    """Return what an answer without an error shows."""
    for feature in response.supported_features:
        told = [name for first, name in _LEVELS if first <= feature.max_version]
        if feature.name == "metadata.version" and told:
            return Release(told[-1], is_told=True)
    newest = {api.api_key: api.max_version for api in response.api_keys}
    release = "2.1 or older"
    for name, api_key, version in _NEWS:
        if api_key not in newest:
            continue  # the broker lacks that API altogether
        if newest[api_key] < version:
            break
        release = name
    return Release(release, is_told=False)
