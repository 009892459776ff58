"""SCRAM credentials by the admin client, on real Kafka."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator

import pytest

from kafka_fast import Admin, aio
from kafka_fast.admin import (
    ScramCredentialInfo,
    Secret,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
    UserScramMechanism,
)
from kafka_fast.errors import (
    AuthenticationError,
    ClusterAuthorizationFailed,
    KafkaError,
    ResourceNotFound,
)
from kafka_fast.testing._kafka.secure_kafka import SecureKafka
from tests.waiting import eventually

pytestmark = pytest.mark.broker

SHA_256, SHA_512 = UserScramMechanism.SCRAM_SHA_256, UserScramMechanism.SCRAM_SHA_512


@pytest.fixture(scope="module")
def secure_admin(secure_kafka: SecureKafka) -> Iterator[Admin]:
    with Admin(bootstrap_servers=secure_kafka.bootstrap) as made:
        yield made


@pytest.fixture
def user() -> str:
    return f"user-{uuid.uuid4().hex}"


def may_log_in(kafka: SecureKafka, mechanism: str, user: str, password: str) -> bool:
    """Whether a user gets in; who has no rights is let in, and sees no topic."""
    properties = {
        **kafka.client_properties("SASL_PLAINTEXT", mechanism),
        "sasl.username": user,
        "sasl.password": password,
        "allow.insecure.sasl": "true",
    }
    properties.pop("sasl.jaas.config", None)
    with Admin(properties) as admin:
        try:
            admin.list_topics(timeout=10.0)
        except AuthenticationError:
            return False
    return True


def test_passwords_are_set_used_and_deleted(
    secure_admin: Admin, secure_kafka: SecureKafka, user: str
) -> None:
    password = "a very long pässword"  # in its normal form
    both = [
        UserScramCredentialUpsertion(user, SHA_256, password),
        UserScramCredentialUpsertion(user, SHA_512, Secret(password), iterations=16_384),
        UserScramCredentialUpsertion(f"{user}-other", SHA_256, "another"),
    ]
    altered = secure_admin.alter_user_scram_credentials(both)
    assert list(altered) == [user, f"{user}-other"]
    assert altered.errors == {}
    infos = {ScramCredentialInfo(SHA_256, 4096), ScramCredentialInfo(SHA_512, 16_384)}
    eventually(lambda: described(secure_admin, user) == infos)
    mechanisms = ("SCRAM-SHA-256", "SCRAM-SHA-512")
    eventually(lambda: all(may_log_in(secure_kafka, one, user, password) for one in mechanisms))
    assert not may_log_in(secure_kafka, "SCRAM-SHA-256", user, "another")

    everybody = secure_admin.describe_user_scram_credentials()
    assert {*everybody[user]} == infos
    assert {"alice", "bob", f"{user}-other"} <= set(everybody)

    gone = UserScramCredentialDeletion(user, SHA_256)
    changed = UserScramCredentialUpsertion(f"{user}-other", SHA_256, "changed")
    secure_admin.alter_user_scram_credentials([changed], deletions=[gone]).raise_first()
    eventually(lambda: described(secure_admin, user) == {ScramCredentialInfo(SHA_512, 16_384)})
    eventually(lambda: not may_log_in(secure_kafka, "SCRAM-SHA-256", user, password))
    eventually(lambda: may_log_in(secure_kafka, "SCRAM-SHA-256", f"{user}-other", "changed"))


def described(admin: Admin, user: str) -> set[ScramCredentialInfo]:
    """Return what a user has; nothing if no broker knows of it yet."""
    result = admin.describe_user_scram_credentials([user])
    return set(result.succeeded.get(user, ())) if result.errors is not None else set()


def test_what_is_not_there_is_said_by_user(secure_admin: Admin, user: str) -> None:
    result = secure_admin.describe_user_scram_credentials([user, "alice"])
    assert isinstance(result.errors[user], ResourceNotFound)
    assert {one.mechanism for one in result["alice"]} == {SHA_256, SHA_512}
    gone = [UserScramCredentialDeletion(user, one) for one in (SHA_256, SHA_512)]
    new = UserScramCredentialUpsertion(f"{user}-new", SHA_256, "password")
    altered = secure_admin.alter_user_scram_credentials([new], deletions=gone)
    assert list(altered.succeeded) == [f"{user}-new"]
    assert isinstance(altered.errors[user], ResourceNotFound)
    assert secure_admin.alter_user_scram_credentials([]).errors == {}


def test_a_loop_sets_passwords_and_describes_all(
    secure_admin: Admin, secure_kafka: SecureKafka, user: str
) -> None:
    new = UserScramCredentialUpsertion(user, SHA_512, "hunter2", iterations=16_384)
    gone = UserScramCredentialDeletion(user, SHA_512)

    async def set_password() -> None:
        async with aio.Admin(bootstrap_servers=secure_kafka.bootstrap) as admin:
            assert (await admin.alter_user_scram_credentials([new])).errors == {}

    async def delete_password() -> None:
        async with aio.Admin(bootstrap_servers=secure_kafka.bootstrap) as admin:
            everybody = await admin.describe_user_scram_credentials()
            assert everybody[user] == (ScramCredentialInfo(SHA_512, 16_384),)
            (await admin.alter_user_scram_credentials(deletions=[gone])).raise_first()

    asyncio.run(set_password())
    eventually(lambda: described(secure_admin, user) != set())
    asyncio.run(delete_password())


def test_who_may_not_is_told_what_is_missing(secure_kafka: SecureKafka, user: str) -> None:
    new = UserScramCredentialUpsertion(user, SHA_256, "hunter2")
    with Admin(secure_kafka.client_properties("SASL_SSL", "PLAIN", user="bob")) as bob:
        error: KafkaError = bob.alter_user_scram_credentials([new]).errors[user]
        assert isinstance(error, ClusterAuthorizationFailed)
        assert "needs ALTER on the cluster" in str(error)
        assert "hunter2" not in str(error)
        with pytest.raises(ClusterAuthorizationFailed, match="needs DESCRIBE on the cluster"):
            bob.describe_user_scram_credentials()
