"""A connection that logs in, and renews its login behind the link's gate."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from kafka_fast.config import Address, CommonSettings, producer_settings
from kafka_fast.control.authentication.mechanism import WORK_TIMEOUT, Conversation
from kafka_fast.control.connections.connection import Connection, ConnectionState
from kafka_fast.control.connections.connection_key import BOOTSTRAP, ConnectionKey, Role
from kafka_fast.control.connections.connection_outputs import (
    ConnectionFailed,
    ConnectionOutput,
    ConnectionReady,
    LinkThrottled,
    LoginEnded,
)
from kafka_fast.control.in_flight_requests import NEGOTIATION
from kafka_fast.control.messages import THROTTLE_MAX, CloseLink, DoWork, OpenGate, OpenLink, SendRaw
from kafka_fast.errors import (
    AuthenticationError,
    ErrorCode,
    KafkaConnectionError,
    KafkaTimeoutError,
    ProtocolError,
    TlsError,
)
from kafka_fast.instants import NEVER
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsResponse
from tests.unit.control.authentication.scripted import (
    SASL_APIS,
    Scripted,
    accept,
    refuse,
    say_once,
    shake,
    work_then_say,
)

E = TypeVar("E", bound=ConnectionOutput)
NODE_3 = ConnectionKey(Role.DATA, 3)


def settings(**options: Any) -> CommonSettings:
    return producer_settings({"bootstrap.servers": "a:1"}, options)


def make(
    conversation: Callable[[str], Conversation] = say_once,
    key: ConnectionKey = NODE_3,
    hosts: tuple[str, ...] = ("10.0.0.3",),
    **options: Any,
) -> Connection:
    endpoints = [Address(host, 9092) for host in hosts]
    next_link_id = itertools.count(1).__next__
    return Connection(
        key, endpoints, settings(**options), "me", lambda: 0.5, next_link_id, Scripted(conversation)
    )


def expect(connection: Connection, kind: type[E]) -> E:
    """Take the next event, which must be of this kind."""
    event = connection.poll_output()
    assert isinstance(event, kind), event
    return event


def nothing(connection: Connection) -> bool:
    return connection.poll_output() is None


def negotiate(connection: Connection, now: float) -> int:
    """Go from connecting to authenticating; return the link."""
    link = expect(connection, OpenLink).link_id
    connection.handle_connected(link, now)
    question = expect(connection, SendRaw)
    assert not question.is_of_login
    header, _ = frame.decode_request(question.frame[4:])
    answer = ApiVersionsResponse(api_keys=SASL_APIS)
    connection.handle_frame(link, frame.encode_response(answer, header.version, 0)[4:], now)
    return link


def shake_hands(connection: Connection, link: int, now: float) -> None:
    request = expect(connection, SendRaw)
    assert request.is_of_login
    assert (request.link_id, request.token) == (link, NEGOTIATION)
    connection.handle_frame(link, shake(request.frame), now)


def log_in(connection: Connection, now: float, lifetime_ms: int = 10_000) -> int:
    """Go from idle to ready; return the link."""
    connection.connect(now)
    link = negotiate(connection, now)
    shake_hands(connection, link, now)
    request = expect(connection, SendRaw)
    connection.handle_frame(link, accept(request.frame, lifetime_ms=lifetime_ms), now)
    assert expect(connection, LoginEnded) == LoginEnded(True, None)
    assert expect(connection, ConnectionReady).link_id == link
    return link


def test_a_link_is_its_owners_after_the_login() -> None:
    connection = make()
    connection.connect(0.0)
    link = negotiate(connection, 1.0)
    assert connection.state is ConnectionState.AUTHENTICATING
    assert connection.is_pending
    assert connection.versions is None
    assert connection.awaited == "SaslHandshake v1"
    assert connection.under_way(1.5) == (
        "node 3 at 10.0.0.3:9092 has not answered SaslHandshake v1",
        0.5,
    )
    shake_hands(connection, link, 2.0)
    assert connection.next_deadline() == pytest.approx(12.0), "each answer has its time"
    connection.handle_frame(link, accept(expect(connection, SendRaw).frame), 3.0)
    expect(connection, LoginEnded)
    ready = expect(connection, ConnectionReady)
    assert connection.versions is ready.versions
    assert expect(connection, OpenGate) == OpenGate(link, NEVER)
    assert connection.is_ready
    assert connection.next_deadline() == NEVER
    assert connection.under_way(9.0) is None


def test_a_login_is_renewed_while_its_link_stands() -> None:
    connection = make()
    link = log_in(connection, 100.0)
    gate = expect(connection, OpenGate)
    assert gate == OpenGate(link, pytest.approx(109.0))
    connection.handle_gate_shut(link, 109.1)
    assert connection.state is ConnectionState.REAUTHENTICATING
    assert connection.is_ready
    assert not connection.is_pending
    assert connection.versions is not None
    said = connection.under_way(109.2)
    assert said is not None
    assert said[0].endswith("has not answered SaslHandshake v1")
    shake_hands(connection, link, 109.2)
    request = expect(connection, SendRaw)
    assert request.is_of_login
    connection.handle_frame(link, accept(request.frame, lifetime_ms=20_000), 109.3)
    assert expect(connection, LoginEnded) == LoginEnded(False, None)
    assert expect(connection, OpenGate) == OpenGate(link, pytest.approx(109.2 + 18.0))
    assert connection.state is ConnectionState.READY
    assert nothing(connection)


def test_a_short_session_waits_behind_its_gate_until_the_broker_allows_a_renewal() -> None:
    connection = make()
    link = log_in(connection, 100.0, 200)
    expect(connection, OpenGate)
    connection.handle_gate_shut(link, 100.19)
    assert nothing(connection)
    due = connection.next_deadline()
    assert due > 101.0
    said = connection.under_way(100.5)
    assert said is not None
    assert said[0].endswith("waits for the login to be renewed")
    connection.tick(due - 0.01)
    assert nothing(connection)
    connection.tick(due)
    shake_hands(connection, link, due)


def test_a_renewal_that_is_refused_closes_the_link_with_the_cause() -> None:
    connection = make()
    link = log_in(connection, 100.0)
    expect(connection, OpenGate)
    connection.handle_gate_shut(link, 109.0)
    shake_hands(connection, link, 109.0)
    connection.handle_frame(link, refuse(expect(connection, SendRaw).frame, "expired"), 109.0)
    ended = expect(connection, LoginEnded)
    assert not ended.is_first
    assert expect(connection, CloseLink).link_id == link
    failed = expect(connection, ConnectionFailed)
    assert failed.error is ended.error
    assert isinstance(failed.error, AuthenticationError)
    assert str(failed.error) == ("node 3 at 10.0.0.3:9092 refuses the login by SCRIPT: expired")
    assert not failed.is_refused, "the next login may succeed, under another name too"
    assert connection.state is ConnectionState.IDLE


def test_a_renewal_waits_until_the_broker_reads_again() -> None:
    """Regression: a renewal behind a quota's pause cost the link, although it was announced."""
    connection = make()
    link = log_in(connection, 100.0)
    expect(connection, OpenGate)
    connection.handle_throttled(link, 140.0)
    connection.handle_gate_shut(link, 109.0)
    expect(connection, SendRaw)
    assert connection.next_deadline() == pytest.approx(140.0 + 10.0)
    connection.handle_throttled(link, 155.0)
    assert connection.next_deadline() == pytest.approx(155.0 + 10.0)
    connection.tick(164.0)
    assert connection.is_ready


