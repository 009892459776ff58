"""Plays of the calls about the cluster: nodes, features, the quorum of controllers."""

from __future__ import annotations

import pytest

from kafka_fast.admin import FeatureUpdate, QuorumInfo, RaftVoterEndpoint
from kafka_fast.errors import BrokerError
from kafka_fast.testing._kafka.installation import HOST, Node
from tests.integration.admin.calls.stage import Stage, play
from tests.waiting import eventually

CONTROLLER = "CONTROLLER"
NOBODY = 99
"""An id that no node has."""
NO_DIRECTORY = "AAECAwQFBgcICQoLDA0ODw"
DYNAMIC_QUORUMS = "3.9"


@play
def describe_cluster(stage: Stage) -> None:
    cluster = stage.admin.describe_cluster()
    assert cluster.cluster_id
    ids = {one.id for one in cluster.nodes}
    assert cluster.controller in ids
    assert len(ids) == stage.replication


@play
def describe_features(stage: Stage) -> None:
    features = stage.admin.describe_features()
    if stage.has_kraft:
        level = features.finalized["metadata.version"].max_version_level
        assert features.supported["metadata.version"].max_version >= level > 0


@play
def update_features(stage: Stage) -> None:
    if stage.kafka is not None and not stage.has_kraft:
        # With a ZooKeeper no release of Kafka has a feature to update.
        result = stage.admin.update_features({"odd": FeatureUpdate(1)})
        if stage.has("2.7"):
            assert isinstance(result.errors["odd"], BrokerError)
        else:
            result.raise_first()
        return
    before = stage.admin.describe_features().finalized
    name = "metadata.version" if stage.kafka is not None else "transaction.version"
    level = before[name].max_version_level
    stage.admin.update_features({name: FeatureUpdate(level)}).raise_first()
    assert stage.admin.describe_features().finalized == before


@play
def describe_metadata_quorum(stage: Stage) -> None:
    quorum = stage.admin.describe_metadata_quorum()
    voters = {one.replica_id for one in quorum.voters}
    assert quorum.leader_id in voters
    assert len(voters) == stage.replication


# ---- nodes that come and go ----


def _voters(quorum: QuorumInfo) -> set[int]:
    return {one.replica_id for one in quorum.voters}


def _observer(stage: Stage, node_id: int) -> str | None:
    """Return the id of a controller's directory, if it follows the quorum without a vote."""
    quorum = stage.admin.describe_metadata_quorum()
    ids = {one.replica_id: one.directory_id for one in quorum.observers}
    return ids.get(node_id)


def _add_voter(stage: Stage) -> tuple[Node, str]:
    """Give a controller a vote, and return it with the id of its directory."""
    node = stage.controller()
    directory_id = eventually(lambda: _observer(stage, node.node_id), "the controller to follow")
    endpoint = RaftVoterEndpoint(CONTROLLER, HOST, node.ports[CONTROLLER])
    stage.admin.add_raft_voter(node.node_id, directory_id=directory_id, endpoints=[endpoint])
    return node, directory_id


@play
def add_raft_voter(stage: Stage) -> None:
    if not stage.has(DYNAMIC_QUORUMS):
        endpoint = RaftVoterEndpoint(CONTROLLER, HOST, 1)
        stage.admin.add_raft_voter(NOBODY, directory_id=NO_DIRECTORY, endpoints=[endpoint])
        return
    node, directory_id = _add_voter(stage)
    quorum = stage.admin.describe_metadata_quorum()
    assert node.node_id in _voters(quorum)
    assert quorum.endpoints[node.node_id][0].port == node.ports[CONTROLLER]
    stage.admin.remove_raft_voter(node.node_id, directory_id=directory_id)


@play
def remove_raft_voter(stage: Stage) -> None:
    if not stage.has(DYNAMIC_QUORUMS):
        stage.admin.remove_raft_voter(NOBODY, directory_id=NO_DIRECTORY)
        return
    node, directory_id = _add_voter(stage)
    stage.admin.remove_raft_voter(node.node_id, directory_id=directory_id)
    eventually(lambda: node.node_id not in _voters(stage.admin.describe_metadata_quorum()))


@play
def unregister_controller(stage: Stage) -> None:
    if not stage.has("4.4"):
        stage.admin.unregister_controller(NOBODY)
        return
    node = stage.controller()
    eventually(lambda: _observer(stage, node.node_id), "the controller to follow")
    node.stop()
    stage.admin.unregister_controller(node.node_id)
    with pytest.raises(BrokerError, match=f"controller {node.node_id}"):
        stage.admin.unregister_controller(node.node_id)


@play
def unregister_broker(stage: Stage) -> None:
    if not stage.has_kraft:
        stage.admin.unregister_broker(NOBODY)
        return
    assert stage.kafka is not None
    node = stage.kafka.start_guest("broker")
    node.stop()
    stage.admin.unregister_broker(node.node_id)
    with pytest.raises(BrokerError, match=f"broker {node.node_id}"):
        stage.admin.unregister_broker(node.node_id)
