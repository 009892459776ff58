"""The cluster by the admin client, on real Kafka: nodes, features, the quorum."""

from __future__ import annotations

import asyncio

import pytest

from kafka_fast import Admin, aio
from kafka_fast.admin import (
    AclOperation,
    ClusterDescription,
    FeatureUpdate,
    HangingTransaction,
    RaftVoterEndpoint,
    UpgradeType,
)
from kafka_fast.errors import (
    BrokerIdNotRegistered,
    ControllerIdNotRegistered,
    DuplicateVoter,
    InconsistentClusterId,
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersion,
    VoterNotFound,
)
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.conftest import start_or_skip
from tests.integration.admin.admin_clients import admin
from tests.waiting import eventually

__all__ = ["admin"]

pytestmark = pytest.mark.broker

DIRECTORY_TEXT = "AAECAwQFBgcICQoLDA0ODw"


def test_the_cluster_is_described(admin: Admin, real_kafka: RealKafka) -> None:
    plain = admin.describe_cluster()
    assert plain.cluster_id
    assert plain.cluster_id == (real_kafka.cluster_id or plain.cluster_id)
    assert plain.controller == 1
    (node,) = plain.nodes
    assert (node.id, f"{node.host}:{node.port}") == (1, real_kafka.bootstrap)
    assert not node.is_fenced
    assert plain.authorized_operations is None


@pytest.mark.needs_kafka("2.3", "authorized operations")
def test_what_may_be_done_with_the_cluster(admin: Admin) -> None:
    more = admin.describe_cluster(include_authorized_operations=True)
    assert more.authorized_operations is not None
    assert AclOperation.ALTER in more.authorized_operations


@pytest.mark.needs_kafka("4.0", "fenced brokers are described")
def test_fenced_brokers_are_described(admin: Admin) -> None:
    assert [one.id for one in admin.describe_cluster(include_fenced_brokers=True).nodes] == [1]


@pytest.mark.needs_kafka("3.3", "the metadata version is a feature")
def test_features_are_described_and_updated(admin: Admin) -> None:
    features = admin.describe_features()
    level = features.finalized["metadata.version"].max_version_level
    assert features.supported["metadata.version"].max_version >= level > 0
    assert features.finalized_epoch is not None
    assert admin.describe_features(node_id=1).supported == features.supported
    with pytest.raises(KafkaTimeoutError, match="ApiVersions"):
        admin.describe_features(node_id=99, timeout=0.2)
    result = admin.update_features({"metadata.version": FeatureUpdate(999)}, validate_only=True)
    assert "metadata.version" in str(result.errors["metadata.version"])
    lower = FeatureUpdate(level - 1, UpgradeType.UPGRADE)
    refused = admin.update_features({"metadata.version": lower})
    assert isinstance(refused.errors["metadata.version"], KafkaError)
    same = admin.update_features({"metadata.version": FeatureUpdate(level)}, validate_only=True)
    assert list(same) == ["metadata.version"]
    assert same.errors.keys() <= {"metadata.version"}
    assert admin.describe_features().finalized == features.finalized


@pytest.mark.needs_kafka("3.9", "endpoints of the quorum")
def test_the_quorum_is_described(admin: Admin) -> None:
    quorum = admin.describe_metadata_quorum()
    assert (quorum.leader_id, len(quorum.voters)) == (1, 1)
    assert quorum.leader_epoch > 0
    (voter,) = quorum.voters
    assert voter.replica_id == 1
    assert voter.log_end_offset >= quorum.high_watermark > 0
    assert voter.last_caught_up_ms is not None
    ((endpoint,),) = quorum.endpoints.values()
    assert (endpoint.name, endpoint.host) == ("CONTROLLER", "127.0.0.1")


