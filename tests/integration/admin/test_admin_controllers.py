"""The admin client of controllers (KIP-919), on real Kafka: the recipe of docs/admin.md, and more.

Each question goes to the listener of a controller. No broker is connected to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_fast import Admin, aio
from kafka_fast.admin import (
    AclBindingFilter,
    AlterConfigOp,
    ClusterDescription,
    ConfigResource,
    ConfigResourceType,
    EndpointType,
    FeatureUpdate,
    NewTopic,
)
from kafka_fast.errors import (
    BrokerIdNotRegistered,
    ControllerIdNotRegistered,
    KafkaError,
    MismatchedEndpointType,
    SecurityDisabled,
    UnsupportedEndpointType,
    UnsupportedVersion,
    UnsupportedVersionError,
    UsageError,
)
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.waiting import eventually

pytestmark = [
    pytest.mark.broker,
    pytest.mark.needs_kafka("3.7", "controllers describe themselves (KIP-919)"),
]

ALL_BROKERS = ConfigResource(ConfigResourceType.BROKER, "")
THIS_NODE = ConfigResource(ConfigResourceType.BROKER, "1")
DIRECTORY_TEXT = "AAECAwQFBgcICQoLDA0ODw"


@pytest.fixture(scope="module")
def controllers(real_kafka: RealKafka) -> Iterator[Admin]:
    with Admin(bootstrap_controllers=real_kafka.controllers) as made:
        yield made


def test_controllers_describe_themselves(controllers: Admin, real_kafka: RealKafka) -> None:
    described = controllers.describe_cluster(include_authorized_operations=True)
    assert described.cluster_id == real_kafka.cluster_id
    assert described.endpoint_type is EndpointType.CONTROLLER
    assert described.controller == 1
    assert [f"{one.host}:{one.port}" for one in described.nodes] == [real_kafka.controllers]
    assert described.authorized_operations
    with Admin(bootstrap_servers=real_kafka.bootstrap) as brokers:
        assert brokers.describe_cluster().endpoint_type is EndpointType.BROKER
    with pytest.raises(UsageError, match="controllers do not describe fenced brokers"):
        controllers.describe_cluster(include_fenced_brokers=True)


def test_tasks_ask_them_too(real_kafka: RealKafka) -> None:
    async def described() -> ClusterDescription:
        async with aio.Admin(bootstrap_controllers=real_kafka.controllers) as admin:
            return await admin.describe_cluster()

    assert asyncio.run(described()).endpoint_type is EndpointType.CONTROLLER


def test_the_quorum_and_features(controllers: Admin) -> None:
    assert controllers.describe_metadata_quorum().leader_id == 1
    features = controllers.describe_features(node_id=1)
    assert features.supported == controllers.describe_features().supported
    level = features.finalized["metadata.version"].max_version_level
    update = {"metadata.version": FeatureUpdate(level)}
    assert list(controllers.update_features(update, validate_only=True)) == ["metadata.version"]


@pytest.mark.needs_kafka("3.9", "voters are added and removed")
def test_voters_of_a_static_quorum_stay(controllers: Admin) -> None:
    with pytest.raises(UnsupportedVersion, match="RemoveRaftVoter of voter 7"):
        controllers.remove_raft_voter(7, directory_id=DIRECTORY_TEXT)


def test_configurations(controllers: Admin) -> None:
    change = {ALL_BROKERS: [AlterConfigOp("log.cleaner.threads", "2")]}
    result = controllers.incremental_alter_configs(change, validate_only=True)
    assert list(result.raise_first()) == [ALL_BROKERS]
    (settings,) = controllers.describe_configs([THIS_NODE]).raise_first().values()
    assert settings["node.id"].value == "1"


def test_nodes_that_are_not_there(controllers: Admin) -> None:
    with pytest.raises(BrokerIdNotRegistered, match="of broker 99"):
        controllers.unregister_broker(99)


@pytest.mark.needs_kafka("4.4", "controllers are unregistered")
def test_controllers_that_are_not_there(controllers: Admin) -> None:
    with pytest.raises(ControllerIdNotRegistered, match="of controller 99"):
        controllers.unregister_controller(99)


def test_rules_and_reassignments(controllers: Admin) -> None:
    with pytest.raises(SecurityDisabled):
        controllers.describe_acls(AclBindingFilter())
    assert controllers.list_partition_reassignments() == {}


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("list_topics", lambda admin: admin.list_topics()),
        ("create_topics", lambda admin: admin.create_topics([NewTopic("t")])),
        ("list_groups", lambda admin: admin.list_groups()),
        ("describe_client_quotas", lambda admin: admin.describe_client_quotas()),
        ("describe_log_dirs", lambda admin: admin.describe_log_dirs()),
    ],
)
def test_what_only_brokers_do(
    controllers: Admin, name: str, refused: Callable[[Admin], Any]
) -> None:
    """As in Java, though the listener of a controller would take some of them."""
    with pytest.raises(UnsupportedEndpointType, match=f"{name}: controllers are not asked for"):
        refused(controllers)


def test_a_broker_is_no_controller(real_kafka: RealKafka) -> None:
    with (
        Admin(bootstrap_controllers=real_kafka.bootstrap) as admin,
        pytest.raises(MismatchedEndpointType, match="is a broker: bootstrap"),
    ):
        admin.describe_cluster()


def test_a_controller_is_no_broker(real_kafka: RealKafka) -> None:
    with (
        Admin(bootstrap_servers=real_kafka.controllers) as admin,
        pytest.raises(UnsupportedVersionError, match="the port of a controller"),
    ):
        admin.describe_cluster()


def test_the_active_controller_is_found_again(real_kafka_cluster: RealKafka) -> None:
    with Admin(bootstrap_controllers=real_kafka_cluster.controllers) as admin:
        before = admin.describe_cluster()
        assert [one.id for one in before.nodes] == [1, 2, 3]
        assert before.controller is not None
        real_kafka_cluster.node(before.controller).kill()

        def leads() -> bool:
            try:
                leader = admin.describe_metadata_quorum(timeout=5.0).leader_id
            except KafkaError:
                return False
            return leader not in (None, -1, before.controller)

        eventually(leads, "another controller to lead the quorum")
        admin.describe_configs([ALL_BROKERS]).raise_first()
        assert admin.describe_cluster().controller != before.controller
