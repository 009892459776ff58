"""The connections of a client: what tells them apart, and the ids of their connections."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_fast.config import producer_settings
from kafka_fast.control.connection_key import (
    BOOTSTRAP,
    SECOND_BOOTSTRAP,
    ConnectionKey,
    Role,
)
from kafka_fast.control.connections import Connections
from kafka_fast.control.links import Link
from kafka_fast.control.messages import (
    CloseLink,
    CloseReason,
    LinkClosed,
    OpenLink,
    RawResponse,
    ResolveHost,
    SendRaw,
)
from kafka_fast.control.metadata import Node
from kafka_fast.control.troubles import Troubles
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.api_versions import ApiVersion, ApiVersionsResponse

NODE = 3
DATA = ConnectionKey(Role.DATA, NODE)
LARGE = [2**29, 2**29 + NODE, 2**30, 2**30 + NODE, 2**31 - 1]
"""Node ids that would be others' if a bit of them said what a connection is for."""


def ignore(*event: Any) -> None:
    """Take note of nothing."""


def new_connections(servers: str = "10.0.0.1:9092") -> Connections:
    settings = producer_settings({"bootstrap.servers": servers}, {})
    troubles = Troubles(logging.getLogger("test"))
    listener = SimpleNamespace(
        handle_ready=ignore, handle_lost=ignore, handle_connect_failed=ignore
    )
    return Connections(settings, "me", lambda: 0.5, troubles, listener)


def commands(connections: Connections) -> list[Any]:
    return list(iter(connections.poll_command, None))


def open_link(connections: Connections, node_id: int, role: Role) -> Link:
    """Have a link to a node, and negotiate it."""
    connections.want(Node(node_id, "10.0.0.1", 9092), role, 0.0)
    (opened,) = commands(connections)
    assert opened.key == ConnectionKey(role, node_id)
    connections.handle_connected(opened.link_id, 0.0)
    (question,) = commands(connections)
    assert isinstance(question, SendRaw)
    header, _ = frame.decode_request(question.frame[4:])
    known = ApiVersionsResponse(api_keys=[ApiVersion(api_key=3, min_version=0, max_version=12)])
    answer = frame.encode_response(known, header.version, 0)[4:]
    connections.handle_response(RawResponse(opened.link_id, question.token, answer, 0), 0.0)
    link = connections.links.link_to(opened.key)
    assert link is not None
    assert link is connections.links.link(opened.link_id)
    return link


@pytest.mark.parametrize("node_id", [0, NODE, *LARGE])
def test_a_node_has_a_connection_for_each_role(node_id: int) -> None:
    connections = new_connections()
    roles = (Role.DATA, Role.CONTROL, Role.COORDINATOR)
    made = {role: open_link(connections, node_id, role) for role in roles}
    small = {role: open_link(connections, NODE, role) for role in roles} if node_id != NODE else {}
    assert len({link.id for link in [*made.values(), *small.values()]}) == len(made) + len(small)
    connections.links.hold(made[Role.DATA])
    assert connections.links.request_link(node_id) is made[Role.CONTROL]
    connections.forget(node_id, "it left the cluster", 1.0)
    assert [it.link_id for it in commands(connections)] == [
        made[Role.CONTROL].id,
        made[Role.DATA].id,
    ]
    assert list(connections.links.ready) == [made[Role.COORDINATOR], *small.values()]


@pytest.mark.parametrize("node_id", [0, NODE, *LARGE])
def test_what_a_connection_is_called(node_id: int) -> None:
    connections = new_connections()
    assert str(ConnectionKey(Role.DATA, node_id)) == f"node {node_id}"
    assert str(ConnectionKey(Role.CONTROL, node_id)) == f"node {node_id} (beside its fetches)"
    assert str(ConnectionKey(Role.COORDINATOR, node_id)) == f"coordinator (node {node_id})"
    link = open_link(connections, node_id, Role.DATA)
    assert connections.handle_throttled(link.id, 100, 1.0) == f"node {node_id}"
    assert connections.pause(link.key, 1.05, 1.05) == pytest.approx(0.1)
    assert connections.pause(ConnectionKey(Role.CONTROL, node_id), 1.05, 1.05) is None


