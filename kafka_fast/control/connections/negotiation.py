"""The first requests on a new link: which versions both sides speak (ApiVersions, KIP-35, KIP-511).

The first request has the highest version. A broker that does not know this version answers in the
form of version 0. It names its own range if it is new enough. Each further request has a lower
version, so the dialogue ends after a few rounds, whatever the other side answers. There is no I/O
and no time here: `LinkSetup` carries the frames and keeps the deadline.

From version 5 on the request names the cluster and node that it is meant for. Another broker
answers REBOOTSTRAP_REQUIRED (KIP-1242).
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka_fast._version import __version__
from kafka_fast.control.connections.link_errors import unreadable
from kafka_fast.errors import (
    ErrorCode,
    ProtocolError,
    UnsupportedVersionError,
    broker_error,
)
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest
from kafka_fast.protocol.schema import Request, Versions
from kafka_fast.protocol.versions import ApiVersions, retry_version

__all__ = ["CLIENT_SOFTWARE_NAME", "Negotiation", "NodeVersions"]

CLIENT_SOFTWARE_NAME = "kafka-fast-python"

A_CONTROLLER = (
    "this is the port of a controller, where brokers register: connect to a listener for clients"
)

_BROKER_REGISTRATION = 62
"""An API that only controllers have."""


class NodeVersions:
    """The versions that one node and this client share; its errors name the node."""

    __slots__ = ("_shared", "features_epoch", "node")

    def __init__(self, node: str, response: ApiVersionsResponse) -> None:
        self._shared = ApiVersions.from_response(response)
        self.node = node
        self.features_epoch = response.finalized_features_epoch
        """Which state of the cluster's features this is; -1: the broker does not know them."""
        if response.finalized_features_epoch < 0:
            self._shared.features = {}  # the broker does not know them yet

    def __repr__(self) -> str:
        return f"NodeVersions({self.node}: {self._shared})"

    @property
    def features(self) -> Mapping[str, int]:
        """The finalized features of the cluster: name → level."""
        return self._shared.features

    @property
    def ranges(self) -> Mapping[int, Versions]:
        """What the node offers: API key → versions."""
        return self._shared.offered

    def pick(self, request_class: type[Request], max_version: int | None = None) -> int:
        """Return the highest version of an API that both sides speak.

        Args:
            request_class: the API.
            max_version: the highest one that the caller can use.

        Raises:
            UnsupportedVersionError: there is none.
        """
        try:
            return self._shared.version(request_class, max_version)
        except UnsupportedVersionError as error:
            text = A_CONTROLLER if self._is_controller else str(error)
            raise UnsupportedVersionError(f"{self.node}: {text}") from None

    @property
    def _is_controller(self) -> bool:
        """Whether this is a controller's listener (KRaft): brokers register there, no client."""
        return _BROKER_REGISTRATION in self.ranges and MetadataRequest.api_key not in self.ranges


class Negotiation:
    """One dialogue over one link: `request`, `handle_frame`, until there is a result."""

    def __init__(
        self, node: str, client_id: str, *, cluster_id: str | None = None, node_id: int = -1
    ) -> None:
        """Prepare a first request, of the highest version that this client has.

        Args:
            node: its name in errors.
            client_id: of all requests.
            cluster_id: the cluster the link is meant for; None: the broker does not check.
            node_id: the node the link is meant for; -1: the broker does not check.
        """
        self._node = node
        self._client_id = client_id
        self._request = ApiVersionsRequest(
            client_software_name=CLIENT_SOFTWARE_NAME,
            client_software_version=__version__,
            cluster_id=cluster_id,
            node_id=node_id,
        )
        self._version = ApiVersionsRequest.stable
        self.throttle_ms = 0
        """How long the node throttles this client, as the last answer has it."""

    def request(self) -> bytes:
        """Return the request to send now. The data plane adds its correlation id."""
        return frame.encode_request(self._request, self._version, 0, self._client_id)

    def handle_frame(self, data: bytes) -> NodeVersions | None:
        """Take the answer to the last request, whose correlation id was checked before.

        Returns:
            The result, or None if there is another `request` to send.

        Raises:
            MalformedError, ProtocolError: the other side does not speak Kafka's protocol. The texts
                of these errors, and of the next one, go on from the node's name.
            UnsupportedVersionError: not even a version of ApiVersions is shared.
            BrokerError: the broker refuses the link.
        """
        try:
            _, response = frame.decode_api_versions_response(data, self._version)
        except ProtocolError as error:
            raise unreadable(ApiVersionsRequest.api_key, self._version, error) from error
        self.throttle_ms = response.throttle_time_ms
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            lower = retry_version(response, self._version)
            if lower is None:
                raise UnsupportedVersionError(
                    f"knows no version of ApiVersions that this client does; v{self._version} was "
                    "refused last"
                )
            self._version = lower
            return None
        if response.error_code:
            raise broker_error(response.error_code, "answer to ApiVersions")
        if not response.api_keys:
            raise ProtocolError(f"answered ApiVersions v{self._version}, and names no API at all")
        return NodeVersions(self._node, response)
