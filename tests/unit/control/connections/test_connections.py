"""The connections of a client: what tells them apart, and the ids of their connections."""

from __future__ import annotations

import errno
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_fast.config import producer_settings
from kafka_fast.control.authentication.mechanism import Mechanism
from kafka_fast.control.connections.connection_key import (
    BOOTSTRAP,
    SECOND_BOOTSTRAP,
    ConnectionKey,
    Role,
)
from kafka_fast.control.connections.connection_outputs import ConnectionFailed
from kafka_fast.control.connections.connections import (
    BEGUN_AT_ONCE,
    IDLE_AT_LEAST,
    PACE,
    Connections,
)
from kafka_fast.control.connections.links import Link
from kafka_fast.control.diagnosis.troubles import Troubles
from kafka_fast.control.in_flight_requests import NEGOTIATION
from kafka_fast.control.messages import (
    THROTTLE_MAX,
    Awaited,
    CloseLink,
    CloseReason,
    LinkClosed,
    OpenGate,
    OpenLink,
    PauseLink,
    RawResponse,
    ResolveHost,
    SendRaw,
)
from kafka_fast.control.metadata.metadata import Node
from kafka_fast.errors import AuthenticationError, KafkaError, TlsError
from kafka_fast.instants import LONG_AGO, NEVER
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersion, ApiVersionsResponse
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest, MetadataResponse
from kafka_fast.values import replace
from tests.unit.control.authentication.scripted import (
    SASL_APIS,
    Scripted,
    accept,
    refuse,
    say_once,
    shake,
)

NODE = 3
DATA = ConnectionKey(Role.DATA, NODE)
LARGE = [2**29, 2**29 + NODE, 2**30, 2**30 + NODE, 2**31 - 1]
"""Node ids that would be others' if a bit of them said what a connection is for."""


def ignore(*event: Any) -> None:
    """Drop an event."""


def new_connections(
    servers: str = "10.0.0.1:9092", mechanism: Mechanism | None = None, listener: Any = None
) -> Connections:
    settings = producer_settings({"bootstrap.servers": servers}, {})
    troubles = Troubles(logging.getLogger("test"))
    listener = listener or SimpleNamespace(
        handle_ready=ignore, handle_lost=ignore, handle_connect_failed=ignore
    )
    return Connections(settings, "me", lambda: 0.5, troubles, listener, mechanism=mechanism)


def commands(connections: Connections) -> list[Any]:
    return list(iter(connections.poll_command, None))


def open_link(connections: Connections, node_id: int, role: Role) -> Link:
    """Have a link to a node, and negotiate it."""
    connections.begin_turn(connections.requests.now + 1.0)  # another one may begin
    connections.want_link(Node(node_id, "10.0.0.1", 9092), role, 0.0)
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
    connections.close_node(node_id, "it left the cluster", 1.0)
    assert [command.link_id for command in commands(connections)] == [
        made[Role.CONTROL].id,
        made[Role.DATA].id,
    ]
    assert list(connections.links.ready) == [made[Role.COORDINATOR], *small.values()]


def test_a_pause_is_of_one_connection_and_reaches_the_data_plane() -> None:
    connections = new_connections()
    data = open_link(connections, NODE, Role.DATA)
    control = open_link(connections, NODE, Role.CONTROL)
    assert connections.handle_throttled(data.id, 100_000, 1.0) == f"node {NODE}"
    assert commands(connections) == [], "the data plane has said it"
    assert connections.paused_until(data.key) == 1.0 + THROTTLE_MAX
    assert connections.paused_until(control.key) == LONG_AGO
    assert connections.all_paused_until() == LONG_AGO
    connections.handle_throttled(data.id, 10, 2.0)
    assert connections.paused_until(data.key) == 1.0 + THROTTLE_MAX, "a shorter one ends no other"
    asked: list[Any] = []
    connections.requests.send_request(
        control,
        MetadataRequest(topics=[]),
        MetadataResponse,
        lambda answer, now: asked.append(now),
        ignore,
        timeout=30.0,
    )
    (sent,) = commands(connections)
    header, _ = frame.decode_request(sent.frame[4:])
    answer = frame.encode_response(MetadataResponse(throttle_time_ms=2_000), header.version, 0)[4:]
    connections.handle_response(RawResponse(control.id, sent.token, answer, 0), 3.0)
    assert asked == [3.0]
    assert commands(connections) == [PauseLink(control.id, 2.0)]
    assert connections.all_paused_until() == 5.0


IDLE = LinkClosed(0, CloseReason.EOF, 0)
RESET = LinkClosed(0, CloseReason.OS_ERROR, errno.ECONNRESET)
GONE = LinkClosed(0, CloseReason.OS_ERROR, errno.ETIMEDOUT)