@pytest.mark.parametrize(
    ("announced_ms", "seconds"), [(20_000, 20.0), (2_000_000_000, THROTTLE_MAX)]
)
def test_a_login_waits_until_the_broker_reads_again(announced_ms: int, seconds: float) -> None:
    connection = make()
    connection.connect(0.0)
    link = expect(connection, OpenLink).link_id
    connection.handle_connected(link, 0.0)
    header, _ = frame.decode_request(expect(connection, SendRaw).frame[4:])
    answer = ApiVersionsResponse(api_keys=SASL_APIS, throttle_time_ms=announced_ms)
    connection.handle_frame(link, frame.encode_response(answer, header.version, 0)[4:], 1.0)
    assert expect(connection, LinkThrottled) == LinkThrottled(link, announced_ms)
    assert connection.next_deadline() == pytest.approx(1.0 + seconds + 10.0)


def test_a_renewal_that_is_not_answered_closes_the_link() -> None:
    connection = make()
    link = log_in(connection, 100.0)
    expect(connection, OpenGate)
    connection.handle_gate_shut(link, 109.0)
    expect(connection, SendRaw)
    connection.tick(connection.next_deadline())
    expect(connection, LoginEnded)
    expect(connection, CloseLink)
    error = expect(connection, ConnectionFailed).error
    assert isinstance(error, KafkaTimeoutError)
    assert str(error) == ("node 3 at 10.0.0.3:9092 has not answered SaslHandshake v1 within 10 s")