def test_requests_go_over_the_data_connection_until_fetches_hold_it() -> None:
    connections = new_connections()
    control = ConnectionKey(Role.CONTROL, NODE)
    assert connections.links.request_key(NODE) == DATA
    data = open_link(connections, NODE, Role.DATA)
    assert connections.links.request_link(NODE) is data
    connections.links.hold(data)
    assert connections.links.request_key(NODE) == control
    assert connections.links.request_link(NODE) is None
    assert list(connections.links.free) == []
    beside = open_link(connections, NODE, Role.CONTROL)
    assert list(connections.links.free) == [beside]
    connections.handle_closed(LinkClosed(data.id, CloseReason.EOF, 0), 1.0)
    assert connections.links.request_link(NODE) is beside, "it is there"
    connections.handle_closed(LinkClosed(beside.id, CloseReason.IDLE, 0), 1.0)
    assert connections.links.request_key(NODE) == DATA


def test_the_second_bootstrap_connection_leaves_out_the_server_of_the_first() -> None:
    connections = new_connections("10.0.0.1:1,10.0.0.2:2")
    connections.want_bootstrap(0.0)
    (first,) = commands(connections)
    connections.want_bootstrap(0.0, SECOND_BOOTSTRAP)
    (second,) = commands(connections)
    assert (first.key, second.key) == (BOOTSTRAP, SECOND_BOOTSTRAP)
    assert {first.port, second.port} == {1, 2}
    assert str(first.key) == str(second.key) == "bootstrap"
    assert connections.is_connecting(BOOTSTRAP)
    assert connections.is_connecting(SECOND_BOOTSTRAP)


def test_a_link_is_opened_with_the_name_under_which_its_broker_was_looked_for() -> None:
    connections = new_connections()
    connections.want(Node(NODE, "broker", 9092), Role.DATA, 0.0)
    (lookup,) = commands(connections)
    assert isinstance(lookup, ResolveHost)
    assert lookup.owner == DATA
    connections.handle_resolved(lookup.owner, lookup.host, ("10.0.0.9",), 0.0)
    (opened,) = commands(connections)
    assert (opened.host, opened.ip, opened.port) == ("broker", "10.0.0.9", 9092)


def test_the_end_of_a_moved_nodes_old_link_is_not_that_of_its_new_one() -> None:
    connections = new_connections()
    connections.want(Node(NODE, "10.0.0.1", 9092), Role.DATA, 0.0)
    (old,) = commands(connections)
    connections.want(Node(NODE, "10.0.0.2", 9092), Role.DATA, 1.0)
    closed, new = commands(connections)
    assert closed == CloseLink(old.link_id)
    assert isinstance(new, OpenLink)
    assert new.ip == "10.0.0.2"
    assert new.link_id != old.link_id
    connections.handle_closed(LinkClosed(old.link_id, CloseReason.BY_US, 0), 1.0)
    assert connections.is_connecting(DATA)
    assert commands(connections) == []


def test_failed_connects_leave_nothing_behind() -> None:
    connections = new_connections()
    node = Node(NODE, "10.0.0.1", 9092)
    now = 0.0
    seen: list[int] = []
    for _ in range(20):
        connections.want(node, Role.DATA, now)
        now = max(now, connections.next_deadline())
        connections.tick(now)
        opened = [it.link_id for it in commands(connections) if isinstance(it, OpenLink)]
        seen += opened
        for link_id in opened:
            if link_id % 2:
                connections.handle_connect_failed(link_id, ConnectionRefusedError(), now)
    assert len(connections._opened) <= 1
    assert len(seen) == len(set(seen)) > 10
