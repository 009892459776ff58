"""Calls about the cluster that depend on what its brokers can do."""

from __future__ import annotations

from kafka_fast.admin.admin_steps import AdminSteps
from kafka_fast.control.admin.operations.cluster import DescribeCluster, DescribeClusterByMetadata
from kafka_fast.control.admin.types.cluster import ClusterDescription, EndpointType
from kafka_fast.errors import UnsupportedVersionError
from kafka_fast.net.waiting.steps import Steps


def describe_cluster(
    steps: AdminSteps,
    *,
    include_authorized_operations: bool,
    include_fenced_brokers: bool,
    timeout: float | None,
) -> Steps[ClusterDescription]:
    """Return the cluster, by Metadata if a broker does not have DescribeCluster.

    Raises:
        UnsupportedVersionError: the broker does not know what is asked for beyond the nodes.
        KafkaError: as in `AdminSteps.run_one`.
    """
    deadline = steps.begin_call(timeout)
    operation = DescribeCluster(
        include_authorized_operations=include_authorized_operations,
        include_fenced_brokers=include_fenced_brokers,
        endpoint_type=EndpointType.CONTROLLER if steps.uses_controllers else EndpointType.BROKER,
    )
    try:
        return (yield from steps.run_one_until(operation, deadline))
    except UnsupportedVersionError:
        # Metadata do not know fenced brokers, and controllers have none.
        if include_fenced_brokers or steps.uses_controllers:
            raise
    by_metadata = DescribeClusterByMetadata(
        include_authorized_operations=include_authorized_operations
    )
    return (yield from steps.run_one_until(by_metadata, deadline))