@pytest.mark.needs_kafka("3.9", "voters are added and removed")
def test_voters_of_a_static_quorum_stay(admin: Admin) -> None:
    with pytest.raises(UnsupportedVersion, match="AddRaftVoter of voter 7"):
        admin.add_raft_voter(
            7,
            directory_id=DIRECTORY_TEXT,
            endpoints=[RaftVoterEndpoint("CONTROLLER", "127.0.0.1", 1)],
        )
    with pytest.raises(UnsupportedVersion, match="RemoveRaftVoter of voter 7"):
        admin.remove_raft_voter(7, directory_id=DIRECTORY_TEXT)


@pytest.mark.needs_kafka("3.0", "KRaft")
def test_nobody_is_unregistered_that_is_not_there(admin: Admin) -> None:
    with pytest.raises(BrokerIdNotRegistered, match="of broker 99"):
        admin.unregister_broker(99)


@pytest.mark.needs_kafka("4.4", "controllers are unregistered")
def test_no_controller_is_unregistered_that_is_not_there(admin: Admin) -> None:
    with pytest.raises(ControllerIdNotRegistered, match="of controller 99"):
        admin.unregister_controller(99)


@pytest.mark.needs_kafka("3.0", "hanging transactions")
def test_tasks_describe_it_too(real_kafka: RealKafka) -> None:
    async def described() -> tuple[ClusterDescription, list[int], list[HangingTransaction]]:
        async with aio.Admin(bootstrap_servers=real_kafka.bootstrap) as admin:
            cluster = await admin.describe_cluster()
            dirs = await admin.describe_log_dirs()
            await admin.wait_until_topics_visible([])
            hanging = await admin.find_hanging_transactions(broker_id=1)
            return cluster, list(dirs.raise_first()), hanging

    cluster, brokers, hanging = asyncio.run(described())
    assert [one.id for one in cluster.nodes] == brokers == [1]
    assert hanging == []


# ---- clusters of their own ----


@pytest.mark.needs_kafka("3.9", "quorums that change")
def test_voters_of_a_dynamic_quorum() -> None:
    overrides = {
        "controller.quorum.voters": "",
        "controller.quorum.bootstrap.servers": "127.0.0.1:1",  # a single node needs nobody
    }
    kafka = RealKafka(overrides=overrides, format_options=["--standalone"])
    start_or_skip(kafka)
    with kafka, Admin(bootstrap_servers=kafka.bootstrap) as admin:
        quorum = admin.describe_metadata_quorum()
        directory_id = quorum.voters[0].directory_id
        assert directory_id is not None
        with pytest.raises(DuplicateVoter, match="AddRaftVoter of voter 1"):
            admin.add_raft_voter(1, directory_id=directory_id, endpoints=quorum.endpoints[1])
        with pytest.raises(InconsistentClusterId):
            admin.remove_raft_voter(1, directory_id=directory_id, cluster_id="another")
        with pytest.raises(VoterNotFound, match="RemoveRaftVoter of voter 7"):
            admin.remove_raft_voter(7, directory_id=DIRECTORY_TEXT)


@pytest.mark.needs_kafka("4.0", "fenced brokers are described")
def test_a_broker_stops_and_is_unregistered(real_kafka_cluster: RealKafka) -> None:
    with Admin(bootstrap_servers=real_kafka_cluster.bootstrap) as admin:
        quorum = admin.describe_metadata_quorum()
        assert [one.replica_id for one in quorum.voters] == [1, 2, 3]
        gone = next(one.replica_id for one in quorum.voters if one.replica_id != quorum.leader_id)
        real_kafka_cluster.node(gone).kill()

        def fenced() -> list[int]:
            nodes = admin.describe_cluster(include_fenced_brokers=True).nodes
            return [one.id for one in nodes if one.is_fenced]

        eventually(lambda: fenced() == [gone], "the broker to be fenced")
        assert gone not in [one.id for one in admin.describe_cluster().nodes]
        admin.unregister_broker(gone)
        eventually(lambda: fenced() == [], "the broker to be forgotten")
