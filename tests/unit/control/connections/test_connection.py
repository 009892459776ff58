"""Every way a connection can go, told by its events; then many lives of random accidents."""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest

from kafka_fast.config import Address, CommonSettings, producer_settings
from kafka_fast.control.connections.connection import Connection, ConnectionState
from kafka_fast.control.connections.connection_key import BOOTSTRAP, ConnectionKey, Role
from kafka_fast.control.connections.connection_outputs import (
    ConnectionFailed,
    ConnectionOutput,
    ConnectionReady,
)
from kafka_fast.control.in_flight_requests import NEGOTIATION
from kafka_fast.control.messages import CloseLink, OpenLink, ResolveHost, SendRaw
from kafka_fast.errors import (
    BrokerError,
    KafkaConnectionError,
    KafkaTimeoutError,
    ProtocolError,
    UnsupportedVersionError,
    UsageError,
)
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest

E = TypeVar("E", bound=ConnectionOutput)
FOREVER = float("inf")
NODE_3 = ConnectionKey(Role.DATA, 3)


def settings(servers: str = "a:1", **options: Any) -> CommonSettings:
    return producer_settings({"bootstrap.servers": servers}, options)


def node_connection(host: str = "broker", **options: Any) -> Connection:
    return make(NODE_3, [Address(host, 9092)], settings(**options), lambda: 0.5)


def make(
    key: ConnectionKey,
    endpoints: Sequence[Address],
    options: CommonSettings,
    source: Callable[[], float],
) -> Connection:
    return Connection(key, endpoints, options, "me", source, itertools.count(1).__next__)


def expect(connection: Connection, kind: type[E]) -> E:
    """Take the next event, which must be of this kind."""
    event = connection.poll_output()
    assert isinstance(event, kind), event
    return event


def nothing(connection: Connection) -> bool:
    return connection.poll_output() is None


def answer(question: bytes, **fields: Any) -> bytes:
    """Answer an ApiVersions request frame; without the length."""
    header, request = frame.decode_request(question[4:])
    assert isinstance(request, ApiVersionsRequest)
    fields.setdefault("api_keys", [ApiVersion(api_key=3, min_version=0, max_version=12)])
    response = ApiVersionsResponse(**fields)
    return frame.encode_response(response, header.version, header.correlation_id)[4:]


def open_link(connection: Connection, now: float, *ips: str) -> OpenLink:
    """Go from idle to connecting."""
    connection.connect(now)
    lookup = expect(connection, ResolveHost)
    connection.handle_resolved(lookup.host, ips or ("10.0.0.3",), now)
    return expect(connection, OpenLink)


def become_ready(connection: Connection, now: float) -> ConnectionReady:
    """Go from idle to ready."""
    link = open_link(connection, now).link_id
    connection.handle_connected(link, now)
    connection.handle_frame(link, answer(expect(connection, SendRaw).frame), now)
    return expect(connection, ConnectionReady)


def test_from_idle_to_ready() -> None:
    connection = node_connection()
    assert not connection.is_pending
    connection.connect(5.0)
    lookup = expect(connection, ResolveHost)
    assert (lookup.host, lookup.deadline) == ("broker", 15.0)
    connection.handle_resolved("broker", ["10.0.0.3"], 5.1)
    opened = expect(connection, OpenLink)
    assert (opened.ip, opened.port, opened.host) == ("10.0.0.3", 9092, "broker")
    assert opened.deadline == connection.next_deadline() == pytest.approx(15.1)
    connection.handle_connected(opened.link_id, 5.2)
    assert connection.state is ConnectionState.NEGOTIATING
    assert connection.is_pending
    question = expect(connection, SendRaw)
    assert (question.link_id, question.token) == (opened.link_id, NEGOTIATION)
    connection.handle_frame(opened.link_id, answer(question.frame), 5.3)
    ready = expect(connection, ConnectionReady)
    assert ready.link_id == opened.link_id
    assert ready.versions.pick(MetadataRequest) == 12
    assert connection.is_ready
    assert connection.versions is ready.versions
    assert connection.next_deadline() == float("inf")
    assert nothing(connection)


def test_connect_is_idempotent() -> None:
    connection = node_connection()
    connection.connect(0.0)
    connection.connect(0.0)
    expect(connection, ResolveHost)
    assert nothing(connection)


def test_literal_address_needs_no_lookup() -> None:
    connection = node_connection("10.1.1.1")
    connection.connect(0.0)
    assert expect(connection, OpenLink).ip == "10.1.1.1"