@pytest.mark.parametrize("role", [Role.DATA, Role.CONTROL, Role.SLOW, Role.COORDINATOR])
@pytest.mark.parametrize("event", [IDLE, RESET, GONE], ids=["closed", "reset", "no sign of life"])
def test_the_end_of_an_idle_connection_is_no_trouble(role: Role, event: LinkClosed) -> None:
    lost: list[Any] = []
    listener = SimpleNamespace(
        handle_ready=ignore,
        handle_lost=lambda link, error, now: lost.append(error),
        handle_connect_failed=ignore,
    )
    connections = new_connections(listener=listener)
    link = open_link(connections, NODE, role)
    connections.handle_closed(replace(event, link_id=link.id), 5.0)
    assert lost == [None]
    assert connections.troubles.last_of(link.key) is None
    assert connections.troubles.failures == 0
    assert connections.links.link_to(link.key) is None
    open_link(connections, NODE, role)  # without a backoff


@pytest.mark.parametrize(
    ("event", "at"),
    [
        (IDLE, IDLE_AT_LEAST / 2),
        (replace(IDLE, awaited=Awaited.PRODUCE), 5.0),
        (replace(RESET, awaited=Awaited.HEARTBEAT), 5.0),
        (LinkClosed(0, CloseReason.OS_ERROR, errno.EHOSTUNREACH), 5.0),
        (LinkClosed(0, CloseReason.LAYER, 0, words="a bad record"), 5.0),
        (LinkClosed(0, CloseReason.BAD_FRAME, 7), 5.0),
    ],
    ids=["at once", "in a request", "in a heartbeat", "unreachable", "TLS", "nonsense"],
)
def test_any_other_end_of_a_connection_is_trouble(event: LinkClosed, at: float) -> None:
    connections = new_connections()
    link = open_link(connections, NODE, Role.DATA)
    connections.handle_closed(replace(event, link_id=link.id), at)
    assert connections.troubles.last_of(link.key) is not None
    assert connections.troubles.failures == 1


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
    connections.want_link(Node(NODE, "broker", 9092), Role.DATA, 0.0)
    (lookup,) = commands(connections)
    assert isinstance(lookup, ResolveHost)
    assert lookup.owner == DATA
    connections.handle_resolved(lookup.owner, lookup.host, ("10.0.0.9",), 0.0)
    (opened,) = commands(connections)
    assert (opened.host, opened.ip, opened.port) == ("broker", "10.0.0.9", 9092)


def test_the_end_of_a_moved_nodes_old_link_is_not_that_of_its_new_one() -> None:
    connections = new_connections()
    connections.want_link(Node(NODE, "10.0.0.1", 9092), Role.DATA, 0.0)
    (old,) = commands(connections)
    connections.want_link(Node(NODE, "10.0.0.2", 9092), Role.DATA, 1.0)
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
        connections.want_link(node, Role.DATA, now)
        now = max(now, connections.next_deadline())
        connections.tick(now)
        opened = [
            command.link_id for command in commands(connections) if isinstance(command, OpenLink)
        ]
        seen += opened
        for link_id in opened:
            if link_id % 2:
                connections.handle_connect_failed(link_id, ConnectionRefusedError(), now)
    assert len(connections._opened) <= 1
    assert len(seen) == len(set(seen)) > 10


class Listener:
    """Keeps what becomes of connections."""

    def __init__(self) -> None:
        self.ready: list[Link] = []
        self.lost: list[tuple[Link, KafkaError | None]] = []
        self.failed: list[ConnectionFailed] = []

    def handle_ready(self, link: Link, now: float) -> None:
        self.ready.append(link)

    def handle_lost(self, link: Link, error: KafkaError | None, now: float) -> None:
        self.lost.append((link, error))

    def handle_connect_failed(
        self, key: ConnectionKey, failed: ConnectionFailed, now: float
    ) -> None:
        self.failed.append(failed)


class Logins:
    """Connections whose broker is played by the test, and takes part in logins."""

    def __init__(self) -> None:
        self.listener = Listener()
        self.connections = new_connections(mechanism=Scripted(say_once), listener=self.listener)
        self.connections.want_link(Node(NODE, "10.0.0.1", 9092), Role.DATA, 0.0)
        (opened,) = commands(self.connections)
        self.link_id: int = opened.link_id
        self.connections.handle_connected(self.link_id, 0.0)
        question = self.request()
        header, _ = frame.decode_request(question[4:])
        known = ApiVersionsResponse(api_keys=SASL_APIS)
        self.tell(frame.encode_response(known, header.version, 0)[4:])

    def request(self) -> bytes:
        """Return the one request that is sent next."""
        (sent,) = [
            command for command in commands(self.connections) if isinstance(command, SendRaw)
        ]
        return sent.frame

    def tell(self, data: bytes, now: float = 0.0) -> None:
        self.connections.handle_response(RawResponse(self.link_id, NEGOTIATION, data, 0), now)

    def stats(self, name: str) -> object:
        return self.connections.troubles.stats()[name]


def test_a_refused_login_is_kept_for_the_waits_of_users() -> None:
    logins = Logins()
    watch = logins.connections.refusals.watch()
    logins.tell(shake(logins.request()))
    logins.tell(refuse(logins.request(), "Invalid credentials"))
    assert logins.listener.ready == []
    (failed,) = logins.listener.failed
    assert failed.is_refused
    with pytest.raises(AuthenticationError, match="refuses the login by SCRIPT: Invalid cred"):
        watch.raise_refusal()
    assert logins.stats("failed_logins") == {"AuthenticationError": 1}
    trouble = logins.connections.troubles.now(DATA)
    assert trouble is not None
    assert trouble.error is failed.error


