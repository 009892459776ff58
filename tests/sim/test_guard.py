"""The guard of simulated brokers keeps Kafka's rules of logins, and notes who breaks them."""

from __future__ import annotations

import random

import pytest

from kafka_fast.errors import ErrorCode
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest
from kafka_fast.protocol.apis.security.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafka_fast.protocol.apis.security.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka_fast.protocol.schema import Request
from tests.sim.worlds.guard import MECHANISM, Admitted, Guard, LoginPlan

PLAN = LoginPlan(
    lifetime_ms=2_000,
    rounds=1,
    version=2,
    has_work=False,
    refusals=0.0,
    silence=0.0,
    rotates=False,
)


class Client:
    """One connection whose bytes arrive as they are written."""

    def __init__(self) -> None:
        self.guard = Guard(PLAN, random.Random(1), lambda line: None)
        self.guard.connect(1)

    def send(self, request: Request, version: int, now: float) -> Admitted:
        data = frame.encode_request(request, version, 7, "me")
        for at in range(0, len(data), 3):  # however the bytes come
            self.guard.note_written(1, data[at : at + 3], now, late=False)
        return self.guard.admit(1, data, now)

    def ask(self, now: float) -> Admitted:
        return self.send(MetadataRequest(topics=[]), 9, now)

    def shake(self, now: float, mechanism: str = MECHANISM) -> int:
        admitted = self.send(SaslHandshakeRequest(mechanism=mechanism), 1, now)
        assert admitted.forward == b""
        return frame.decode_response(SaslHandshakeResponse, admitted.answer[4:], 1)[1].error_code

    def authenticate(self, now: float, password: bytes = b"first") -> SaslAuthenticateResponse:
        admitted = self.send(SaslAuthenticateRequest(auth_bytes=password), 2, now)
        answer = frame.decode_response(SaslAuthenticateResponse, admitted.answer[4:], 2)[1]
        assert admitted.close is bool(answer.error_code)
        return answer

    def log_in(self, now: float) -> None:
        assert self.shake(now) == 0
        assert self.authenticate(now).session_lifetime_ms == 2_000


@pytest.fixture
def client() -> Client:
    return Client()


def test_requests_pass_after_the_login_until_the_session_ends(client: Client) -> None:
    client.log_in(0.0)
    assert client.ask(1.9).forward
    assert client.guard.violations == []
    assert client.ask(2.1) == Admitted(b"", b"", close=True)
    assert client.guard.violations == ["API 3 after the session's end"]


def test_a_request_before_the_login_closes(client: Client) -> None:
    assert client.ask(0.0).close
    assert client.guard.violations == ["API 3 before the login"]


def test_a_login_is_renewed_even_after_the_sessions_end(client: Client) -> None:
    client.log_in(0.0)
    client.log_in(5.0)
    assert client.ask(6.9).forward
    assert (client.guard.logins, client.guard.renewals) == (1, 1)
    assert client.guard.violations == []


def test_two_renewals_need_a_second(client: Client) -> None:
    client.log_in(0.0)
    client.log_in(0.5)
    assert client.shake(1.4) == ErrorCode.ILLEGAL_SASL_STATE
    assert client.guard.violations == ["a renewal within a second of the last one"]


def test_a_request_in_the_middle_of_a_renewal_closes(client: Client) -> None:
    client.log_in(0.0)
    assert client.shake(1.0) == 0
    assert client.ask(1.0).close
    assert client.guard.violations == ["API 3 in the middle of a renewal"]


def test_a_wrong_password_and_another_mechanism_are_refused(client: Client) -> None:
    assert client.shake(0.0, "PLAIN") == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    other = Client()
    assert other.shake(0.0) == 0
    answer = other.authenticate(0.0, b"wrong")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    other.guard.rotate()
    assert other.guard.mechanism.password == b"first"
    other.guard.heal()
    assert other.guard.mechanism.password == b"second"