def test_refused_link_names_everything_and_backs_off() -> None:
    connection = node_connection()
    link = open_link(connection, 1.0).link_id
    connection.handle_connect_failed(link, ConnectionRefusedError(111, "refused"), 1.25)
    failed = expect(connection, ConnectionFailed)
    assert nothing(connection), "the shell has closed the socket"
    assert isinstance(failed.error, KafkaConnectionError)
    assert str(failed.error) == "node 3 at broker:9092 [10.0.0.3]: refused"
    assert failed.retry_at == pytest.approx(1.3)
    assert not failed.rebootstrap
    connection.connect(1.26)
    assert connection.state is ConnectionState.BACKOFF
    assert connection.next_deadline() == failed.retry_at
    connection.tick(1.29)
    assert nothing(connection)
    connection.tick(1.31)
    expect(connection, ResolveHost)


def test_every_address_is_tried_before_the_backoff() -> None:
    connection = node_connection()
    first = open_link(connection, 0.0, "10.0.0.1", "10.0.0.2")
    connection.handle_connect_failed(first.link_id, OSError("no route"), 0.1)
    second = expect(connection, OpenLink)
    assert (second.ip, second.link_id) == ("10.0.0.2", first.link_id + 1)
    connection.tick(second.deadline)
    assert expect(connection, CloseLink).link_id == second.link_id
    failed = expect(connection, ConnectionFailed)
    assert "none of 2 addresses" in str(failed.error)
    assert "no route" in str(failed.error)
    assert isinstance(failed.error.__cause__, KafkaTimeoutError)


def test_late_news_of_a_link_given_up_changes_nothing() -> None:
    connection = node_connection()
    first = open_link(connection, 0.0, "10.0.0.1", "10.0.0.2")
    connection.tick(first.deadline)
    expect(connection, CloseLink)
    second = expect(connection, OpenLink)
    now = first.deadline
    connection.handle_connected(first.link_id, now)
    connection.handle_connect_failed(first.link_id, OSError(), now)
    connection.handle_closed(first.link_id, None, now)
    connection.handle_frame(first.link_id, b"", now)
    connection.handle_resolved("broker", ["10.0.0.9"], now)
    assert nothing(connection)
    assert connection.state is ConnectionState.CONNECTING
    connection.handle_connected(second.link_id, now)
    expect(connection, SendRaw)


@pytest.mark.parametrize("result", [[], OSError(-2, "Name or service not known")])
def test_name_that_does_not_resolve(result: list[str] | OSError) -> None:
    connection = node_connection()
    connection.connect(0.0)
    expect(connection, ResolveHost)
    connection.handle_resolved("broker", result, 0.5)
    failed = expect(connection, ConnectionFailed)
    assert "'broker' does not resolve" in str(failed.error)


def test_resolver_that_hangs_is_not_waited_for() -> None:
    connection = node_connection()
    connection.connect(0.0)
    deadline = expect(connection, ResolveHost).deadline
    connection.tick(deadline)
    failed = expect(connection, ConnectionFailed)
    assert isinstance(failed.error, KafkaTimeoutError)
    assert str(failed.error) == "node 3 at broker:9092: its address was not found within 10 s"


def test_broker_that_accepts_and_says_nothing() -> None:
    connection = node_connection()
    opened = open_link(connection, 0.0)
    connection.handle_connected(opened.link_id, 1.0)
    expect(connection, SendRaw)
    assert connection.next_deadline() == pytest.approx(11.0)
    connection.tick(11.0)
    expect(connection, CloseLink)
    assert str(expect(connection, ConnectionFailed).error) == (
        "node 3 at broker:9092 [10.0.0.3] accepted the connection and did not answer ApiVersions "
        "within 10 s"
    )


def test_setup_timeout_grows_with_failed_rounds() -> None:
    connection = node_connection()
    timeouts, now = [], 0.0
    for _ in range(4):
        opened = open_link(connection, now)
        timeouts.append(opened.deadline - now)
        now = opened.deadline
        connection.tick(now)
        expect(connection, CloseLink)
        now = expect(connection, ConnectionFailed).retry_at
    assert timeouts == pytest.approx([10.0, 20.0, 30.0, 30.0])
    become_ready(connection, now)
    connection.disconnect()
    expect(connection, CloseLink)
    assert open_link(connection, now).deadline - now == pytest.approx(10.0)


def test_no_backoff_is_a_short_one() -> None:
    """Regression: a node that refused at once was tried two thousand times in a second."""
    connection = node_connection(reconnect_backoff_ms=0)
    now = 0.0
    for _ in range(5):
        link = open_link(connection, now).link_id
        connection.handle_connect_failed(link, OSError("down"), now)
        retry_at = expect(connection, ConnectionFailed).retry_at
        assert retry_at - now == pytest.approx(0.005)
        now = retry_at


