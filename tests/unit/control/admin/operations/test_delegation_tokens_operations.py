"""Delegation tokens: what is asked for, what is made of the answers, and what is never shown."""

from __future__ import annotations

import pickle
from base64 import b64encode
from typing import Any

import pytest

from kafka_fast.control.admin.operation import ONLY
from kafka_fast.control.admin.operations.delegation_tokens import (
    CreateDelegationToken,
    DescribeDelegationToken,
    ExpireDelegationToken,
    RenewDelegationToken,
)
from kafka_fast.errors import (
    ErrorCode,
    KafkaConnectionError,
    UnsupportedVersionError,
    UsageError,
)
from kafka_fast.protocol.apis.tokens.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kafka_fast.protocol.apis.tokens.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from kafka_fast.protocol.apis.tokens.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kafka_fast.protocol.apis.tokens.renew_delegation_token import RenewDelegationTokenResponse
from kafka_fast.secret import Secret
from tests.unit.control.admin.operations.rounds import (
    ScriptedAdmin,
    all_versions_of,
    meanings,
    refusals,
    sent,
)

HMAC = bytes(range(64))
TEXT = b64encode(HMAC).decode()


def create(*renewers: str, **changes: Any) -> CreateDelegationToken:
    fields: dict[str, Any] = {"max_lifetime_ms": None, "owner": None, **changes}
    return CreateDelegationToken(renewers, **fields)


def created(version: int = 3) -> CreateDelegationTokenResponse:
    answer = CreateDelegationTokenResponse(
        principal_type="User",
        principal_name="alice",
        issue_timestamp_ms=1,
        expiry_timestamp_ms=2,
        max_timestamp_ms=3,
        token_id="id",
        hmac=HMAC,
    )
    if version >= 3:
        answer.token_requester_principal_type = "User"
        answer.token_requester_principal_name = "admin"
    return answer


# ---- what is asked for ----


@pytest.mark.parametrize("version", all_versions_of(CreateDelegationToken))
def test_a_token_has_renewers_and_a_lifetime(version: int) -> None:
    operation = create("User:bob", "User:CN=a:b", "User:bob", max_lifetime_ms=5000)
    request = sent(operation, version)
    assert [(one.principal_type, one.principal_name) for one in request.renewers] == [
        ("User", "bob"),
        ("User", "CN=a:b"),
    ]
    assert request.max_lifetime_ms == 5000
    assert sent(create(), version).max_lifetime_ms == -1
    assert operation.unsupported(ONLY, version) is None


def test_another_owner_needs_a_broker_that_knows_owners() -> None:
    operation = create(owner="User:bob")
    request = sent(operation, 3)
    assert (request.owner_principal_type, request.owner_principal_name) == ("User", "bob")
    request = sent(create(), 3)
    assert (request.owner_principal_type, request.owner_principal_name) == (None, None)
    error = operation.unsupported(ONLY, 2)
    assert isinstance(error, UnsupportedVersionError)
    assert "Kafka 3.3" in str(error)


@pytest.mark.parametrize("version", all_versions_of(RenewDelegationToken))
def test_periods_are_optional(version: int) -> None:
    for hmac in (TEXT, Secret(TEXT)):
        renewal = sent(RenewDelegationToken(hmac, renew_period_ms=7), version)
        assert (renewal.hmac, renewal.renew_period_ms) == (HMAC, 7)
        renewal = sent(RenewDelegationToken(hmac, renew_period_ms=None), version)
        assert renewal.renew_period_ms == -1
        end = sent(ExpireDelegationToken(hmac, expiry_period_ms=7), version)
        assert (end.hmac, end.expiry_time_period_ms) == (HMAC, 7)
        end = sent(ExpireDelegationToken(hmac, expiry_period_ms=None), version)
        assert end.expiry_time_period_ms == -1


@pytest.mark.parametrize("version", all_versions_of(DescribeDelegationToken))
def test_owners_are_named_or_all(version: int) -> None:
    owners = sent(DescribeDelegationToken(["User:bob"]), version).owners
    assert [(one.principal_type, one.principal_name) for one in owners] == [("User", "bob")]
    assert sent(DescribeDelegationToken(None), version).owners is None
    assert sent(DescribeDelegationToken([]), version).owners == []


@pytest.mark.parametrize("principal", ["bob", ":bob", "User:", "", None, b"User:bob"])
def test_what_is_no_principal_is_refused(principal: Any) -> None:
    with pytest.raises(UsageError, match="a principal is a text"):
        create(principal)
    with pytest.raises(UsageError, match="a principal is a text"):
        DescribeDelegationToken([principal])
    if principal is not None:
        with pytest.raises(UsageError, match="a principal is a text"):
            create(owner=principal)


@pytest.mark.parametrize("hmac", ["hunter2!", "", Secret("hunter2!"), None, b"\0"])
def test_what_is_no_hmac_is_refused_and_not_shown(hmac: Any) -> None:
    for make in (
        lambda: RenewDelegationToken(hmac, renew_period_ms=None),
        lambda: ExpireDelegationToken(hmac, expiry_period_ms=None),
    ):
        with pytest.raises(UsageError, match="the hmac of a token is base64") as caught:
            make()
        assert "hunter2" not in str(caught.value)


