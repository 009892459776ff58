"""What the admin client says to a principal without permissions, on real Kafka."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_fast import Admin, TopicPartition
from kafka_fast.admin import (
    AclOperation,
    ElectionType,
    FeatureUpdate,
    RaftVoterEndpoint,
    TopicPartitionReplica,
)
from kafka_fast.errors import (
    ClusterAuthorizationFailed,
    KafkaError,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from kafka_fast.testing._kafka.secure_kafka import SecureKafka

pytestmark = [pytest.mark.broker, pytest.mark.needs_kafka("3.9", "all of these APIs")]

TOPIC = f"denied-{uuid.uuid4().hex}"
PARTITION = TopicPartition(TOPIC, 0)
REPLICA = TopicPartitionReplica(TOPIC, 0, 1)
DIRECTORY = "AAECAwQFBgcICQoLDA0ODw"


@pytest.fixture(scope="module")
def bob(secure_kafka: SecureKafka) -> Iterator[Admin]:
    """Somebody who may do nothing with this module's topic, nor with the cluster."""
    secure_kafka.create_topic(TOPIC)
    properties = secure_kafka.client_properties("SASL_PLAINTEXT", "SCRAM-SHA-256", user="bob")
    with Admin(properties) as made:
        yield made


CLUSTER_CALLS: dict[str, tuple[Callable[[Admin], Any], str]] = {
    "quorum": (lambda bob: bob.describe_metadata_quorum(), "DESCRIBE"),
    "remove_voter": (lambda bob: bob.remove_raft_voter(7, directory_id=DIRECTORY), "ALTER"),
    "add_voter": (
        lambda bob: bob.add_raft_voter(
            7, directory_id=DIRECTORY, endpoints=[RaftVoterEndpoint("CONTROLLER", "h", 1)]
        ),
        "ALTER",
    ),
    "unregister": (lambda bob: bob.unregister_broker(99), "ALTER"),
    "features": (
        lambda bob: bob.update_features({"metadata.version": FeatureUpdate(1)}).raise_first(),
        "ALTER",
    ),
    "log_dirs": (lambda bob: bob.describe_log_dirs().raise_first(), "DESCRIBE"),
    "replicas": (lambda bob: bob.describe_replica_log_dirs([REPLICA]).raise_first(), "DESCRIBE"),
    "move_replica": (
        lambda bob: bob.alter_replica_log_dirs({REPLICA: "/d"}).raise_first(),
        "ALTER",
    ),
    "elect": (
        lambda bob: bob.elect_leaders(ElectionType.PREFERRED, partitions=[PARTITION]).raise_first(),
        "ALTER",
    ),
    "elect_all": (lambda bob: bob.elect_leaders(ElectionType.PREFERRED), "ALTER"),
    "move": (
        lambda bob: bob.alter_partition_reassignments({PARTITION: [1]}).raise_first(),
        "ALTER",
    ),
    "moves": (lambda bob: bob.list_partition_reassignments(), "DESCRIBE"),
    "abort": (
        lambda bob: bob.abort_transaction(
            PARTITION, producer_id=1, producer_epoch=0, coordinator_epoch=0
        ),
        "ALTER or CLUSTER_ACTION",
    ),
}
"""The calls that need a permission on the cluster."""


@pytest.mark.parametrize("name", CLUSTER_CALLS)
def test_the_cluster_is_denied(bob: Admin, secure_kafka: SecureKafka, name: str) -> None:
    if name == "abort":  # the client must see who leads the partition
        secure_kafka.allow("bob", "DESCRIBE", topic=TOPIC)
    call, operation = CLUSTER_CALLS[name]
    with pytest.raises(ClusterAuthorizationFailed) as caught:
        call(bob)
    assert f"needs {operation} on the cluster" in str(caught.value)


def test_what_everybody_may_ask(bob: Admin) -> None:
    cluster = bob.describe_cluster(include_authorized_operations=True)
    assert cluster.authorized_operations is not None
    assert AclOperation.ALTER not in cluster.authorized_operations
    assert bob.describe_features().finalized
    assert bob.list_transactions().errors == {}


def test_topics_and_transactions_are_denied(bob: Admin, secure_kafka: SecureKafka) -> None:
    hidden = f"{TOPIC}-hidden"
    secure_kafka.create_topic(hidden)

    def error(result: Any) -> KafkaError:
        (only,) = result.errors.values()
        assert isinstance(only, KafkaError)
        return only

    for denied in (
        error(bob.describe_topics([hidden])),
        error(bob.describe_producers([TopicPartition(hidden, 0)], broker_id=1)),
    ):
        assert isinstance(denied, TopicAuthorizationFailed)
        assert "on the topic" in str(denied)
    with pytest.raises(TopicAuthorizationFailed, match="needs DESCRIBE on the topic"):
        bob.wait_until_topics_visible([hidden])
    denied = error(bob.fence_producers([hidden]))
    assert isinstance(denied, TransactionalIdAuthorizationFailed)