def test_backoff_grows_and_is_reset_by_a_link_that_lasts() -> None:
    connection = node_connection()
    now, waits = 0.0, []
    for _ in range(7):
        link = open_link(connection, now).link_id
        connection.handle_connect_failed(link, OSError("down"), now)
        retry_at = expect(connection, ConnectionFailed).retry_at
        waits.append(retry_at - now)
        now = retry_at
    assert waits == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
    link = become_ready(connection, now).link_id
    connection.handle_closed(link, None, now + 5)
    failed = expect(connection, ConnectionFailed)
    assert failed.retry_at - (now + 5) == pytest.approx(0.05)
    assert str(failed.error) == "node 3 at broker:9092 [10.0.0.3] closed the connection"


def test_a_link_that_its_owner_gave_up_ends_a_row_of_failures() -> None:
    connection = node_connection()
    now = 0.0
    for _ in range(3):
        link = open_link(connection, now).link_id
        connection.handle_connect_failed(link, OSError("down"), now)
        now = expect(connection, ConnectionFailed).retry_at
    become_ready(connection, now)
    connection.disconnect()
    expect(connection, CloseLink)
    link = open_link(connection, now).link_id
    connection.handle_connect_failed(link, OSError("down"), now)
    assert expect(connection, ConnectionFailed).retry_at - now == pytest.approx(0.05)


def test_broker_that_drops_each_link_at_once_is_not_stormed() -> None:
    connection = node_connection()
    now, waits = 0.0, []
    for _ in range(6):
        link = become_ready(connection, now).link_id
        connection.handle_closed(link, ConnectionResetError("reset"), now + 0.01)
        retry_at = expect(connection, ConnectionFailed).retry_at
        waits.append(retry_at - now - 0.01)
        now = retry_at
    assert waits == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.0])


def test_older_broker_is_asked_again_with_its_own_version() -> None:
    connection = node_connection()
    link = open_link(connection, 0.0).link_id
    connection.handle_connected(link, 0.0)
    expect(connection, SendRaw)
    refusal = struct.pack(">ihihhh", 0, 35, 1, 18, 0, 2)
    connection.handle_frame(link, refusal, 0.1)
    again = expect(connection, SendRaw)
    assert frame.decode_request(again.frame[4:])[0].version == 2
    assert connection.next_deadline() == pytest.approx(10.0), "one deadline for the whole dialogue"
    connection.handle_frame(link, answer(again.frame), 0.2)
    expect(connection, ConnectionReady)


def test_garbage_instead_of_an_answer() -> None:
    connection = node_connection()
    link = open_link(connection, 0.0).link_id
    connection.handle_connected(link, 0.0)
    expect(connection, SendRaw)
    connection.handle_frame(link, b"\x00" * 5, 0.1)
    expect(connection, CloseLink)
    failed = expect(connection, ConnectionFailed)
    assert isinstance(failed.error, ProtocolError)
    assert "node 3 at broker:9092" in str(failed.error)


def test_broker_that_refuses_the_link() -> None:
    connection = node_connection()
    link = open_link(connection, 0.0).link_id
    connection.handle_connected(link, 0.0)
    question = expect(connection, SendRaw).frame
    connection.handle_frame(link, answer(question, error_code=42), 0.1)
    expect(connection, CloseLink)
    failed = expect(connection, ConnectionFailed)
    assert isinstance(failed.error, BrokerError)
    assert "INVALID_REQUEST (42): the answer of node 3 at broker:9092" in str(failed.error)
    assert not failed.rebootstrap


def test_nonsense_from_the_other_side_keeps_its_class() -> None:
    connection = node_connection()
    link = open_link(connection, 0.0).link_id
    connection.handle_connected(link, 0.0)
    expect(connection, SendRaw)
    connection.handle_closed(link, ProtocolError("talks like a TLS listener"), 0.1)
    failed = expect(connection, ConnectionFailed)
    assert isinstance(failed.error, ProtocolError)
    assert str(failed.error).endswith("at broker:9092 [10.0.0.3] talks like a TLS listener")


@pytest.mark.parametrize("error", [None, ConnectionResetError(104, "Connection reset by peer")])
def test_a_listener_that_hangs_up_on_our_first_words_may_want_tls(error: OSError | None) -> None:
    connection = node_connection()
    link = open_link(connection, 0.0).link_id
    connection.handle_connected(link, 0.0)
    expect(connection, SendRaw)
    connection.handle_closed(link, error, 0.1)
    text = str(expect(connection, ConnectionFailed).error)
    assert "instead of an answer to ApiVersions" in text
    assert text.endswith(": a TLS listener? security.protocol is PLAINTEXT")


