"""Operations on a cluster: describe its nodes and features, change features, remove nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from kafka_fast._version import __version__
from kafka_fast.control.admin.operation import ONLY, Operation
from kafka_fast.control.admin.types.acls import operations_of
from kafka_fast.control.admin.types.cluster import (
    ClusterDescription,
    ClusterNode,
    EndpointType,
    FeatureMetadata,
    FeatureUpdate,
    FinalizedVersionRange,
    SupportedVersionRange,
    UpgradeType,
)
from kafka_fast.control.arguments import checked_choice, checked_integer, mapping_of, names_of
from kafka_fast.control.connections.negotiation import CLIENT_SOFTWARE_NAME
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Meaning
from kafka_fast.control.requests.targets import AnyNode, Controller, OneNode
from kafka_fast.errors import ErrorCode, KafkaError, UnsupportedVersionError, UsageError
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka_fast.protocol.apis.cluster.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest, MetadataResponse
from kafka_fast.protocol.apis.cluster.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from kafka_fast.protocol.apis.cluster.unregister_controller import (
    UnregisterControllerRequest,
    UnregisterControllerResponse,
)
from kafka_fast.protocol.apis.cluster.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kafka_fast.values import replace

FIRST_DESCRIBE_WITH_TYPES = 1
FIRST_DESCRIBE_WITH_FENCED = 2
FIRST_METADATA_WITH_OPERATIONS = 8
LAST_METADATA_WITH_OPERATIONS = 10
"""Later versions leave what may be done with the cluster to DescribeCluster."""
FIRST_API_VERSIONS_WITH_FEATURES = 3
LAST_API_VERSIONS_WITHOUT_CHECK = 4
"""Version 5 adds the node that is meant, which any node is not."""
FIRST_UPDATE_WITH_TYPES = 1


# ---- nodes ----


class DescribeCluster(Operation[str, ClusterDescription]):
    """DescribeCluster, which brokers have since Kafka 2.8."""

    name = "describe_cluster"
    permission = "DESCRIBE on the cluster"
    since = "2.8"
    at_controllers = True
    request_class = DescribeClusterRequest
    response_class = DescribeClusterResponse

    def __init__(
        self,
        *,
        include_authorized_operations: bool,
        include_fenced_brokers: bool,
        endpoint_type: EndpointType = EndpointType.BROKER,
    ) -> None:
        """Take what is asked for beyond the nodes.

        Args:
            include_authorized_operations: whether to ask what this client may do with the cluster.
            include_fenced_brokers: whether to ask for brokers that take no part.
            endpoint_type: what is asked, and described.

        Raises:
            UsageError: controllers are asked for fenced brokers.
        """
        super().__init__(AnyNode(), [ONLY])
        if include_fenced_brokers and endpoint_type == EndpointType.CONTROLLER:
            raise UsageError(f"{self.name}: controllers do not describe fenced brokers")
        self._endpoint_type = endpoint_type
        self._include_operations = include_authorized_operations
        self._include_fenced = include_fenced_brokers

    def unsupported(self, item: str, version: int) -> KafkaError | None:
        """Refuse fenced brokers where the API does not know them."""
        if self._include_fenced and version < FIRST_DESCRIBE_WITH_FENCED:
            return UnsupportedVersionError(
                f"{self.describe(item)}: brokers that are fenced are described since Kafka 4.0"
            )
        return None

    def build(self, items: Sequence[str], version: int) -> DescribeClusterRequest:
        """Ask for the nodes."""
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=self._include_operations
        )
        if version >= FIRST_DESCRIBE_WITH_TYPES:
            request.endpoint_type = self._endpoint_type
        if version >= FIRST_DESCRIBE_WITH_FENCED:
            request.include_fenced_brokers = self._include_fenced
        return request

    def outcomes(
        self, answer: DescribeClusterResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[ClusterDescription]]]:
        """Return the cluster."""
        if answer.error_code:
            yield ONLY, self.refusal(ONLY, answer.error_code, answer.error_message)
            return
        nodes = [
            ClusterNode(one.broker_id, one.host, one.port, one.rack, one.is_fenced)
            for one in answer.brokers
        ]
        description = _description(answer, nodes)
        yield ONLY, Done(replace(description, endpoint_type=self._endpoint_type))


class DescribeClusterByMetadata(Operation[str, ClusterDescription]):
    """Metadata of no topics, for brokers without DescribeCluster."""

    name = "describe_cluster"
    permission = "DESCRIBE on the cluster"
    request_class = MetadataRequest
    response_class = MetadataResponse

    def __init__(self, *, include_authorized_operations: bool) -> None:
        """Take whether to ask what this client may do with the cluster."""
        super().__init__(AnyNode(), [ONLY])
        self._include_operations = include_authorized_operations

    def max_version(self, items: Sequence[str]) -> int | None:
        """Return the last version that can tell what may be done."""
        return LAST_METADATA_WITH_OPERATIONS if self._include_operations else None

    def unsupported(self, item: str, version: int) -> KafkaError | None:
        """Refuse to ask a broker that is too old what may be done."""
        if self._include_operations and version < FIRST_METADATA_WITH_OPERATIONS:
            return UnsupportedVersionError(
                f"{self.describe(item)}: authorized operations are described since Kafka 2.3"
            )
        return None

    def build(self, items: Sequence[str], version: int) -> MetadataRequest:
        """Ask for the brokers."""
        request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        if FIRST_METADATA_WITH_OPERATIONS <= version <= LAST_METADATA_WITH_OPERATIONS:
            request.include_cluster_authorized_operations = self._include_operations
        return request

    def outcomes(
        self, answer: MetadataResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[ClusterDescription]]]:
        """Return the cluster."""
        if answer.error_code:
            yield ONLY, self.refusal(ONLY, answer.error_code)
            return
        nodes = [ClusterNode(one.node_id, one.host, one.port, one.rack) for one in answer.brokers]
        yield ONLY, Done(_description(answer, nodes))


def _description(
    answer: DescribeClusterResponse | MetadataResponse, nodes: Iterable[ClusterNode]
) -> ClusterDescription:
    return ClusterDescription(
        answer.cluster_id,
        answer.controller_id if answer.controller_id >= 0 else None,
        tuple(sorted(nodes, key=lambda one: one.id)),
        operations_of(answer.cluster_authorized_operations),
    )


class UnregisterBroker(Operation[str, None]):
    """UnregisterBroker."""

    name = "unregister_broker"
    permission = "ALTER on the cluster"
    since = "2.8"
    at_controllers = True
    explained: ClassVar[Mapping[int, str]] = {
        ErrorCode.BROKER_ID_NOT_REGISTERED: "an earlier try, of which no answer came, may have "
        "removed it"
    }
    request_class = UnregisterBrokerRequest
    response_class = UnregisterBrokerResponse

    def __init__(self, broker_id: int) -> None:
        """Take the id of a broker that has stopped for good."""
        super().__init__(Controller(), [ONLY])
        self._broker_id = broker_id

    def describe(self, item: str) -> str:
        """Return the request with its broker."""
        return f"{self.api} of broker {self._broker_id}"

    def build(self, items: Sequence[str], version: int) -> UnregisterBrokerRequest:
        """Ask for its removal."""
        return UnregisterBrokerRequest(broker_id=self._broker_id)

    def outcomes(
        self, answer: UnregisterBrokerResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[None]]]:
        """Return whether it was removed."""
        yield ONLY, self.done_or_refusal(ONLY, answer.error_code, answer.error_message)


class UnregisterController(Operation[str, None]):
    """UnregisterController."""

    name = "unregister_controller"
    permission = "ALTER on the cluster"
    since = "4.4"
    at_controllers = True
    request_class = UnregisterControllerRequest
    response_class = UnregisterControllerResponse

    def __init__(self, controller_id: int) -> None:
        """Take the id of a controller that has stopped for good."""
        super().__init__(Controller(), [ONLY])
        self._controller_id = controller_id

    def describe(self, item: str) -> str:
        """Return the request with its controller."""
        return f"{self.api} of controller {self._controller_id}"

    def build(self, items: Sequence[str], version: int) -> UnregisterControllerRequest:
        """Ask for its removal."""
        return UnregisterControllerRequest(controller_id=self._controller_id)

    def outcomes(
        self, answer: UnregisterControllerResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[None]]]:
        """Return whether it was removed."""
        yield ONLY, self.done_or_refusal(ONLY, answer.error_code, answer.error_message)


# ---- features ----


class DescribeFeatures(Operation[str, FeatureMetadata]):
    """ApiVersions, for what it says of features."""

    name = "describe_features"
    permission = "nothing"
    since = "2.7"
    at_controllers = True
    request_class = ApiVersionsRequest
    response_class = ApiVersionsResponse

    def __init__(self, node_id: int | None = None) -> None:
        """Take the id of the node whose features are told; None: any node.

        Raises:
            UsageError: there can be no such node.
        """
        super().__init__(AnyNode() if node_id is None else OneNode(node_id), [ONLY])

    def max_version(self, items: Sequence[str]) -> int:
        """Return the last version that names no node."""
        return LAST_API_VERSIONS_WITHOUT_CHECK

    def unsupported(self, item: str, version: int) -> KafkaError | None:
        """Refuse where brokers know no features."""
        if version < FIRST_API_VERSIONS_WITH_FEATURES:
            return UnsupportedVersionError(
                f"{self.describe(item)}: features are described since Kafka 2.7"
            )
        return None

    def build(self, items: Sequence[str], version: int) -> ApiVersionsRequest:
        """Ask once more what the connection has asked at its beginning."""
        return ApiVersionsRequest(
            client_software_name=CLIENT_SOFTWARE_NAME, client_software_version=__version__
        )

    def outcomes(
        self, answer: ApiVersionsResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[FeatureMetadata]]]:
        """Return the features."""
        if answer.error_code:
            yield ONLY, self.refusal(ONLY, answer.error_code)
            return
        finalized = {
            one.name: FinalizedVersionRange(one.min_version_level, one.max_version_level)
            for one in answer.finalized_features
        }
        supported = {
            one.name: SupportedVersionRange(one.min_version, one.max_version)
            for one in answer.supported_features
        }
        epoch = answer.finalized_features_epoch
        yield ONLY, Done(FeatureMetadata(finalized, epoch if epoch >= 0 else None, supported))


class UpdateFeatures(Operation[str, None]):
    """UpdateFeatures: all of them, or none."""

    name = "update_features"
    noun = "feature"
    permission = "ALTER on the cluster"
    since = "2.7"
    at_controllers = True
    request_class = UpdateFeaturesRequest
    response_class = UpdateFeaturesResponse

    def __init__(self, updates: Mapping[str, FeatureUpdate], *, validate_only: bool) -> None:
        """Take the levels.

        Args:
            updates: by the feature's name.
            validate_only: whether to check only whether the levels could be set.

        Raises:
            UsageError: a feature has no name, or an update is none that brokers know.
        """
        self._updates = mapping_of(updates, "the levels of features")
        if "" in self._updates:
            raise UsageError("a feature has a name")
        for update in self._updates.values():
            if not isinstance(update, FeatureUpdate):
                raise TypeError(f"a FeatureUpdate says which level a feature has, not {update!r}")
            checked_choice(UpgradeType, update.upgrade_type, "the upgrade_type of a FeatureUpdate")
            checked_integer(update.max_version_level, "the level of a feature")
        super().__init__(Controller(), names_of(self._updates, "the names of features"))
        self._validate_only = validate_only

    def unsupported(self, item: str, version: int) -> KafkaError | None:
        """Refuse what brokers before KIP-778 do not know."""
        if version >= FIRST_UPDATE_WITH_TYPES:
            return None
        if self._validate_only:
            what = "updates of features are validated"
        elif self._updates[item].upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
            what = "downgrades are safe or unsafe"
        else:
            return None
        return UnsupportedVersionError(f"{self.describe(item)}: {what} since Kafka 3.3")

    def build(self, items: Sequence[str], version: int) -> UpdateFeaturesRequest:
        """Ask for the levels."""
        request = UpdateFeaturesRequest(
            timeout_ms=self.timeout_ms,
            feature_updates=[_feature_key(item, self._updates[item], version) for item in items],
        )
        if version >= FIRST_UPDATE_WITH_TYPES:
            request.validate_only = self._validate_only
        return request

    def outcomes(
        self, answer: UpdateFeaturesResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[None]]]:
        """Return which features have their level; since version 2 all of them, or none."""
        if answer.error_code:
            yield from self.all_refused(items, answer.error_code, answer.error_message)
            return
        if not answer.results:
            for item in items:
                yield item, Done(None)
        for result in answer.results:
            key = result.feature
            yield key, self.done_or_refusal(key, result.error_code, result.error_message)


def _feature_key(feature: str, update: FeatureUpdate, version: int) -> FeatureUpdateKey:
    key = FeatureUpdateKey(feature=feature, max_version_level=update.max_version_level)
    if version >= FIRST_UPDATE_WITH_TYPES:
        key.upgrade_type = update.upgrade_type
    else:
        key.allow_downgrade = update.upgrade_type != UpgradeType.UPGRADE
    return key
