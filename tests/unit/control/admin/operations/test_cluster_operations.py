"""Operations on the cluster: each version of their requests, and what answers mean."""

from __future__ import annotations

import pickle

import pytest

from kafka_fast.admin import (
    AclOperation,
    ClusterNode,
    FeatureUpdate,
    FinalizedVersionRange,
    SupportedVersionRange,
    UpgradeType,
)
from kafka_fast.control.admin.operation import ONLY
from kafka_fast.control.admin.operations.cluster import (
    DescribeCluster,
    DescribeClusterByMetadata,
    DescribeFeatures,
    UnregisterBroker,
    UnregisterController,
    UpdateFeatures,
)
from kafka_fast.control.requests.meanings import FindAgain
from kafka_fast.errors import (
    BrokerIdNotRegistered,
    ClusterAuthorizationFailed,
    ControllerIdNotRegistered,
    ErrorCode,
    InvalidUpdateVersion,
    UnknownServerError,
    UnsupportedVersionError,
    UsageError,
)
from kafka_fast.protocol.apis.cluster.api_versions import (
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kafka_fast.protocol.apis.cluster.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from kafka_fast.protocol.apis.cluster.metadata import MetadataResponse, MetadataResponseBroker
from kafka_fast.protocol.apis.cluster.unregister_broker import UnregisterBrokerResponse
from kafka_fast.protocol.apis.cluster.unregister_controller import UnregisterControllerResponse
from kafka_fast.protocol.apis.cluster.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesResponse,
)
from tests.unit.control.admin.operations.trying import meanings, refused, sent, values, versions

DESCRIBE_BITS = 1 << AclOperation.DESCRIBE | 1 << 30  # and one that has no name yet


def describe(*, fenced: bool = False) -> DescribeCluster:
    return DescribeCluster(include_authorized_operations=True, include_fenced_brokers=fenced)


def test_a_cluster_is_asked_for() -> None:
    for version in versions(DescribeCluster):
        request = sent(describe(fenced=version >= 2), version)
        assert request.include_cluster_authorized_operations
        assert request.include_fenced_brokers == (version >= 2)
        assert request.endpoint_type == 1


def test_fenced_brokers_need_a_newer_broker() -> None:
    error = describe(fenced=True).unsupported(ONLY, 1)
    assert isinstance(error, UnsupportedVersionError)
    assert "since Kafka 4.0" in str(error)
    assert describe(fenced=True).unsupported(ONLY, 2) is None
    assert describe().unsupported(ONLY, 0) is None


def test_a_cluster_is_described() -> None:
    answer = DescribeClusterResponse(
        cluster_id="c",
        controller_id=2,
        brokers=[
            DescribeClusterBroker(broker_id=2, host="b", port=2, is_fenced=True),
            DescribeClusterBroker(broker_id=1, host="a", port=1, rack="r"),
        ],
        cluster_authorized_operations=DESCRIBE_BITS,
    )
    cluster = values(describe(), answer, 2)[ONLY]
    assert cluster.nodes == (
        ClusterNode(1, "a", 1, "r"),
        ClusterNode(2, "b", 2, None, is_fenced=True),
    )
    assert (cluster.cluster_id, cluster.controller) == ("c", 2)
    assert cluster.authorized_operations == {AclOperation.DESCRIBE}
    assert pickle.loads(pickle.dumps(cluster)) == cluster
    bare = values(describe(), DescribeClusterResponse(cluster_id="c"), 0)[ONLY]
    assert (bare.controller, bare.nodes, bare.authorized_operations) == (None, (), None)


def test_a_cluster_is_not_described() -> None:
    answer = DescribeClusterResponse(
        cluster_id="", error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    )
    error = refused(meanings(describe(), answer, 1)[ONLY])
    assert isinstance(error, ClusterAuthorizationFailed)
    assert "needs DESCRIBE on the cluster" in str(error)


@pytest.mark.parametrize("version", range(4, 14))
def test_metadata_describe_a_cluster(version: int) -> None:
    operation = DescribeClusterByMetadata(include_authorized_operations=8 <= version <= 10)
    request = sent(operation, version)
    assert request.topics == []
    assert request.include_cluster_authorized_operations == (8 <= version <= 10)
    answer = MetadataResponse(
        cluster_id="c",
        brokers=[MetadataResponseBroker(node_id=1, host="a", port=1, rack="r")],
        controller_id=1,
    )
    if 8 <= version <= 10:
        answer.cluster_authorized_operations = DESCRIBE_BITS
    cluster = values(operation, answer, version)[ONLY]
    assert cluster.nodes == (ClusterNode(1, "a", 1, "r"),)
    assert (cluster.cluster_id, cluster.controller) == ("c", 1)


def test_metadata_tell_operations_in_some_versions_only() -> None:
    operation = DescribeClusterByMetadata(include_authorized_operations=True)
    assert operation.max_version([ONLY]) == 10
    assert "since Kafka 2.3" in str(operation.unsupported(ONLY, 7))
    plain = DescribeClusterByMetadata(include_authorized_operations=False)
    assert plain.max_version([ONLY]) is None
    assert plain.unsupported(ONLY, 7) is None
    error = MetadataResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    assert isinstance(refused(meanings(plain, error, 13)[ONLY]), UnknownServerError)


