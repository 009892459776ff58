"""Delegation tokens by the admin client, on real Kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from kafka_fast import Admin
from kafka_fast.admin import DelegationToken
from kafka_fast.errors import (
    AuthenticationError,
    DelegationTokenAuthorizationFailed,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    DelegationTokenRequestNotAllowed,
)
from kafka_fast.testing._client_properties import LOGIN_MODULES
from kafka_fast.testing._kafka.secure_kafka import SecureKafka
from tests.waiting import eventually

pytestmark = pytest.mark.broker

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def alice(secure_kafka: SecureKafka) -> Iterator[Admin]:
    """A super user, logged in by SCRAM."""
    with Admin(secure_kafka.client_properties("SASL_SSL", "SCRAM-SHA-256")) as made:
        yield made


@pytest.fixture(scope="module")
def bob(secure_kafka: SecureKafka) -> Iterator[Admin]:
    """A user without rights."""
    with Admin(secure_kafka.client_properties("SASL_SSL", "PLAIN", user="bob")) as made:
        yield made


def logged_in(kafka: SecureKafka, token: DelegationToken) -> Admin:
    properties = kafka.client_properties("SASL_SSL", "SCRAM-SHA-256")
    for name in ("sasl.username", "sasl.password"):
        properties.pop(name, None)
    properties["sasl.jaas.config"] = (
        f"{LOGIN_MODULES['SCRAM-SHA-256']} required "
        f'username="{token.token_id}" password="{token.hmac.reveal()}" tokenauth="true";'
    )
    return Admin(properties)


def may_log_in(kafka: SecureKafka, token: DelegationToken) -> bool:
    with logged_in(kafka, token) as admin:
        try:
            admin.list_topics(timeout=10.0)
        except AuthenticationError:
            return False
    return True


def ids(admin: Admin, *owners: str) -> set[str]:
    return {token.token_id for token in admin.describe_delegation_token(owners or None)}


def test_a_token_logs_in_until_it_expires(alice: Admin, secure_kafka: SecureKafka) -> None:
    before = time.time() * 1000 - 1000
    token = alice.create_delegation_token(["User:bob"], max_lifetime_ms=HOUR_MS)
    assert token.owner == "User:alice"
    assert token.requester == ("User:alice" if secure_kafka.release.kraft else None)
    assert token.renewers == ("User:bob",)
    assert before <= token.issue_timestamp <= token.expiry_timestamp <= token.max_timestamp
    assert token.max_timestamp == token.issue_timestamp + HOUR_MS
    eventually(lambda: token.token_id in ids(alice))
    (described,) = (
        one
        for one in alice.describe_delegation_token(["User:alice"])
        if one.token_id == token.token_id
    )
    assert described.hmac.is_same(token.hmac)
    assert repr(described) == repr(token)
    eventually(lambda: may_log_in(secure_kafka, token))
    with (
        logged_in(secure_kafka, token) as admin,
        pytest.raises(DelegationTokenRequestNotAllowed, match="not with a token"),
    ):
        admin.create_delegation_token()
    expiry = alice.renew_delegation_token(token.hmac, renew_period_ms=HOUR_MS // 2)
    assert token.issue_timestamp < expiry <= token.max_timestamp
    later = alice.expire_delegation_token(token.hmac, expiry_period_ms=HOUR_MS // 4)
    assert later < expiry
    alice.expire_delegation_token(token.hmac.reveal())
    eventually(lambda: token.token_id not in ids(alice))
    assert not may_log_in(secure_kafka, token)
    with pytest.raises(DelegationTokenNotFound, match="there is no such token"):
        alice.renew_delegation_token(token.hmac)


@pytest.mark.needs_kafka("3.3", "tokens for others (KIP-373)")
def test_only_owners_and_renewers_may(alice: Admin, bob: Admin) -> None:
    mine = alice.create_delegation_token()
    shared = alice.create_delegation_token(["User:bob"])
    eventually(lambda: {mine.token_id, shared.token_id} <= ids(alice, "User:alice"))
    assert shared.token_id in ids(bob)
    assert mine.token_id not in ids(bob)
    assert bob.renew_delegation_token(shared.hmac) > 0
    with pytest.raises(DelegationTokenOwnerMismatch):
        bob.renew_delegation_token(mine.hmac)
    with pytest.raises(DelegationTokenAuthorizationFailed, match="needs CREATE_TOKENS"):
        bob.create_delegation_token(owner="User:alice")
    for token in (mine, shared):
        alice.expire_delegation_token(token.hmac)


@pytest.mark.needs_kafka("3.3", "tokens for others (KIP-373)")
def test_tokens_for_others(alice: Admin, bob: Admin) -> None:
    token = alice.create_delegation_token(owner="User:bob")
    assert (token.owner, token.requester) == ("User:bob", "User:alice")
    eventually(lambda: token.token_id in ids(alice, "User:bob"))
    assert token.token_id in ids(alice, "User:alice")  # she has asked for it
    assert token.token_id not in ids(alice, "User:carol")
    assert alice.describe_delegation_token([]) == []
    with pytest.raises(DelegationTokenOwnerMismatch):
        alice.expire_delegation_token(token.hmac)
    bob.expire_delegation_token(token.hmac)


def test_who_has_not_logged_in_gets_no_token(secure_kafka: SecureKafka) -> None:
    with (
        Admin(bootstrap_servers=secure_kafka.bootstrap) as admin,
        pytest.raises(DelegationTokenRequestNotAllowed, match="logs in by SASL"),
    ):
        admin.create_delegation_token()