def test_a_refused_login_tries_the_other_addresses_and_then_backs_off() -> None:
    connection = make(key=BOOTSTRAP, hosts=("10.0.0.1", "10.0.0.2"))
    connection.connect(0.0)
    for number in (1, 2):
        link = negotiate(connection, 0.0)
        shake_hands(connection, link, 0.0)
        request = expect(connection, SendRaw).frame
        connection.handle_frame(link, refuse(request, f"no {number}"), 0.0)
        expect(connection, LoginEnded)
        expect(connection, CloseLink)
    failed = expect(connection, ConnectionFailed)
    assert failed.is_refused
    assert isinstance(failed.error, AuthenticationError)
    text = str(failed.error)
    assert text.startswith("bootstrap: none of 2 addresses accepted this client: 10.0.0.")
    assert "no 1" in text
    assert "no 2" in text
    assert failed.retry_at > 0.0


def test_one_refusal_among_dead_addresses_is_what_is_told() -> None:
    connection = make(hosts=("10.0.0.1", "10.0.0.2"))
    connection.connect(0.0)
    link = negotiate(connection, 0.0)
    request = expect(connection, SendRaw).frame
    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    connection.handle_frame(link, shake(request, code, ("PLAIN",)), 0.0)
    expect(connection, LoginEnded)
    expect(connection, CloseLink)
    second = expect(connection, OpenLink).link_id
    connection.handle_connect_failed(second, ConnectionRefusedError(111, "refused"), 0.0)
    failed = expect(connection, ConnectionFailed)
    assert failed.is_refused
    assert isinstance(failed.error, AuthenticationError)
    assert isinstance(failed.error.__cause__, AuthenticationError)


@pytest.mark.parametrize("options", [{}, {"reconnect_backoff_ms": 0}])
def test_logins_that_are_refused_again_and_again_wait_ever_longer(options: Any) -> None:
    connection, now, waits = make(**options), 0.0, []
    for _ in range(6):
        connection.connect(now)
        link = negotiate(connection, now)
        shake_hands(connection, link, now)
        connection.handle_frame(link, refuse(expect(connection, SendRaw).frame, None), now)
        expect(connection, LoginEnded)
        expect(connection, CloseLink)
        failed = expect(connection, ConnectionFailed)
        waits.append(failed.retry_at - now)
        now = failed.retry_at
    assert waits == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])


def test_work_is_done_for_the_login_and_has_its_time() -> None:
    connection = make(work_then_say)
    connection.connect(0.0)
    link = negotiate(connection, 0.0)
    shake_hands(connection, link, 1.0)
    work = expect(connection, DoWork)
    assert work.link_id == link
    assert connection.next_deadline() == pytest.approx(1.0 + WORK_TIMEOUT)
    connection.handle_work_done(link, work.work.function(), 2.0)
    expect(connection, SendRaw)
    connection.handle_work_done(link, b"twice", 2.0)
    assert nothing(connection)