def test_a_login_that_is_not_renewed_ends_its_link_with_the_cause() -> None:
    logins = Logins()
    logins.tell(shake(logins.request()))
    logins.tell(accept(logins.request(), lifetime_ms=10_000))
    (link,) = logins.listener.ready
    (gate,) = commands(logins.connections)
    assert gate == OpenGate(link.id, pytest.approx(9.0))
    logins.connections.handle_gate_shut(link.id, 9.0)
    logins.tell(shake(logins.request()), 9.0)
    assert logins.connections.links.link(link.id) is link, "requests wait at its gate"
    assert logins.connections.describe(9.5) == [
        "node 3 at 10.0.0.1:9092 has not answered SaslAuthenticate v2 for 0.5 s"
    ]
    logins.tell(refuse(logins.request(), "expired"), 9.0)
    ((lost, error),) = logins.listener.lost
    assert lost is link
    assert isinstance(error, AuthenticationError)
    assert str(error).endswith("refuses the login by SCRIPT: expired")
    assert logins.connections.links.link(link.id) is None
    assert commands(logins.connections) == [CloseLink(link.id)]
    assert not logins.connections.refusals.count, "a new connection may be accepted"
    assert logins.stats("logins") == {"first": 1}
    assert logins.stats("failed_logins") == {"AuthenticationError": 1}


def test_a_login_that_is_renewed_is_counted() -> None:
    logins = Logins()
    logins.tell(shake(logins.request()))
    logins.tell(accept(logins.request(), lifetime_ms=10_000))
    commands(logins.connections)
    logins.connections.handle_gate_shut(logins.link_id, 9.0)
    logins.tell(shake(logins.request()), 9.0)
    logins.tell(accept(logins.request()), 9.0)
    assert commands(logins.connections) == [OpenGate(logins.link_id, NEVER)]
    assert logins.listener.lost == []
    assert logins.stats("logins") == {"first": 1, "renewed": 1}


def test_a_handshake_that_fails_is_counted_and_ends_waits() -> None:
    connections = new_connections()
    watch = connections.refusals.watch()
    connections.want_link(Node(NODE, "10.0.0.1", 9092), Role.DATA, 0.0)
    (opened,) = commands(connections)
    error = TlsError("has a certificate that has expired")
    connections.handle_connect_failed(opened.link_id, error, 0.0)
    assert connections.troubles.stats()["failed_handshakes"] == 1
    with pytest.raises(TlsError, match=r"^node 3 at .* has a certificate that has expired$"):
        watch.raise_refusal()


def test_a_link_that_breaks_during_a_login_names_the_request_that_is_not_answered() -> None:
    logins = Logins()
    logins.tell(shake(logins.request()))
    logins.request()
    logins.connections.handle_response(
        RawResponse(logins.link_id, NEGOTIATION, None, CloseReason.TIMEOUT), 30.0
    )
    closed = LinkClosed(logins.link_id, CloseReason.TIMEOUT, 0, awaited=Awaited.RAW)
    logins.connections.handle_closed(closed, 30.0)
    (failed,) = logins.listener.failed
    assert "did not answer SaslAuthenticate v2 within request.timeout.ms" in str(failed.error)


def test_connections_begin_at_a_pace() -> None:
    """A turn that begins two hundred of them holds up all Python threads for too long."""
    connections = new_connections()
    nodes = [Node(number, f"10.0.0.{number + 1}", 9092) for number in range(2 * BEGUN_AT_ONCE)]

    def want_all(now: float) -> list[int]:
        connections.tick(now)
        for node in nodes:
            connections.want_link(node, Role.DATA, now)
        return [command.key.node_id for command in commands(connections)]

    assert want_all(1.0) == list(range(BEGUN_AT_ONCE))
    assert want_all(1.0) == [], "what is under way does not begin again"
    assert connections.next_deadline() == 1.0 + PACE
    assert want_all(1.0 + PACE) == list(range(BEGUN_AT_ONCE, 2 * BEGUN_AT_ONCE))
    connections.tick(1.0 + 2 * PACE)
    assert connections.next_deadline() > 2.0, "nothing wakes the thread for the pace alone"


def test_a_connection_that_waits_for_its_backoff_takes_no_turn_from_others() -> None:
    connections = new_connections()
    refused = Node(0, "10.0.0.1", 9092)
    connections.want_link(refused, Role.DATA, 1.0)
    (opened,) = commands(connections)
    connections.handle_connect_failed(opened.link_id, ConnectionRefusedError(), 1.0)
    for _ in range(2 * BEGUN_AT_ONCE):
        connections.want_link(refused, Role.DATA, 1.0)
    assert connections.may_begin
    assert commands(connections) == []
    assert connections.next_deadline() == connections.retry_at(opened.key) > 1.0
