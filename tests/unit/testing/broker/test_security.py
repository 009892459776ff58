"""Rules of ACLs, and SASL in virtual time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest
from kafka_fast.protocol.apis.security.sasl_authenticate import SaslAuthenticateRequest
from kafka_fast.protocol.apis.security.sasl_handshake import SaslHandshakeRequest
from kafka_fast.testing.broker.acls import Authorizer, Operation, ResourceType, acl_rules
from kafka_fast.testing.broker.sasl.tokens import read_token, write_token
from kafka_fast.testing.broker.security import Security
from kafka_fast.testing.broker.versions import SASL_AUTHENTICATE, SASL_HANDSHAKE
from tests.unit.testing.broker.memory import Client, World

TOPIC = ResourceType.TOPIC
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
PLAIN = b"\0alice\0secret"


@pytest.fixture
def authorizer() -> Authorizer:
    return Authorizer(["root"])


class TestRules:
    def test_without_rules_only_super_users_may(self, authorizer: Authorizer) -> None:
        assert authorizer.allows("root", READ, TOPIC, "t")
        assert not authorizer.allows("bob", READ, TOPIC, "t")

    @pytest.mark.parametrize(
        ("rule", "name", "expected"),
        [
            ({"topic": "orders"}, "orders", True),
            ({"topic": "orders"}, "orders-2", False),
            ({"topic": "orders", "prefixed": True}, "orders-2", True),
            ({"topic": "orders", "prefixed": True}, "order", False),
            ({"topic": "*"}, "anything", True),
            ({"group": "orders"}, "orders", False),
        ],
    )
    def test_names(
        self, authorizer: Authorizer, rule: dict[str, str], name: str, expected: bool
    ) -> None:
        authorizer.add_rules(acl_rules("bob", ["READ"], **rule))  # type: ignore[arg-type]
        assert authorizer.allows("bob", READ, TOPIC, name) is expected
        assert not authorizer.allows("eve", READ, TOPIC, name)
        assert not authorizer.allows("bob", WRITE, TOPIC, name)

    def test_reading_implies_describing_but_denying_it_does_not(
        self, authorizer: Authorizer
    ) -> None:
        authorizer.add_rules(acl_rules("bob", ["READ", "WRITE"], topic="t"))
        assert authorizer.allows("bob", DESCRIBE, TOPIC, "t")
        authorizer.add_rules(acl_rules("bob", ["READ"], topic="t", allows=False))
        assert authorizer.allows("bob", DESCRIBE, TOPIC, "t")
        assert not authorizer.allows("bob", READ, TOPIC, "t")

    def test_rules_are_removed_and_count_once(self, authorizer: Authorizer) -> None:
        (rule,) = acl_rules("bob", ["READ"], topic="t")
        authorizer.add_rules([rule, rule])
        authorizer.add_rules([rule])
        assert authorizer.rules == (rule,)
        authorizer.remove_rules([rule])
        assert not authorizer.allows("bob", READ, TOPIC, "t")

    def test_rules_for_other_hosts_concern_nobody_here(self, authorizer: Authorizer) -> None:
        (rule,) = acl_rules("bob", ["READ"], topic="t")
        authorizer.add_rules([replace(rule, host="10.0.0.1")])
        assert not authorizer.allows("bob", READ, TOPIC, "t")
        authorizer.add_rules([replace(rule, host="127.0.0.1")])
        assert authorizer.allows("bob", READ, TOPIC, "t")

    def test_all_users_and_all_operations(self, authorizer: Authorizer) -> None:
        authorizer.add_rules(acl_rules("*", ["ALL"], topic="t"))
        assert authorizer.allows("eve", WRITE, TOPIC, "t")
        authorizer.add_rules(acl_rules("eve", ["ALL"], topic="t", allows=False))
        assert not authorizer.allows("eve", WRITE, TOPIC, "t")

    @pytest.mark.parametrize(
        ("denied", "expected"),
        [
            ({"topic": "*"}, False),
            ({"topic": "orders"}, False),
            ({"topic": "or", "prefixed": True}, False),
            ({"topic": "bills"}, True),
            ({"topic": "orders-2"}, True),
        ],
    )
    def test_some_topic_or_none(
        self, authorizer: Authorizer, denied: dict[str, str], expected: bool
    ) -> None:
        assert not authorizer.allows_some("bob", WRITE, TOPIC)
        authorizer.add_rules(acl_rules("bob", ["WRITE"], topic="orders"))
        assert authorizer.allows_some("bob", WRITE, TOPIC)
        assert not authorizer.allows_some("bob", READ, TOPIC)
        authorizer.add_rules(acl_rules("bob", ["WRITE"], allows=False, **denied))  # type: ignore[arg-type]
        assert authorizer.allows_some("bob", WRITE, TOPIC) is expected

    def test_mistakes_are_named(self) -> None:
        with pytest.raises(ValueError, match="'LOOK' is not one of ALL, READ"):
            acl_rules("bob", ["LOOK"], topic="t")
        with pytest.raises(ValueError, match="name what it is about"):
            acl_rules("bob", ["READ"])


class TestTokens:
    def test_a_token_is_read_as_it_was_written(self) -> None:
        claims = read_token(write_token("alice", 1_000_000, 5.0), 1_000_000)
        assert (claims.user, claims.expires_at_ms) == ("alice", 1_005_000)

    @pytest.mark.parametrize("token", ["", "a.b.c", "..", "e30.e30.", "!.!.", "bnVsbA.e30."])
    def test_others_are_refused(self, token: str) -> None:
        with pytest.raises(ValueError):  # whatever the reason
            read_token(token, 0)

    def test_it_expires(self) -> None:
        with pytest.raises(ValueError, match="expired"):
            read_token(write_token("alice", 1_000_000, 5.0), 1_005_000)


def secure_world(**security: object) -> World:
    settings = Security(users={"alice": "secret"}, **security)  # type: ignore[arg-type]
    return World(security=settings)


def log_in(client: Client, token: bytes = PLAIN) -> object:
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    return client.ask(SaslAuthenticateRequest(auth_bytes=token), 2)


class TestTime:
    def test_a_refusal_comes_after_the_delay(self) -> None:
        world = secure_world(failure_delay_ms=250)
        client = world.connect()
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        client.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0guess"), 2)
        client.send(MetadataRequest(topics=[]), 12)  # is never answered
        world.run_until(0.249)
        assert not client.received
        assert not client.closed
        world.run_until(0.25)
        answer = client.take(SaslAuthenticateRequest(), 2)
        assert answer.error_code == errors.SaslAuthenticationFailed.code
        assert client.closed
        assert not client.received

    def test_a_session_ends_with_the_first_request_after_it(self) -> None:
        world = secure_world(reauth_ms=2000)
        client = world.connect()
        log_in(client)
        world.run_until(1.9)
        assert client.ask(MetadataRequest(topics=[]), 12).brokers
        world.run_until(5.0)
        assert not client.closed
        client.send(MetadataRequest(topics=[]), 12)
        world.settle()
        assert client.closed

    def test_authentication_again_moves_the_end(self) -> None:
        world = secure_world(reauth_ms=2000)
        client = world.connect()
        log_in(client)
        for turn in range(1, 5):
            world.run_until(turn * 1.5)
            assert log_in(client).error_code == 0  # type: ignore[attr-defined]
        assert client.ask(MetadataRequest(topics=[]), 12).brokers

    @pytest.mark.parametrize("api", [SASL_HANDSHAKE, SASL_AUTHENTICATE])
    @pytest.mark.parametrize("applied", [True, False])
    @pytest.mark.parametrize("close", [True, False])
    def test_an_answer_may_be_lost(self, api: int, applied: bool, close: bool) -> None:
        world = secure_world()
        rule = world.cluster.faults.drop(api=api, applied=applied, close=close, count=1)
        client = world.connect()
        client.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        if api == SASL_AUTHENTICATE:
            client.take(SaslHandshakeRequest(), 1)
            client.send(SaslAuthenticateRequest(auth_bytes=PLAIN), 2)
        world.run_until(100.0)
        assert (rule.strikes, client.received, client.closed) == (1, b"", close)
        assert log_in(world.connect()).error_code == 0  # type: ignore[attr-defined]

    def test_a_stall_is_a_fault_like_others(self) -> None:
        world = secure_world()
        world.cluster.faults.delay(3.0, api=SASL_AUTHENTICATE, count=1)
        client = world.connect()
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        client.send(SaslAuthenticateRequest(auth_bytes=PLAIN), 2)
        world.run_until(2.9)
        assert not client.received
        world.run_until(3.0)
        assert client.take(SaslAuthenticateRequest(), 2).error_code == 0