def test_work_that_hangs_is_not_waited_for_and_its_late_result_changes_nothing() -> None:
    connection = make(work_then_say, hosts=("10.0.0.1", "10.0.0.2"))
    connection.connect(0.0)
    link = negotiate(connection, 0.0)
    shake_hands(connection, link, 1.0)
    expect(connection, DoWork)
    connection.tick(connection.next_deadline())
    ended = expect(connection, LoginEnded)
    assert str(ended.error).endswith(
        "waits for a login: a token is asked of 10.0.0.2 within 60 s"
    ) or str(ended.error).endswith("waits for a login: a token is asked of 10.0.0.1 within 60 s")
    expect(connection, CloseLink)
    second = expect(connection, OpenLink).link_id
    connection.handle_work_done(link, b"late", 70.0)
    assert nothing(connection)
    connection.handle_connected(second, 70.0)
    expect(connection, SendRaw)
    connection.handle_work_done(link, b"late", 70.0)
    connection.handle_work_done(second, b"of nobody", 70.0)
    assert nothing(connection)


def renewal_with_work(connection: Connection) -> tuple[int, DoWork]:
    """Log in, and go to the work of the first renewal, ahead of the gate."""
    connection.connect(100.0)
    link = negotiate(connection, 100.0)
    shake_hands(connection, link, 100.0)
    connection.handle_work_done(link, expect(connection, DoWork).work.function(), 100.0)
    request = expect(connection, SendRaw).frame
    connection.handle_frame(link, accept(request, lifetime_ms=10_000), 100.0)
    expect(connection, LoginEnded)
    expect(connection, ConnectionReady)
    assert expect(connection, OpenGate) == OpenGate(link, pytest.approx(109.0))
    assert connection.next_deadline() == pytest.approx(108.7)
    connection.tick(connection.next_deadline())
    work = expect(connection, DoWork)
    assert nothing(connection)
    assert connection.state is ConnectionState.READY
    assert connection.under_way(108.8) is None
    return link, work


def end_renewal(connection: Connection, link: int, now: float) -> None:
    shake_hands(connection, link, now)
    request = expect(connection, SendRaw).frame
    connection.handle_frame(link, accept(request, lifetime_ms=10_000), now)
    assert expect(connection, LoginEnded) == LoginEnded(False, None)
    assert expect(connection, OpenGate).until == pytest.approx(now + 9.0)
    assert connection.next_deadline() == pytest.approx(now + 8.7)
    assert connection.state is ConnectionState.READY


def test_a_renewals_work_is_done_before_requests_have_to_wait() -> None:
    connection = make(work_then_say)
    link, work = renewal_with_work(connection)
    connection.handle_work_done(link, work.work.function(), 108.9)
    assert nothing(connection), "SaslHandshake waits for the gate"
    assert connection.next_deadline() == NEVER
    assert connection.awaited == ""
    connection.handle_gate_shut(link, 109.0)
    assert connection.awaited == "SaslHandshake v1"
    assert connection.next_deadline() == pytest.approx(119.0)
    end_renewal(connection, link, 109.1)


def test_a_renewals_work_that_is_not_done_when_the_gate_shuts() -> None:
    connection = make(work_then_say)
    link, work = renewal_with_work(connection)
    connection.handle_gate_shut(link, 109.0)
    assert nothing(connection), "the work is under way"
    assert connection.next_deadline() == pytest.approx(109.0 + WORK_TIMEOUT)
    said = connection.under_way(110.0)
    assert said is not None
    assert said[0].endswith("waits for a login: a token is asked of 10.0.0.3")
    connection.handle_work_done(link, work.work.function(), 111.0)
    end_renewal(connection, link, 111.1)


def test_a_renewals_work_that_fails_ahead_of_the_gate_is_done_again() -> None:
    connection = make(work_then_say)
    link, _ = renewal_with_work(connection)
    connection.handle_work_done(link, KafkaConnectionError("the provider is down"), 108.8)
    assert nothing(connection)
    assert connection.next_deadline() == NEVER
    connection.handle_work_done(link, b"late", 108.9)
    assert nothing(connection)
    connection.handle_gate_shut(link, 109.0)
    work = expect(connection, DoWork)
    connection.handle_work_done(link, work.work.function(), 109.1)
    end_renewal(connection, link, 109.2)