def test_nodes_are_unregistered() -> None:
    broker, controller = UnregisterBroker(7), UnregisterController(8)
    assert sent(broker, 0).broker_id == 7
    assert sent(controller, 0).controller_id == 8
    assert values(broker, UnregisterBrokerResponse(error_message=None), 0) == {ONLY: None}
    assert values(controller, UnregisterControllerResponse(error_message=None), 0) == {ONLY: None}
    no_broker = UnregisterBrokerResponse(
        error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message="none"
    )
    error = refused(meanings(broker, no_broker, 0)[ONLY])
    assert isinstance(error, BrokerIdNotRegistered)
    assert str(error).endswith("UnregisterBroker of broker 7: none")
    no_controller = UnregisterControllerResponse(
        error_code=ErrorCode.CONTROLLER_ID_NOT_REGISTERED, error_message=None
    )
    error = refused(meanings(controller, no_controller, 0)[ONLY])
    assert isinstance(error, ControllerIdNotRegistered)
    assert "UnregisterController of controller 8" in str(error)


def test_an_answer_that_did_not_come_is_remembered() -> None:
    operation = UnregisterBroker(7)
    answer = UnregisterBrokerResponse(
        error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message=None
    )
    for _ in range(2):
        operation.settle_unsent(ONLY, 0.0)
    assert "an earlier try" in str(refused(meanings(operation, answer, 0)[ONLY]))


def test_features_are_asked_for() -> None:
    operation = DescribeFeatures()
    assert operation.max_version([ONLY]) == 4
    for version in (3, 4):
        request = sent(operation, version)
        assert request.client_software_name == "kafka-fast-python"
        assert request.client_software_version
    assert "since Kafka 2.7" in str(operation.unsupported(ONLY, 2))


def test_features_are_described() -> None:
    answer = ApiVersionsResponse(
        supported_features=[SupportedFeatureKey(name="f", min_version=1, max_version=9)],
        finalized_features_epoch=5,
        finalized_features=[
            FinalizedFeatureKey(name="f", min_version_level=1, max_version_level=4)
        ],
    )
    features = values(DescribeFeatures(), answer, 4)[ONLY]
    assert features.finalized == {"f": FinalizedVersionRange(1, 4)}
    assert features.supported == {"f": SupportedVersionRange(1, 9)}
    assert features.finalized_epoch == 5
    nothing = values(DescribeFeatures(), ApiVersionsResponse(), 3)[ONLY]
    assert (nothing.finalized, nothing.finalized_epoch) == ({}, None)
    error = ApiVersionsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    assert isinstance(refused(meanings(DescribeFeatures(), error, 3)[ONLY]), UnknownServerError)


UPDATES = {
    "up": FeatureUpdate(3),
    "down": FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE),
    "off": FeatureUpdate(0, UpgradeType.UNSAFE_DOWNGRADE),
}


def test_features_are_updated() -> None:
    for version in versions(UpdateFeatures):
        operation = UpdateFeatures(UPDATES, validate_only=version > 0)
        keys = {one.feature: one for one in sent(operation, version).feature_updates}
        assert {name: key.max_version_level for name, key in keys.items()} == {
            "up": 3,
            "down": 1,
            "off": 0,
        }
        if version:
            assert [keys[name].upgrade_type for name in UPDATES] == [1, 2, 3]
            assert sent(operation, version).validate_only
        else:
            assert [keys[name].allow_downgrade for name in UPDATES] == [False, True, True]


def test_old_brokers_know_fewer_kinds_of_updates() -> None:
    operation = UpdateFeatures(UPDATES, validate_only=False)
    assert operation.unsupported("up", 0) is None
    assert operation.unsupported("down", 0) is None
    assert "safe or unsafe since Kafka 3.3" in str(operation.unsupported("off", 0))
    trial = UpdateFeatures(UPDATES, validate_only=True)
    assert "validated since Kafka 3.3" in str(trial.unsupported("up", 0))
    assert trial.unsupported("off", 1) is None
    with pytest.raises(UsageError, match="has a name"):
        UpdateFeatures({"": FeatureUpdate(1)}, validate_only=True)


def test_results_of_updates() -> None:
    operation = UpdateFeatures(UPDATES, validate_only=False)
    done = UpdateFeaturesResponse(error_message=None)
    assert values(operation, done, 2) == dict.fromkeys(UPDATES)
    some = UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(feature="up", error_message=None),
            UpdatableFeatureResult(
                feature="down", error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message="no"
            ),
            UpdatableFeatureResult(feature="foreign", error_message=None),
        ],
    )
    read = meanings(operation, some, 1)
    assert set(read) == {"up", "down", "foreign"}
    error = refused(read["down"])
    assert isinstance(error, InvalidUpdateVersion)
    assert str(error).endswith("UpdateFeatures of feature 'down': no")
    none = UpdateFeaturesResponse(error_code=ErrorCode.NOT_CONTROLLER, error_message=None)
    assert all(isinstance(one, FindAgain) for one in meanings(operation, none, 2).values())
