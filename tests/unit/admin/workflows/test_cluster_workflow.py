"""A cluster is described by one API or the other."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast.admin import ClusterDescription
from kafka_fast.admin.workflows.cluster import describe_cluster
from kafka_fast.control.admin.operations.cluster import DescribeCluster, DescribeClusterByMetadata
from kafka_fast.errors import KafkaTimeoutError, UnsupportedVersionError
from tests.unit.admin.workflows.scripted import ScriptedSteps, finish, only

CLUSTER = ClusterDescription("c", 1, ())


def described(steps: ScriptedSteps, *, fenced: bool = False) -> Any:
    return finish(
        describe_cluster(
            steps, include_authorized_operations=True, include_fenced_brokers=fenced, timeout=None
        )
    )


def old_broker(operation: object) -> Any:
    if isinstance(operation, DescribeCluster):
        return UnsupportedVersionError("no DescribeCluster")
    return only(CLUSTER)


def test_a_new_broker_is_asked_once() -> None:
    steps = ScriptedSteps(lambda operation: only(CLUSTER))
    assert described(steps) == CLUSTER
    assert [type(one) for one in steps.carried_out] == [DescribeCluster]


def test_an_old_broker_answers_by_metadata() -> None:
    steps = ScriptedSteps(old_broker)
    assert described(steps) == CLUSTER
    assert type(steps.carried_out[-1]) is DescribeClusterByMetadata


def test_metadata_know_no_fenced_brokers() -> None:
    with pytest.raises(UnsupportedVersionError, match="no DescribeCluster"):
        described(ScriptedSteps(old_broker), fenced=True)


def test_other_errors_are_raised() -> None:
    steps = ScriptedSteps(lambda operation: KafkaTimeoutError("late"))
    with pytest.raises(KafkaTimeoutError, match="late"):
        described(steps)
