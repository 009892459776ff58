"""Which version of each API to speak with a broker: the highest that both sides know.

There is one `ApiVersions` per connection, made from the broker's answer, because brokers of one
cluster may differ during an upgrade. Some versions may be used only under conditions that the
answer does not state. Such limits are passed as clamps, from API key to highest version.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka_fast.errors import UnsupportedVersionError
from kafka_fast.protocol.apis import api_name
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka_fast.protocol.schema import Request, Versions

PRODUCE, END_TXN, TXN_OFFSET_COMMIT = 0, 26, 28

#: Inside a transaction, versions above these add partitions on their own (KIP-890). Only a cluster
#: with the finalized feature transaction.version >= 2 understands them.
TRANSACTION_V1_CLAMPS: Mapping[int, int] = {PRODUCE: 11, END_TXN: 4, TXN_OFFSET_COMMIT: 4}


class ApiVersions:
    """The versions that one broker and this client share.

    Args:
        offered: the broker's range of versions, by API key.
        features: levels of the cluster's finalized features, by name.
        clamps: highest version to use, by API key, if it is below the highest that both sides know.
    """

    def __init__(
        self,
        offered: Mapping[int, Versions],
        features: Mapping[str, int] | None = None,
        clamps: Mapping[int, int] | None = None,
    ) -> None:
        self.offered = dict(offered)
        self.features = dict(features or {})
        self.clamps = dict(clamps or {})

    @classmethod
    def from_response(
        cls, response: ApiVersionsResponse, clamps: Mapping[int, int] | None = None
    ) -> ApiVersions:
        """Read a broker's answer.

        Brokers report 0 as Produce's least version, whatever they accept (KAFKA-18659). This is
        harmless here, because our own least version is 3.
        """
        return cls(
            {key.api_key: Versions(key.min_version, key.max_version) for key in response.api_keys},
            {f.name: f.max_version_level for f in response.finalized_features},
            clamps,
        )

    def highest(self, api: type[Request], at_most: int | None = None) -> int | None:
        """Return the version to use, or None if the two sides share none."""
        offered = self.offered.get(api.api_key)
        if offered is None:
            return None
        limits = [api.stable, offered.high, self.clamps.get(api.api_key, api.stable)]
        version = min(limits if at_most is None else [*limits, at_most])
        return version if version >= max(api.versions.low, offered.low) else None

    def version(self, api: type[Request], at_most: int | None = None) -> int:
        """Return the version to use.

        Raises:
            UnsupportedVersionError: the two sides share none, or the broker has no such API.
        """
        version = self.highest(api, at_most)
        if version is None:
            offered = self.offered.get(api.api_key)
            theirs = "does not offer it" if offered is None else f"offers {offered}"
            limit = "" if at_most is None else f" up to {at_most}"
            raise UnsupportedVersionError(
                f"{api_name(api.api_key)}: this client speaks {api.versions}{limit}, "
                f"the broker {theirs}"
            )
        return version

    def __repr__(self) -> str:
        ranges = ", ".join(
            f"{api_name(key)} {where}" for key, where in sorted(self.offered.items())
        )
        return f"ApiVersions({ranges})"


def retry_version(response: ApiVersionsResponse, asked: int) -> int | None:
    """Return the version to ask ApiVersions with after UNSUPPORTED_VERSION, or None to give up.

    Args:
        response: the answer, as `frame.decode_api_versions_response` gives it.
        asked: the version that was refused.
    """
    ours = ApiVersionsRequest.versions
    for key in response.api_keys:
        if key.api_key == ApiVersionsRequest.api_key:
            version = min(key.max_version, asked - 1)
            return version if version >= max(ours.low, key.min_version) else None
    return 0 if asked > 0 else None
