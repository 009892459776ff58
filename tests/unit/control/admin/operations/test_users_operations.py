"""SCRAM credentials: what is asked for, what is made of the answers, and what is never shown."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from kafka_fast.control.admin.operation import ONLY
from kafka_fast.control.admin.operations.users import (
    AlterUserScramCredentials,
    DescribeAllScramCredentials,
    DescribeUserScramCredentials,
    SaltedAlteration,
    rounds_of,
    salted_alteration,
)
from kafka_fast.control.admin.types.users import (
    ScramCredentialInfo,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
    UserScramMechanism,
)
from kafka_fast.errors import (
    ErrorCode,
    KafkaConnectionError,
    ResourceNotFound,
    UsageError,
)
from kafka_fast.protocol.apis.security.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kafka_fast.protocol.apis.security.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kafka_fast.secret import Secret
from tests.unit.control.admin.operations.rounds import (
    ScriptedAdmin,
    meanings,
    refusals,
    sent,
)

SHA_256, SHA_512 = UserScramMechanism.SCRAM_SHA_256, UserScramMechanism.SCRAM_SHA_512
SALT = b"0123456789abcdef"


def upsert(user: str = "alice", **changes: Any) -> UserScramCredentialUpsertion:
    fields: dict[str, Any] = {"mechanism": SHA_256, "password": "hunter2", **changes}
    return UserScramCredentialUpsertion(user, **fields)


def salted(alteration: Any) -> SaltedAlteration:
    return salted_alteration(alteration, lambda count: SALT[:count])


def told(user: str, code: int = 0, said: str | None = None, *infos: CredentialInfo) -> Any:
    return DescribeUserScramCredentialsResult(
        user=user, error_code=code, error_message=said, credential_infos=list(infos)
    )


# ---- describe ----


def test_users_are_asked_for_by_name() -> None:
    request = sent(DescribeUserScramCredentials(["alice", "bob", "alice"]), 0)
    assert [one.name for one in request.users] == ["alice", "bob"]
    assert sent(DescribeAllScramCredentials(), 0).users == []


def test_credentials_come_by_user() -> None:
    answer = DescribeUserScramCredentialsResponse(
        results=[
            told(
                "bob",
                0,
                None,
                CredentialInfo(mechanism=2, iterations=8192),
                CredentialInfo(mechanism=9, iterations=1),
            ),
            told("alice", ErrorCode.RESOURCE_NOT_FOUND, "no credential"),
        ]
    )
    bobs = (
        ScramCredentialInfo(SHA_512, 8192),
        ScramCredentialInfo(UserScramMechanism.UNKNOWN, 1),
    )
    outcome = meanings(DescribeUserScramCredentials(["alice", "bob"]), answer, 0)
    assert outcome["bob"] == bobs
    text = str(outcome["alice"].error)
    assert text.endswith("DescribeUserScramCredentials of user 'alice': no credential")

    everybody = meanings(DescribeAllScramCredentials(), answer, 0)[ONLY]
    assert everybody.keys == ["alice", "bob"]
    assert everybody.values == {"bob": bobs}
    assert isinstance(everybody.errors["alice"], ResourceNotFound)
    assert "of user 'alice': no credential" in str(everybody.errors["alice"])


def test_an_error_of_the_request_is_one_of_each_user() -> None:
    answer = DescribeUserScramCredentialsResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="no"
    )
    texts = refusals(DescribeUserScramCredentials(["alice", "bob"]), answer, 0)
    assert texts.keys() == {"alice", "bob"}
    assert texts["bob"].endswith("no (needs DESCRIBE on the cluster)")
    assert refusals(DescribeAllScramCredentials(), answer, 0).keys() == {ONLY}


# ---- alter ----


def test_each_round_has_a_user_once() -> None:
    gone = UserScramCredentialDeletion("alice", SHA_512)
    alices, bobs = upsert(), upsert("bob")
    assert rounds_of([alices, bobs], [gone]) == [[alices, bobs], [gone]]
    assert rounds_of([], [gone]) == [[gone]]
    assert rounds_of([], []) == []


@pytest.mark.parametrize(
    ("alteration", "text"),
    [
        (upsert(iterations=4095), "user 'alice' cannot have 4095 iterations: brokers take 4096"),
        (upsert(iterations=16_385), "to 16384"),
        (upsert(iterations="5000"), "'5000' iterations"),
        (upsert(""), "not empty, not ''"),
        (upsert(mechanism=UserScramMechanism.UNKNOWN), "cannot be <UserScramMechanism.UNKNOWN: 0>"),
        (upsert(mechanism=1), "cannot be 1"),
        (upsert(password=b"hunter2"), "is a text, not bytes"),
        (UserScramCredentialDeletion("", SHA_256), "not empty"),
        (("alice", "hunter2"), "tuple is no upsertion"),
    ],
)
def test_what_brokers_would_refuse_is_refused(alteration: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text) as caught:
        rounds_of([alteration], [])
    assert "hunter2" not in str(caught.value)


def test_one_credential_is_altered_once() -> None:
    with pytest.raises(UsageError, match="SCRAM-SHA-256 of user 'alice' is named twice"):
        rounds_of([upsert()], [UserScramCredentialDeletion("alice", SHA_256)])


@pytest.mark.parametrize(("mechanism", "name"), [(SHA_256, "sha256"), (SHA_512, "sha512")])
def test_only_a_hash_is_sent(mechanism: UserScramMechanism, name: str) -> None:
    for password in ("hunter2", Secret("hunter2"), Secret(lambda: "hunter2")):
        alterations = [
            salted(upsert(mechanism=mechanism, password=password, iterations=5000)),
            salted(UserScramCredentialDeletion("bob", mechanism)),
        ]
        request = sent(AlterUserScramCredentials(alterations), 0)
        (one,) = request.upsertions
        assert (one.name, one.mechanism, one.iterations, one.salt) == (
            "alice",
            mechanism,
            5000,
            SALT,
        )
        assert one.salted_password == hashlib.pbkdf2_hmac(name, b"hunter2", SALT, 5000)
        assert [(two.name, two.mechanism) for two in request.deletions] == [("bob", mechanism)]


def failing(error: BaseException) -> Callable[[], str]:
    def fail() -> str:
        raise error

    return fail


@pytest.mark.parametrize(
    ("password", "kind", "text"),
    [
        ("", UsageError, "the password of user 'alice' is empty"),
        ("\ud800", UsageError, "user 'alice' needs a password that can be written in UTF-8"),
        (Secret(failing(KeyError("x"))), UsageError, "user 'alice' needs a password, and the"),
        (Secret(failing(OSError("down"))), KafkaConnectionError, "user 'alice' needs a password"),
    ],
)
def test_a_password_that_cannot_be_had(password: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        salted(upsert(password=password))


def test_passwords_are_not_shown_and_not_pickled() -> None:
    for password in ("hunter2", Secret("hunter2")):
        upsertion = upsert(password=password)
        assert "hunter2" not in repr(upsertion)
        assert "password=****, iterations=4096" in repr(upsertion)
        alteration = salted(upsertion)
        shown = repr(alteration) + repr(sent(AlterUserScramCredentials([alteration]), 0))
        assert repr(alteration.salted_password) not in shown
        assert repr(SALT) not in shown
        for secret in (upsertion, alteration):
            with pytest.raises(TypeError, match="not pickled"):
                pickle.dumps(secret)


def test_alterations_are_answered_by_user() -> None:
    result = AlterUserScramCredentialsResult
    answer = AlterUserScramCredentialsResponse(
        results=[
            result(user="alice"),
            result(user="bob", error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message="none"),
            result(user="somebody else"),
        ]
    )
    alterations = [
        salted(upsert()),
        salted(UserScramCredentialDeletion("bob", SHA_512)),
    ]
    outcome = meanings(AlterUserScramCredentials(alterations), answer, 0)
    assert outcome["alice"] is None
    text = str(outcome["bob"].error)
    assert text.endswith("AlterUserScramCredentials of user 'bob': none")


def test_a_deletion_after_a_lost_answer_may_have_been_the_first_tries_work() -> None:
    def answer(request: Any, key: Any) -> Any:
        tries = len([1 for one, _ in admin.machine.asked if isinstance(one, type(request))])
        if tries == 1:
            return None
        result = AlterUserScramCredentialsResult(
            user="bob", error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message="none"
        )
        return AlterUserScramCredentialsResponse(results=[result])

    admin = ScriptedAdmin({AlterUserScramCredentialsRequest: answer})
    alterations = [salted(UserScramCredentialDeletion("bob", SHA_512))]
    results = admin.start(AlterUserScramCredentials(alterations))
    admin.lose_answer()
    admin.machine.run(5.0)
    assert "an earlier try, of which no answer came" in str(results[0].errors["bob"])
