"""The calls of `Admin` about the cluster: its nodes, features, and the quorum of controllers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafka_fast.admin.base import AdminCalls

if TYPE_CHECKING:
    from kafka_fast.admin.result import AdminResult
    from kafka_fast.control.admin.types.cluster import (
        ClusterDescription,
        FeatureMetadata,
        FeatureUpdate,
        QuorumInfo,
        RaftVoterEndpoint,
    )


class ClusterCalls(AdminCalls):
    """The cluster: describe its nodes, features and quorum, and change the latter two."""

    def describe_cluster(
        self,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
        timeout: float | None = None,
    ) -> ClusterDescription:
        """Return the cluster's id, its brokers, and which of them is the controller.

        With bootstrap.controllers (KIP-919): its controllers, and which of them is the active one.

        DescribeCluster, or Metadata if the brokers are older than Kafka 2.8; needs no permission,
        but DESCRIBE on the cluster to be told what may be done with it. Operations need Kafka 2.3,
        fenced brokers 4.0.

        Args:
            include_authorized_operations: whether to ask what this client may do with the cluster.
            include_fenced_brokers: whether to include brokers that are registered and take no part,
                because they have stopped or are still starting.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UnsupportedVersionError: the broker is too old for what is to be included.
            UsageError: controllers are asked for fenced brokers.
        """
        from kafka_fast.admin.workflows.cluster import describe_cluster

        return self._core.driver.run(
            describe_cluster(
                self._steps,
                include_authorized_operations=include_authorized_operations,
                include_fenced_brokers=include_fenced_brokers,
                timeout=timeout,
            )
        )

    def describe_features(
        self, *, node_id: int | None = None, timeout: float | None = None
    ) -> FeatureMetadata:
        """Return the levels of features that the cluster has, and those that a node can have.

        ApiVersions; needs no permission. Since Kafka 2.7.

        Args:
            node_id: the node that is asked (KIP-1160); None: any broker, or the active controller.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UnsupportedVersionError: the brokers are too old.
        """
        from kafka_fast.control.admin.operations.cluster import DescribeFeatures

        return self._core.driver.run(self._steps.run_one(DescribeFeatures(node_id), timeout))

    def update_features(
        self,
        updates: Mapping[str, FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> AdminResult[str, None]:
        """Raise or lower the levels of features: all of them, or none.

        UpdateFeatures; needs ALTER on the cluster. Since Kafka 2.7; brokers before 4.0 change those
        features that they can.

        Args:
            updates: the level that each feature is to have, by its name: "metadata.version".
            validate_only: whether to check only whether the levels could be set. Needs Kafka 3.3.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: a feature has no name.
        """
        from kafka_fast.control.admin.operations.cluster import UpdateFeatures

        operation = UpdateFeatures(updates, validate_only=validate_only)
        return self._core.driver.run(self._steps.run_items(operation, timeout))

    def describe_metadata_quorum(self, *, timeout: float | None = None) -> QuorumInfo:
        """Return the controllers that keep the cluster's metadata, and how far each has come.

        DescribeQuorum; needs DESCRIBE on the cluster. Since Kafka 3.3, with KRaft.

        Args:
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UnsupportedVersionError: the brokers are too old, or have a ZooKeeper.
        """
        from kafka_fast.control.admin.operations.quorum import DescribeMetadataQuorum

        return self._core.driver.run(self._steps.run_one(DescribeMetadataQuorum(), timeout))

    def add_raft_voter(
        self,
        voter_id: int,
        *,
        directory_id: str,
        endpoints: Iterable[RaftVoterEndpoint],
        cluster_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Give a controller a vote in the quorum.

        AddRaftVoter; needs ALTER on the cluster. Since Kafka 3.9, with the feature kraft.version
        at level 1.

        Args:
            voter_id: node id of the controller, which is running.
            directory_id: id of its metadata directory: `describe_metadata_quorum` has it among the
                observers.
            endpoints: its listeners for other controllers.
            cluster_id: the cluster that is meant: another one refuses. None: whichever this is.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            DuplicateVoter: it has a vote already.
            UnsupportedVersion: the quorum is a static one.
            UsageError: the directory id is none, or there are no endpoints.
        """
        from kafka_fast.control.admin.operations.quorum import AddRaftVoter

        operation = AddRaftVoter(
            voter_id, directory_id=directory_id, endpoints=endpoints, cluster_id=cluster_id
        )
        return self._core.driver.run(self._steps.run_one(operation, timeout))

    def remove_raft_voter(
        self,
        voter_id: int,
        *,
        directory_id: str,
        cluster_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Take a controller's vote in the quorum away.

        RemoveRaftVoter; needs ALTER on the cluster. Since Kafka 3.9, with the feature kraft.version
        at level 1.

        Args:
            voter_id: node id of the controller.
            directory_id: id of its metadata directory: `describe_metadata_quorum` has it among the
                voters.
            cluster_id: as in `add_raft_voter`.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UnsupportedVersion: the quorum is a static one.
            UsageError: the directory id is none.
            VoterNotFound: it has no vote.
        """
        from kafka_fast.control.admin.operations.quorum import RemoveRaftVoter

        operation = RemoveRaftVoter(voter_id, directory_id=directory_id, cluster_id=cluster_id)
        return self._core.driver.run(self._steps.run_one(operation, timeout))

    def unregister_broker(self, broker_id: int, *, timeout: float | None = None) -> None:
        """Remove a broker that has stopped for good from the cluster's metadata.

        UnregisterBroker; needs ALTER on the cluster. Since Kafka 2.8, with KRaft. A broker that is
        running registers itself again.

        Args:
            broker_id: its node id.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            BrokerIdNotRegistered: there is no such broker.
        """
        from kafka_fast.control.admin.operations.cluster import UnregisterBroker

        return self._core.driver.run(self._steps.run_one(UnregisterBroker(broker_id), timeout))

    def unregister_controller(
        self,
        controller_id: int,
        *,
        timeout: float | None = None,
    ) -> None:
        """Remove a controller that has stopped for good from the cluster's metadata.

        UnregisterController; needs ALTER on the cluster. Since Kafka 4.4.

        Args:
            controller_id: its node id.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UnsupportedVersionError: the brokers are too old.
        """
        from kafka_fast.control.admin.operations.cluster import UnregisterController

        operation = UnregisterController(controller_id)
        return self._core.driver.run(self._steps.run_one(operation, timeout))