def test_a_listener_that_has_shaken_hands_wants_tls_surely() -> None:
    connection = node_connection(security_protocol="SSL")
    link = open_link(connection, 0.0).link_id
    connection.handle_connected(link, 0.0)
    expect(connection, SendRaw)
    connection.handle_closed(link, None, 0.1)
    text = str(expect(connection, ConnectionFailed).error)
    assert text.endswith("closed the connection instead of an answer to ApiVersions")


def test_what_is_under_way_is_told_while_it_is() -> None:
    connection = node_connection()
    assert connection.under_way(0.0) is None
    connection.connect(1.0)
    assert connection.under_way(3.0) == (
        "node 3 at broker:9092: its address is being looked up",
        2.0,
    )
    connection.handle_resolved("broker", ["10.0.0.3"], 3.0)
    assert connection.under_way(3.5) == (
        "node 3 at broker:9092 [10.0.0.3] has not accepted the connection",
        0.5,
    )
    expect(connection, ResolveHost)
    link = expect(connection, OpenLink).link_id
    connection.handle_connected(link, 4.0)
    said = connection.under_way(5.0)
    assert said is not None
    assert "accepted the connection and not answered ApiVersions" in said[0]
    connection.handle_frame(link, answer(expect(connection, SendRaw).frame), 5.0)
    assert connection.under_way(9.0) is None


def test_lost_framing_of_a_ready_link() -> None:
    connection = node_connection()
    link = become_ready(connection, 0.0).link_id
    connection.handle_closed(link, ProtocolError("a frame of -1 bytes"), 50.0)
    assert isinstance(expect(connection, ConnectionFailed).error, ProtocolError)
    assert connection.state is ConnectionState.IDLE
    assert connection.versions is None


def test_a_ready_link_that_its_owner_refuses_is_closed_and_backed_off_from() -> None:
    connection = node_connection()
    link = become_ready(connection, 0.0).link_id
    connection.refuse_link(link, UnsupportedVersionError("no Produce"), 1.0)
    assert expect(connection, CloseLink).link_id == link
    failed = expect(connection, ConnectionFailed)
    assert isinstance(failed.error, UnsupportedVersionError)
    assert failed.retry_at > 1.0
    connection.refuse_link(link, UnsupportedVersionError("again"), 1.0)
    assert nothing(connection)


def test_misrouted_link_asks_for_a_rebootstrap() -> None:
    connection = node_connection()
    connection.connect(0.0, cluster_id="c")
    connection.handle_resolved(expect(connection, ResolveHost).host, ["10.0.0.3", "10.0.0.4"], 0.0)
    link = expect(connection, OpenLink).link_id
    connection.handle_connected(link, 0.0)
    question = expect(connection, SendRaw).frame
    _, request = frame.decode_request(question[4:])
    assert isinstance(request, ApiVersionsRequest)
    assert (request.cluster_id, request.node_id) == ("c", 3)
    connection.handle_frame(link, answer(question, error_code=129), 0.0)
    expect(connection, CloseLink)
    failed = expect(connection, ConnectionFailed)
    assert failed.rebootstrap
    assert isinstance(failed.error, BrokerError)


def test_bootstrap_goes_on_to_the_next_server() -> None:
    servers = [Address("10.0.0.1", 1), Address("10.0.0.2", 2)]
    connection = make(BOOTSTRAP, servers, settings(), lambda: 0.9)
    connection.connect(0.0, cluster_id="c")
    first = expect(connection, OpenLink)
    connection.handle_connect_failed(first.link_id, OSError("down"), 0.0)
    second = expect(connection, OpenLink)
    assert {first.port, second.port} == {1, 2}
    connection.handle_connected(second.link_id, 0.0)
    question = expect(connection, SendRaw).frame
    _, request = frame.decode_request(question[4:])
    assert isinstance(request, ApiVersionsRequest)
    assert (request.cluster_id, request.node_id) == (None, -1), "any broker will do"
    connection.handle_frame(second.link_id, answer(question), 0.0)
    assert expect(connection, ConnectionReady).versions.node == f"{second.ip}:{second.port}"


def test_disconnect_is_no_failure_and_close_is_for_good() -> None:
    connection = node_connection()
    link = become_ready(connection, 0.0).link_id
    connection.disconnect()
    assert expect(connection, CloseLink) == CloseLink(link)
    assert nothing(connection)
    become_ready(connection, 1.0)
    connection.close()
    expect(connection, CloseLink)
    assert connection.state is ConnectionState.CLOSED
    connection.close()
    assert nothing(connection)
    with pytest.raises(UsageError, match="node 3"):
        connection.connect(2.0)