def test_periods_are_milliseconds() -> None:
    with pytest.raises(UsageError, match="renew_period_ms is a number of milliseconds, not -1"):
        RenewDelegationToken(TEXT, renew_period_ms=-1)
    with pytest.raises(UsageError, match="expiry_period_ms"):
        ExpireDelegationToken(TEXT, expiry_period_ms=1.5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="max_lifetime_ms"):
        create(max_lifetime_ms="1")


# ---- what is made of answers ----


@pytest.mark.parametrize("version", all_versions_of(CreateDelegationToken))
def test_a_created_token_is_not_shown(version: int) -> None:
    token = meanings(create("User:bob"), created(version), version)[ONLY]
    assert (token.token_id, token.hmac.reveal(), token.owner) == ("id", TEXT, "User:alice")
    assert token.requester == ("User:admin" if version >= 3 else None)
    assert token.renewers == ("User:bob",)
    assert (token.issue_timestamp, token.expiry_timestamp, token.max_timestamp) == (1, 2, 3)
    assert TEXT not in repr(token)
    assert "hmac=****" in repr(token)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(token)


@pytest.mark.parametrize("version", all_versions_of(DescribeDelegationToken))
def test_tokens_are_described(version: int) -> None:
    described = DescribedDelegationToken(
        principal_type="User",
        principal_name="alice",
        issue_timestamp=1,
        expiry_timestamp=2,
        max_timestamp=3,
        token_id="id",
        hmac=HMAC,
        renewers=[DescribedDelegationTokenRenewer(principal_type="User", principal_name="bob")],
    )
    if version >= 3:
        described.token_requester_principal_type = "User"
        described.token_requester_principal_name = "admin"
    answer = DescribeDelegationTokenResponse(tokens=[described])
    (token,) = meanings(DescribeDelegationToken(None), answer, version)[ONLY]
    (made,) = meanings(create("User:bob"), created(version), version).values()
    assert token.hmac.is_same(made.hmac)
    assert repr(token) == repr(made)
    assert meanings(DescribeDelegationToken([]), DescribeDelegationTokenResponse(), version) == {
        ONLY: []
    }


@pytest.mark.parametrize("version", all_versions_of(RenewDelegationToken))
def test_the_new_expiry_is_told(version: int) -> None:
    renewal = RenewDelegationToken(TEXT, renew_period_ms=None)
    answer = RenewDelegationTokenResponse(expiry_timestamp_ms=1234)
    assert meanings(renewal, answer, version) == {ONLY: 1234}
    end = ExpireDelegationToken(TEXT, expiry_period_ms=None)
    ended = ExpireDelegationTokenResponse(expiry_timestamp_ms=1234)
    assert meanings(end, ended, version) == {ONLY: 1234}


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "have no delegation.token.secret.key"),
        (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, "logs in by SASL or with a certificate"),
        (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "there is no such token"),
        (ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, "(needs "),
        (ErrorCode.REQUEST_TIMED_OUT, ""),
    ],
)
def test_a_refusal_says_what_is_missing(code: ErrorCode, text: str) -> None:
    operation = create()
    answer = CreateDelegationTokenResponse(error_code=code)
    assert text in refusals(operation, answer, 3)[ONLY]
    if code == ErrorCode.REQUEST_TIMED_OUT:
        return
    others: list[tuple[Any, Any]] = [
        (RenewDelegationToken(TEXT, renew_period_ms=None), RenewDelegationTokenResponse),
        (ExpireDelegationToken(TEXT, expiry_period_ms=None), ExpireDelegationTokenResponse),
        (DescribeDelegationToken(None), DescribeDelegationTokenResponse),
    ]
    for other, response in others:
        (refused,) = refusals(other, response(error_code=code), 2).values()
        assert text in refused


# ---- connections that break ----


def test_no_second_token_is_made_after_a_lost_answer() -> None:
    admin = ScriptedAdmin({CreateDelegationTokenRequest: lambda request, key: None})
    results = admin.start(create())
    admin.lose_answer()
    admin.machine.run(5.0)
    error = results[0].errors[ONLY]
    assert isinstance(error, KafkaConnectionError)
    assert "CreateDelegationToken may or may not have been done" in str(error)
    asked = [one for one, _ in admin.machine.asked if isinstance(one, CreateDelegationTokenRequest)]
    assert len(asked) == 1


def test_a_token_that_is_not_there_may_have_been_ended_by_the_first_try() -> None:
    answers = [
        ExpireDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_NOT_FOUND),
        None,
    ]
    admin = ScriptedAdmin({ExpireDelegationTokenRequest: lambda request, key: answers.pop()})
    results = admin.start(ExpireDelegationToken(TEXT, expiry_period_ms=None))
    admin.lose_answer()
    admin.machine.run(5.0)
    assert "an earlier try, of which no answer came" in str(results[0].errors[ONLY])
