"""SASL as brokers speak it: what may come when, and what they say if it does not."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest
from kafka_fast.testing._kafka.secure_kafka import USERS, SecureKafka
from kafka_fast.testing.broker.sasl.tokens import write_token
from kafka_fast.testing.broker.security import MECHANISMS, Security
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.integration.scenarios.sasl import (
    NONCE,
    Door,
    authenticate,
    bearer,
    handshake,
    log_in,
    plain,
    scram_final,
    scram_first,
    versions,
)
from tests.integration.scenarios.wire import ClosedError, WireClient, connected
from tests.waiting import eventually

FAILED = errors.SaslAuthenticationFailed.code
ILLEGAL = errors.IllegalSaslState.code
ALICE = ("alice", "alice-secret")
AUTHENTICATED_ALREADY = "SaslAuthenticate request received after successful authentication"
OTHER_AUTHORIZATION_ID = (
    "Authentication failed: Client requested an authorization id that is different from username"
)
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def unsecured(user: str, *, lifetime: float = 3600.0) -> str:
    return write_token(user, int(time.time()) * 1000, lifetime)


@pytest.fixture(scope="module", params=[pytest.param("real", marks=pytest.mark.broker), "embedded"])
def door(request: pytest.FixtureRequest) -> Iterator[Door]:
    if request.param == "real":
        secure: SecureKafka = request.getfixturevalue("secure_kafka")
        yield Door(secure.bootstrap_of("SASL_PLAINTEXT"), secure.provider.token)
    else:
        with EmbeddedKafka(security=Security(users=USERS)) as kafka:
            yield Door(kafka.bootstrap, unsecured)


@pytest.fixture
def client(door: Door) -> Iterator[WireClient]:
    with door.connected() as made:
        yield made


def invalid_credentials(mechanism: str, what: str = "authentication") -> str:
    return (
        f"Authentication failed during {what} due to invalid credentials with SASL mechanism "
        f"{mechanism}"
    )


@pytest.mark.parametrize("asks_versions", [False, True])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_each_mechanism_lets_a_user_in(
    door: Door, client: WireClient, mechanism: str, asks_versions: bool
) -> None:
    if asks_versions:
        assert versions(client).error_code == 0
    answer = log_in(client, mechanism, *ALICE, token=door.token("alice", lifetime=3600.0))
    assert (answer.error_code, answer.error_message) == (0, "")
    lifetime = answer.session_lifetime_ms
    assert lifetime == 0 if mechanism != "OAUTHBEARER" else 3_500_000 < lifetime <= 3_600_000
    assert client.metadata().brokers


def test_the_handshake_names_what_is_offered(client: WireClient) -> None:
    answer = handshake(client, "PLAIN")
    assert (answer.error_code, set(answer.mechanisms)) == (0, set(MECHANISMS))


@pytest.mark.parametrize("mechanism", ["GSSAPI", "", "plain"])
def test_an_unknown_mechanism_is_answered_with_the_known_ones(
    client: WireClient, mechanism: str
) -> None:
    answer = handshake(client, mechanism)
    assert answer.error_code == errors.UnsupportedSaslMechanism.code
    assert set(answer.mechanisms) == set(MECHANISMS)
    assert client.is_closed()


def test_nothing_else_is_answered_before(client: WireClient) -> None:
    with pytest.raises(ClosedError):
        client.metadata()


def test_tokens_need_a_handshake(client: WireClient) -> None:
    with pytest.raises(ClosedError):
        authenticate(client, plain(*ALICE))


def test_versions_are_asked_for_once(client: WireClient) -> None:
    assert versions(client).error_code == 0
    with pytest.raises(ClosedError):
        versions(client)


def test_versions_are_not_asked_for_between_tokens(client: WireClient) -> None:
    handshake(client, "PLAIN")
    assert versions(client).error_code == ILLEGAL
    assert client.is_closed()


def test_a_second_handshake_does_not_help(client: WireClient) -> None:
    handshake(client, "PLAIN")
    assert handshake(client, "SCRAM-SHA-256").error_code == ILLEGAL
    assert client.is_closed()


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (plain("alice", "guess"), "Authentication failed: Invalid username or password"),
        (plain("nobody", "guess"), "Authentication failed: Invalid username or password"),
        (plain("", "guess"), "Authentication failed: username not specified"),
        (plain("alice", ""), "Authentication failed: password not specified"),
        (
            b"bob" + plain(*ALICE),
            OTHER_AUTHORIZATION_ID,
        ),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0alice-secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (plain(*ALICE) + b"\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (plain(*ALICE) + b"\0\0\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    ],
)
def test_plain_refuses_with_a_text(client: WireClient, token: bytes, message: str) -> None:
    handshake(client, "PLAIN")
    answer = authenticate(client, token)
    assert (answer.error_code, answer.error_message) == (FAILED, message)
    assert client.is_closed()


def test_an_authorization_id_may_be_the_user(client: WireClient) -> None:
    handshake(client, "PLAIN")
    assert authenticate(client, b"alice" + plain(*ALICE)).error_code == 0


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_extends_the_nonce_and_says_how_to_hash(client: WireClient, mechanism: str) -> None:
    handshake(client, mechanism)
    answer = authenticate(client, scram_first("alice"))
    nonce, salt, iterations = answer.auth_bytes.decode().split(",")
    assert nonce.startswith(f"r={NONCE}")
    assert len(nonce) > len(NONCE) + 10
    assert len(base64.b64decode(salt.removeprefix("s="))) >= 8
    assert int(iterations.removeprefix("i=")) >= 4096


@pytest.mark.parametrize(
    "first",
    [
        scram_first("nobody"),
        b"",
        b"n,,n=alice",
        b"n,,r=abc,n=alice",
        b"y,,n=alice,r=abc",
        b"p=tls-unique,,n=alice,r=abc",
        b"n,,n=al=ice,r=abc",
        b"n,,n=alice,r=",
        b"n,,n=alice,r=a c",
        b"n,,n=,r=abc",
        b"\xff\xfe",
    ],
)
def test_scram_refuses_a_first_token(client: WireClient, first: bytes) -> None:
    handshake(client, "SCRAM-SHA-256")
    answer = authenticate(client, first)
    assert (answer.error_code, answer.error_message) == (
        FAILED,
        invalid_credentials("SCRAM-SHA-256"),
    )
    assert client.is_closed()


@pytest.mark.parametrize(
    "other",
    [
        {"r": NONCE},
        {"r": f"{NONCE}x"},
        {"p": "!!!!"},
    ],
)
@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_refuses_a_last_token(
    client: WireClient, mechanism: str, other: dict[str, str]
) -> None:
    handshake(client, mechanism)
    first = scram_first("alice")
    answer = authenticate(client, first)
    final, _ = scram_final(mechanism, "alice-secret", first, answer.auth_bytes, **other)
    answer = authenticate(client, final)
    assert (answer.error_code, answer.error_message) == (FAILED, invalid_credentials(mechanism))
    assert answer.auth_bytes == b""
    assert client.is_closed()


@pytest.mark.parametrize("proof", ["", "AAAA", base64.b64encode(bytes(65)).decode()])
def test_a_proof_of_another_length_ends_it(client: WireClient, proof: str) -> None:
    handshake(client, "SCRAM-SHA-256")
    first = scram_first("alice")
    answer = authenticate(client, first)
    final, _ = scram_final("SCRAM-SHA-256", "alice-secret", first, answer.auth_bytes, p=proof)
    with pytest.raises(ClosedError):
        authenticate(client, final)


def test_scram_refuses_a_wrong_password(client: WireClient) -> None:
    answer = log_in(client, "SCRAM-SHA-512", "alice", "guess")
    assert (answer.error_code, answer.error_message) == (
        FAILED,
        invalid_credentials("SCRAM-SHA-512"),
    )


def test_a_bad_token_is_told_and_acknowledged(door: Door, client: WireClient) -> None:
    handshake(client, "OAUTHBEARER")
    answer = authenticate(client, bearer(door.token("alice", lifetime=-3600.0)))
    assert answer.error_code == 0
    assert json.loads(answer.auth_bytes)["status"] == "invalid_token"
    answer = authenticate(client, b"\x01")
    assert answer.error_code == FAILED
    assert json.loads(answer.error_message)["status"] == "invalid_token"
    assert client.is_closed()


def test_after_a_bad_token_a_good_one_is_taken(door: Door, client: WireClient) -> None:
    handshake(client, "OAUTHBEARER")
    authenticate(client, bearer(door.token("alice", lifetime=-3600.0)))
    assert authenticate(client, bearer(door.token("alice"))).session_lifetime_ms > 0
    assert client.metadata().brokers


@pytest.mark.parametrize(
    "first", [b"", b"\x01", b"n,,\x01\x01", b"n,,\x01auth=Bearer\x01\x01", b"n,,auth=Bearer a"]
)
def test_bearers_grammar(client: WireClient, first: bytes) -> None:
    handshake(client, "OAUTHBEARER")
    answer = authenticate(client, first)
    assert (answer.error_code, answer.error_message) == (
        FAILED,
        invalid_credentials("OAUTHBEARER"),
    )


def test_another_scheme_ends_it(client: WireClient) -> None:
    handshake(client, "OAUTHBEARER")
    with pytest.raises(ClosedError):
        authenticate(client, b"n,,\x01auth=Basic abc\x01\x01")


def test_a_token_for_somebody_else(door: Door, client: WireClient) -> None:
    handshake(client, "OAUTHBEARER")
    token = bearer(door.token("alice")).replace(b"n,,", b"n,a=bob,")
    answer = authenticate(client, token)
    assert answer.error_code == FAILED
    assert "an authorization id (bob) that is different" in answer.error_message


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM])
def test_old_clients_send_tokens_without_headers(client: WireClient, mechanism: str) -> None:
    def exchange(token: bytes) -> bytes:
        client.send_bytes(len(token).to_bytes(4, "big") + token)
        return client.receive()

    assert handshake(client, mechanism, 0).error_code == 0
    if mechanism == "PLAIN":
        assert exchange(plain(*ALICE)) == b""
    else:
        first = scram_first("alice")
        server_first = exchange(first)
        final, verifier = scram_final(mechanism, "alice-secret", first, server_first)
        assert exchange(final) == verifier
    assert client.metadata().brokers


def test_old_clients_are_not_told_why(client: WireClient) -> None:
    handshake(client, "PLAIN", 0)
    token = plain("alice", "guess")
    client.send_bytes(len(token).to_bytes(4, "big") + token)
    assert client.is_closed()


def test_old_versions_know_no_lifetime(client: WireClient) -> None:
    handshake(client, "PLAIN")
    assert authenticate(client, plain(*ALICE), version=0).error_code == 0
    assert client.metadata().brokers


def test_unknown_clients_send_nothing_large(client: WireClient) -> None:
    client.send_bytes((600 * 1024).to_bytes(4, "big"))
    assert client.is_closed()


# ---- again, on the same connection (KIP-368), if the session has an end ----


def test_a_client_may_authenticate_again(door: Door, client: WireClient) -> None:
    log_in(client, "OAUTHBEARER", *ALICE, token=door.token("alice", lifetime=100.0))
    assert client.metadata().brokers
    answer = log_in(client, "OAUTHBEARER", *ALICE, token=door.token("alice", lifetime=200.0))
    assert (answer.error_code, answer.session_lifetime_ms > 150_000) == (0, True)
    assert client.metadata().brokers


def test_but_not_if_the_session_has_no_end(client: WireClient) -> None:
    log_in(client, "PLAIN", *ALICE)
    answer = handshake(client, "PLAIN")
    assert (answer.error_code, answer.mechanisms) == (ILLEGAL, [])
    answer = authenticate(client, plain(*ALICE))
    assert answer.error_code == ILLEGAL
    assert answer.error_message == AUTHENTICATED_ALREADY
    assert client.metadata().brokers


def test_and_not_twice_within_a_second(door: Door, client: WireClient) -> None:
    log_in(client, "OAUTHBEARER", *ALICE, token=door.token("alice"))
    log_in(client, "OAUTHBEARER", *ALICE, token=door.token("alice"))
    answer = handshake(client, "OAUTHBEARER")
    assert (answer.error_code, answer.mechanisms) == (ILLEGAL, [])
    assert client.metadata().brokers


def test_and_not_as_somebody_else(door: Door, client: WireClient) -> None:
    log_in(client, "OAUTHBEARER", *ALICE, token=door.token("alice"))
    answer = log_in(client, "OAUTHBEARER", *ALICE, token=door.token("bob"))
    assert (answer.error_code, answer.error_message) == (
        FAILED,
        "Cannot change principals during re-authentication from User.alice: User.bob",
    )
    assert client.is_closed()


def test_and_not_by_another_mechanism(door: Door, client: WireClient) -> None:
    log_in(client, "OAUTHBEARER", *ALICE, token=door.token("alice"))
    assert handshake(client, "SCRAM-SHA-256").error_code == 0
    with pytest.raises(ClosedError):
        authenticate(client, scram_first("alice"))


def test_and_not_with_a_bad_token(door: Door, client: WireClient) -> None:
    log_in(client, "OAUTHBEARER", *ALICE, token=door.token("alice"))
    handshake(client, "OAUTHBEARER")
    answer = authenticate(client, b"nonsense")
    assert (answer.error_code, answer.error_message) == (
        FAILED,
        invalid_credentials("OAUTHBEARER", "re-authentication"),
    )
    assert client.is_closed()


def test_nothing_comes_between_the_tokens(door: Door, client: WireClient) -> None:
    log_in(client, "OAUTHBEARER", *ALICE, token=door.token("alice"))
    handshake(client, "OAUTHBEARER")
    client.send(MetadataRequest(topics=[]), 12)
    with pytest.raises(ClosedError):
        [client.receive() for _ in range(2)]  # ours gives no answer, Kafka's one says why


def test_old_clients_may_authenticate_again_too(door: Door, client: WireClient) -> None:
    token = bearer(door.token("alice"))
    for _ in range(2):
        assert handshake(client, "OAUTHBEARER").error_code == 0
        assert authenticate(client, token, version=0).error_code == 0
    assert client.metadata().brokers


def test_a_session_ends_with_the_next_request(door: Door, client: WireClient) -> None:
    answer = log_in(client, "OAUTHBEARER", *ALICE, token=door.token("alice", lifetime=2.0))
    assert 0 < answer.session_lifetime_ms <= 2000

    def asks_in_vain() -> bool:
        try:
            return not client.metadata().brokers
        except ClosedError:
            return True

    eventually(asks_in_vain)


def test_a_session_that_ended_can_go_on(door: Door, client: WireClient) -> None:
    log_in(client, "OAUTHBEARER", *ALICE, token=door.token("alice", lifetime=1.0))
    with door.connected() as other:  # whose session ends later
        log_in(other, "OAUTHBEARER", *ALICE, token=door.token("alice", lifetime=2.0))

        def asks_in_vain() -> bool:
            try:
                return not other.metadata().brokers
            except ClosedError:
                return True

        eventually(asks_in_vain)
    assert log_in(client, "OAUTHBEARER", *ALICE, token=door.token("alice")).error_code == 0
    assert client.metadata().brokers


# ---- where there is no SASL ----


def test_without_sasl_a_handshake_is_illegal(address: str) -> None:
    with connected(address) as client:
        answer = handshake(client, "PLAIN")
        assert (answer.error_code, answer.mechanisms) == (ILLEGAL, [])
        assert authenticate(client, plain(*ALICE)).error_code == ILLEGAL
        assert client.metadata().brokers