def test_disconnect_on_the_way() -> None:
    connection = node_connection()
    opened = open_link(connection, 0.0)
    connection.disconnect()
    assert expect(connection, CloseLink).link_id == opened.link_id
    connection.handle_connected(opened.link_id, 1.0)
    connection.tick(1000.0)
    assert nothing(connection)
    assert connection.state is ConnectionState.IDLE


class Accidents:
    """A shell whose resolver, network and brokers do at random everything that can go wrong."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        hosts = [Address(f"h{i}", 9092) for i in range(self.random.randint(1, 3))]
        self.connection = make(BOOTSTRAP, hosts, settings(), self.random.random)
        self.now = 0.0
        self.open_links: set[int] = set()
        self.rounds: list[float] = []  # when each began
        self.is_healthy = False  # nothing new goes wrong
        self.due: list[tuple[float, int, ConnectionOutput]] = []  # what the world answers, and when
        self.count = 0

    def run(self, until: float) -> None:
        """Live until `until`, with the connection always wanted."""
        while self.now < until:
            before = self.connection.is_pending
            self.connection.connect(self.now)
            if not before and self.connection.state is ConnectionState.RESOLVING:
                self.rounds.append(self.now)
            while (event := self.connection.poll_output()) is not None:
                self.react(event)
            assert self.connection.link_id not in self.open_links or len(self.open_links) <= 1
            wake = min([self.connection.next_deadline(), until, *(at for at, _, _ in self.due)])
            self.now = max(self.now, wake)
            state = self.connection.state
            self.connection.tick(self.now)
            if state is ConnectionState.BACKOFF is not self.connection.state:
                self.rounds.append(self.now)
            for item in sorted(x for x in self.due if x[0] <= self.now):
                self.due.remove(item)
                self.happen(item[2])

    def react(self, event: ConnectionOutput) -> None:
        """Let the world have its answer later, or never."""
        if isinstance(event, OpenLink):
            assert not self.open_links, "one link at a time"
            self.open_links.add(event.link_id)
        elif isinstance(event, CloseLink):
            self.open_links.discard(event.link_id)
        elif isinstance(event, ConnectionFailed):
            assert self.now <= event.retry_at <= self.now + 1.0
            assert not self.open_links, "nothing is left open"
            return
        if isinstance(event, CloseLink):
            return
        delay = 0.001
        if not self.is_healthy:
            delay = self.random.choice([0.0, 0.001, 0.2, 5.0, 40.0, FOREVER])
        elif isinstance(event, ConnectionReady):
            return
        self.count += 1
        self.due.append((self.now + delay, self.count, event))

    def happen(self, event: ConnectionOutput) -> None:
        """Answer one event, well or badly."""
        connection, chance = self.connection, 0.75 if self.is_healthy else self.random.random()
        if isinstance(event, ResolveHost):
            ips = [f"10.0.0.{i}" for i in range(self.random.randint(self.is_healthy, 3))]
            connection.handle_resolved(
                event.host, ips if chance < 0.8 else OSError("dns"), self.now
            )
            return
        assert isinstance(event, OpenLink | SendRaw | ConnectionReady)
        if event.link_id not in self.open_links:
            return  # closed meanwhile
        if chance < 0.3 or isinstance(event, ConnectionReady):
            self.open_links.discard(event.link_id)
            if isinstance(event, OpenLink):
                connection.handle_connect_failed(event.link_id, OSError("refused"), self.now)
            else:
                connection.handle_closed(event.link_id, None, self.now)
        elif isinstance(event, OpenLink):
            connection.handle_connected(event.link_id, self.now)
        elif chance < 0.5:
            self.open_links.discard(event.link_id)
            connection.handle_closed(event.link_id, ProtocolError("HTTP"), self.now)
        elif chance < 0.7:
            connection.handle_frame(event.link_id, self.random.randbytes(20), self.now)
        else:
            connection.handle_frame(event.link_id, answer(event.frame), self.now)


@pytest.mark.parametrize("seed", range(60))
def test_no_broker_is_stormed_and_every_life_ends_well(seed: int) -> None:
    life = Accidents(seed)
    life.run(until=600.0)
    per_minute = [
        sum(start <= at < start + 60 for at in life.rounds) for start in range(0, 600, 60)
    ]
    assert max(per_minute) <= 60 / 0.8 + 10, "at most one round per longest backoff"
    life.is_healthy = True
    life.run(until=700.0)
    assert life.connection.is_ready, life.connection.state
