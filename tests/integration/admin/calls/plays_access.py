"""Plays of the calls about rules, users, quotas and delegation tokens."""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    ClientQuotaEntity,
    ClientQuotaFilter,
    DelegationToken,
    ResourceType,
    ScramCredentialInfo,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
    UserScramMechanism,
)
from kafka_fast.errors import DelegationTokenNotFound
from tests.integration.admin.calls.stage import Stage, play
from tests.waiting import eventually

HOUR_MS = 3_600_000
SHA_256 = UserScramMechanism.SCRAM_SHA_256


def _new_rule(stage: Stage) -> tuple[AclBinding, AclBindingFilter]:
    """Create a rule, and return it with a filter that matches nothing else."""
    user = f"User:{stage.new_name('user')}"
    rule = AclBinding(ResourceType.TOPIC, stage.new_name("topic"), user, AclOperation.READ)
    stage.admin.create_acls([rule]).raise_first()
    return rule, AclBindingFilter(principal=user)


@play
def create_acls(stage: Stage) -> None:
    rule, of_user = _new_rule(stage)
    eventually(lambda: stage.admin.describe_acls(of_user) == [rule])


@play
def describe_acls(stage: Stage) -> None:
    rule, of_user = _new_rule(stage)
    eventually(lambda: rule in stage.admin.describe_acls())
    assert stage.admin.describe_acls(of_user) == [rule]


@play
def delete_acls(stage: Stage) -> None:
    rule, of_user = _new_rule(stage)
    eventually(lambda: stage.admin.describe_acls(of_user) == [rule])
    deleted = stage.admin.delete_acls([of_user])[of_user]
    assert [one.binding for one in deleted] == [rule]
    eventually(lambda: stage.admin.describe_acls(of_user) == [])


@play
def alter_user_scram_credentials(stage: Stage) -> None:
    user = stage.new_name("user")
    new = UserScramCredentialUpsertion(user, SHA_256, "password")
    stage.admin.alter_user_scram_credentials([new]).raise_first()
    eventually(lambda: user in stage.admin.describe_user_scram_credentials().succeeded)
    gone = UserScramCredentialDeletion(user, SHA_256)
    stage.admin.alter_user_scram_credentials(deletions=[gone]).raise_first()
    eventually(lambda: user not in stage.admin.describe_user_scram_credentials().succeeded)


@play
def describe_user_scram_credentials(stage: Stage) -> None:
    user = stage.new_name("user")
    if stage.has("2.7"):
        new = UserScramCredentialUpsertion(user, SHA_256, "password", 5000)
        stage.admin.alter_user_scram_credentials([new]).raise_first()
        eventually(lambda: user in stage.admin.describe_user_scram_credentials().succeeded)
    told = stage.admin.describe_user_scram_credentials([user])[user]
    assert told == (ScramCredentialInfo(SHA_256, 5000),)


@play
def alter_client_quotas(stage: Stage) -> None:
    entity = ClientQuotaEntity(stage.new_name("user"))
    own = ClientQuotaFilter(user=entity.user)
    stage.admin.alter_client_quotas({entity: {"producer_byte_rate": 1e9}}).raise_first()
    eventually(lambda: entity in stage.admin.describe_client_quotas(own))
    stage.admin.alter_client_quotas({entity: {"producer_byte_rate": None}}).raise_first()
    eventually(lambda: entity not in stage.admin.describe_client_quotas(own))


@play
def describe_client_quotas(stage: Stage) -> None:
    entity = ClientQuotaEntity(client_id=stage.new_name("client"))
    if stage.has("2.6"):
        stage.admin.alter_client_quotas({entity: {"consumer_byte_rate": 1e9}}).raise_first()
    own = ClientQuotaFilter(client_id=entity.client_id)
    told = {entity: {"consumer_byte_rate": 1e9}}
    eventually(lambda: stage.admin.describe_client_quotas(own) == told)


# ---- tokens ----


def _new_token(stage: Stage) -> DelegationToken:
    """Create a token that the brokers know."""
    token = stage.admin.create_delegation_token(["User:bob"], max_lifetime_ms=HOUR_MS)
    eventually(lambda: token.token_id in _token_ids(stage))
    return token


def _token_ids(stage: Stage) -> list[str]:
    return [one.token_id for one in stage.admin.describe_delegation_token(["User:alice"])]


def _once_known(call: Callable[[], int]) -> int:
    """Return what a call says, as soon as the broker that it asks knows the token."""

    def attempt() -> int | None:
        try:
            return call()
        except DelegationTokenNotFound:
            return None

    return eventually(attempt, "the token to be known")


@play
def create_delegation_token(stage: Stage) -> None:
    token = stage.admin.create_delegation_token(["User:bob"], max_lifetime_ms=HOUR_MS)
    assert token.owner == "User:alice"
    assert token.renewers == ("User:bob",)
    assert token.max_timestamp == token.issue_timestamp + HOUR_MS


@play
def describe_delegation_token(stage: Stage) -> None:
    token = _new_token(stage)
    (told,) = (
        one for one in stage.admin.describe_delegation_token() if one.token_id == token.token_id
    )
    assert told.hmac.is_same(token.hmac)


@play
def renew_delegation_token(stage: Stage) -> None:
    token = _new_token(stage)
    expiry = _once_known(
        lambda: stage.admin.renew_delegation_token(token.hmac, renew_period_ms=HOUR_MS // 2)
    )
    assert token.issue_timestamp < expiry <= token.max_timestamp


@play
def expire_delegation_token(stage: Stage) -> None:
    token = _new_token(stage)
    _once_known(lambda: stage.admin.expire_delegation_token(token.hmac))
    eventually(lambda: token.token_id not in _token_ids(stage))
