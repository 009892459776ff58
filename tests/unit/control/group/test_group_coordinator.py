"""The way to a group's coordinator: a connection of its own, whatever the node's id is."""

from __future__ import annotations

import pytest

from kafka_fast.control.connections.connection_key import BOOTSTRAP, ConnectionKey, Role
from kafka_fast.errors import KafkaConnectionError
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsRequest
from kafka_fast.protocol.apis.cluster.find_coordinator import FindCoordinatorRequest
from kafka_fast.protocol.apis.groups.offset_fetch import OffsetFetchRequest
from kafka_fast.protocol.apis.records.list_offsets import ListOffsetsRequest
from tests.unit.control.consumer.scripted import T0, T1, Cluster, asked, make, starts
from tests.unit.control.fake_machine import FakeMachine

LARGE = 2**29 + 1, 2**30 + 1, 2**31 - 1
"""Node ids that would be node 1's if a bit of them said what a connection is for."""

REFUSED = KafkaConnectionError("refused")


def reading(coordinator: int, leader: int) -> FakeMachine:
    """Return a consumer that reads one partition from each of two nodes."""
    cluster = Cluster()
    cluster.coordinator = coordinator
    cluster.nodes = [1, leader]
    cluster.leaders = [(1, 5), (leader, 7)]
    machine = make(cluster, auto_offset_reset="earliest", group_id="g")
    machine.control.assign([(T0, 0), (T1, 1)], machine.now, committed=True)
    machine.run(1.0)
    return machine


@pytest.mark.parametrize("leader", [2, *LARGE])
@pytest.mark.parametrize("is_leader", [True, False])
def test_no_connection_is_taken_for_the_coordinators(leader: int, is_leader: bool) -> None:
    coordinator = leader if is_leader else 1
    machine = reading(coordinator, leader)
    key = ConnectionKey(Role.COORDINATOR, coordinator)
    group = machine.control.group
    assert set(asked(machine, OffsetFetchRequest)) == {key}
    assert group.coordinator.link.key == key
    assert len(starts(machine)) == 2
    machine.control.lookup.look_up({T0: -1, T1: -1}, lambda offsets: None, machine.now)
    machine.run(0.1)
    over = [ConnectionKey(Role.CONTROL, node) for node in (1, leader)]
    assert asked(machine, ListOffsetsRequest)[-2:] == over
    assert len(set(machine.links.values())) == len(machine.links) == 6, "none was opened twice"


@pytest.mark.parametrize("leader", [2, *LARGE])
def test_each_broker_is_told_whom_the_connection_is_meant_for(leader: int) -> None:
    """KIP-1242; regression: only for the data, as the ids of other connections were not nodes'."""
    machine = reading(1, leader)
    machine.control.lookup.look_up({T0: -1, T1: -1}, lambda offsets: None, machine.now)
    machine.run(0.1)
    cluster_id = machine.control.cluster.cluster_id
    negotiated = {
        key: (request.cluster_id, request.node_id)
        for request, key in machine.asked
        if isinstance(request, ApiVersionsRequest)
    }
    assert negotiated.pop(BOOTSTRAP) == (None, -1)
    assert negotiated == {key: (cluster_id, key.node_id) for key in negotiated}
    assert {key.role for key in negotiated} == {Role.DATA, Role.CONTROL, Role.COORDINATOR}


@pytest.mark.parametrize("node_id", [2, *LARGE])
def test_it_is_looked_for_again_when_its_own_connection_fails(node_id: int) -> None:
    machine = reading(node_id, node_id)
    coordinator = machine.control.group.coordinator
    coordinators = machine.control.requester.coordinators
    asked(machine, FindCoordinatorRequest)
    for role in (Role.DATA, Role.CONTROL):
        coordinators.handle_connect_failed(ConnectionKey(role, node_id), REFUSED, machine.now)
        assert coordinator.node is not None
    coordinators.handle_connect_failed(
        ConnectionKey(Role.COORDINATOR, node_id), REFUSED, machine.now
    )
    assert coordinator.node is None
    machine.run(1.0)
    assert coordinator.node.id == node_id
    assert len(asked(machine, FindCoordinatorRequest)) == 1