def test_a_renewals_work_that_hangs_closes_the_link() -> None:
    connection = make(work_then_say)
    link, _ = renewal_with_work(connection)
    connection.handle_gate_shut(link, 109.0)
    connection.tick(connection.next_deadline())
    error = expect(connection, LoginEnded).error
    assert str(error).endswith("a token is asked of 10.0.0.3 within 60 s")
    assert expect(connection, CloseLink).link_id == link


@pytest.mark.parametrize("is_done", [True, False])
def test_a_link_that_breaks_ahead_of_its_renewal_was_not_in_a_login(is_done: bool) -> None:
    connection = make(work_then_say)
    link, work = renewal_with_work(connection)
    if is_done:
        connection.handle_work_done(link, work.work.function(), 108.9)
    connection.handle_closed(link, None, 108.9, "Metadata v13")
    error = expect(connection, ConnectionFailed).error
    assert str(error).endswith("closed the connection instead of an answer to Metadata v13")
    connection.handle_work_done(link, b"late", 109.0)
    assert nothing(connection)


def test_a_conversation_ends_with_its_link() -> None:
    ended = []

    def converse(host: str) -> Conversation:
        try:
            yield b"hello"
        finally:
            ended.append(host)

    connection = make(converse)
    connection.connect(0.0)
    link = negotiate(connection, 0.0)
    shake_hands(connection, link, 0.0)
    connection.close()
    assert ended == ["10.0.0.3"]


@pytest.mark.parametrize("error", [None, ConnectionResetError(104, "reset")])
def test_a_broker_that_hangs_up_during_the_login(error: OSError | None) -> None:
    connection = make()
    connection.connect(0.0)
    link = negotiate(connection, 0.0)
    shake_hands(connection, link, 0.0)
    expect(connection, SendRaw)
    connection.handle_closed(link, error, 0.5)
    assert expect(connection, LoginEnded).error is not None
    failed = expect(connection, ConnectionFailed)
    assert type(failed.error) is KafkaConnectionError
    assert not failed.is_refused, "it may be the network"
    text = str(failed.error)
    assert "instead of an answer to SaslAuthenticate v2: some brokers refuse a login so" in text


def test_a_link_that_breaks_during_a_renewal() -> None:
    connection = make()
    link = log_in(connection, 100.0)
    expect(connection, OpenGate)
    connection.handle_gate_shut(link, 109.0)
    expect(connection, SendRaw)
    connection.handle_closed(link, None, 109.5, "Metadata v13")
    assert not expect(connection, LoginEnded).is_first
    failed = expect(connection, ConnectionFailed)
    assert "instead of an answer to SaslHandshake v1" in str(failed.error)
    assert connection.state is ConnectionState.IDLE


def test_garbage_instead_of_an_answer_to_a_login_keeps_its_class() -> None:
    connection = make()
    connection.connect(0.0)
    link = negotiate(connection, 0.0)
    expect(connection, SendRaw)
    connection.handle_frame(link, b"\0\0\0\0\0", 0.0)
    expect(connection, LoginEnded)
    expect(connection, CloseLink)
    failed = expect(connection, ConnectionFailed)
    assert isinstance(failed.error, ProtocolError)
    assert str(failed.error).startswith("node 3 at 10.0.0.3:9092 answered SaslHandshake v1 with")


def test_a_certificate_that_is_refused_keeps_its_class_and_is_final() -> None:
    connection = make()
    connection.connect(0.0)
    link = expect(connection, OpenLink).link_id
    connection.handle_connect_failed(link, TlsError("its certificate expired"), 0.0)
    failed = expect(connection, ConnectionFailed)
    assert isinstance(failed.error, TlsError)
    assert str(failed.error) == "node 3 at 10.0.0.3:9092: its certificate expired"
    assert failed.is_refused


def test_late_news_of_a_gate_changes_nothing() -> None:
    connection = make()
    link = log_in(connection, 100.0)
    expect(connection, OpenGate)
    connection.handle_gate_shut(link + 1, 109.0)
    assert connection.state is ConnectionState.READY
    connection.disconnect()
    expect(connection, CloseLink)
    connection.handle_gate_shut(link, 109.0)
    assert connection.state is ConnectionState.IDLE
    assert nothing(connection)
