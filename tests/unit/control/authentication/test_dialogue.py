"""The dialogue of a login: rounds, work, refusals, and what a hostile broker may say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_fast.control.authentication.dialogue import (
    MAX_LIFETIME,
    MAX_ROUNDS,
    Accepted,
    Authentication,
)
from kafka_fast.control.authentication.mechanism import Conversation, Work
from kafka_fast.errors import (
    AuthenticationError,
    ErrorCode,
    KafkaConnectionError,
    KafkaTimeoutError,
    MalformedError,
)
from kafka_fast.instants import NEVER
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersion
from tests.unit.control.authentication.scripted import (
    AUTHENTICATE,
    HANDSHAKE,
    SASL_APIS,
    Scripted,
    accept,
    read,
    refuse,
    say_once,
    shake,
    versions,
    work_then_say,
)


def dialogue(
    conversation: Callable[[str], Conversation] = say_once, *apis: ApiVersion
) -> Authentication:
    return Authentication(Scripted(conversation), "b", versions(*apis), "me")


def test_one_round() -> None:
    login = dialogue()
    request = login.first_step()
    assert login.awaited == "SaslHandshake v1"
    request = login.handle_frame(shake(request))
    assert login.awaited == "SaslAuthenticate v2"
    body, version = read(request)
    assert (body.auth_bytes, version) == (b"\0user\0password", 2)
    assert login.handle_frame(accept(request)) == Accepted(NEVER)


def test_the_host_is_the_brokers_and_rounds_go_on_until_the_mechanism_has_said_all() -> None:
    heard = []

    def converse(host: str) -> Conversation:
        heard.append(host)
        heard.append((yield b"first"))
        heard.append((yield b""))

    login = dialogue(converse)
    request = login.handle_frame(shake(login.first_step()))
    request = login.handle_frame(accept(request, b"challenge"))
    assert read(request)[0].auth_bytes == b"", "an empty answer is an answer"
    assert login.handle_frame(accept(request, b"final", 3_600_000)) == Accepted(3600.0)
    assert heard == ["b", b"challenge", b"final"]


@pytest.mark.parametrize(
    ("told", "lifetime"), [(-5, NEVER), (0, NEVER), (1, 0.001), (2**63 - 1, MAX_LIFETIME)]
)
def test_the_lifetime_of_a_session(told: int, lifetime: float) -> None:
    login = dialogue()
    request = login.handle_frame(shake(login.first_step()))
    assert login.handle_frame(accept(request, lifetime_ms=told)) == Accepted(lifetime)


def test_an_old_broker_tells_no_lifetime() -> None:
    old = ApiVersion(api_key=AUTHENTICATE, min_version=0, max_version=0)
    login = dialogue(say_once, SASL_APIS[0], old)
    request = login.handle_frame(shake(login.first_step()))
    assert read(request)[1] == 0
    assert login.handle_frame(accept(request)) == Accepted(NEVER)


def test_work_is_done_between_rounds() -> None:
    login = dialogue(work_then_say)
    work = login.handle_frame(shake(login.first_step()))
    assert isinstance(work, Work)
    assert login.work is work
    assert work.what == "a token is asked of b"
    request = login.handle_result(work.function())
    assert login.work is None
    assert read(request)[0].auth_bytes == b"token"
    assert isinstance(login.handle_frame(accept(request)), Accepted)


def test_a_renewals_work_is_done_before_it_says_anything() -> None:
    login = dialogue(work_then_say)
    work = login.first_step(is_renewal=True)
    assert isinstance(work, Work)
    assert login.awaited == ""
    request = login.handle_result(work.function())
    assert login.awaited == "SaslHandshake v1"
    request = login.handle_frame(shake(request))
    assert read(request)[0].auth_bytes == b"token"
    assert isinstance(login.handle_frame(accept(request)), Accepted)


def test_a_renewal_without_work_begins_with_saslhandshake() -> None:
    login = dialogue()
    request = login.handle_frame(shake(login.first_step(is_renewal=True)))
    assert read(request)[0].auth_bytes == b"\0user\0password"
    assert isinstance(login.handle_frame(accept(request)), Accepted)


@pytest.mark.parametrize("raised", [ValueError("no such user"), SystemExit("no such user")])
def test_what_a_users_function_raises_is_the_cause(raised: BaseException) -> None:
    login = dialogue(work_then_say)
    login.handle_frame(shake(login.first_step()))
    name = type(raised).__name__
    with pytest.raises(
        AuthenticationError, match=f"^gets no login by SCRIPT: {name}: no such user$"
    ) as caught:
        login.handle_result(raised)
    assert caught.value.__cause__ is raised


def test_a_mechanism_may_say_that_the_next_try_can_succeed() -> None:
    login = dialogue(work_then_say)
    login.handle_frame(shake(login.first_step()))
    with pytest.raises(KafkaTimeoutError, match=r"^the identity provider"):
        login.handle_result(KafkaTimeoutError("the identity provider did not answer"))


def test_a_mechanism_may_refuse_the_broker() -> None:
    def converse(host: str) -> Conversation:
        yield b"hello"
        raise AuthenticationError("does not know the password that it checks")

    login = dialogue(converse)
    request = login.handle_frame(shake(login.first_step()))
    with pytest.raises(AuthenticationError, match=r"^does not know the password"):
        login.handle_frame(accept(request))


def test_a_mechanism_that_is_not_offered_is_named_beside_those_that_are() -> None:
    login = dialogue()
    request = login.first_step()
    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    with pytest.raises(AuthenticationError) as caught:
        login.handle_frame(shake(request, code, ("SCRAM-SHA-256", "EVIL\r\n\x1b[31m")))
    assert str(caught.value) == (
        r"does not offer the SASL mechanism SCRIPT, but SCRAM-SHA-256, EVIL\r\n\x1b[31m"
    )


def test_a_listener_without_sasl() -> None:
    login = dialogue()
    request = login.first_step()
    with pytest.raises(AuthenticationError, match="a listener without SASL"):
        login.handle_frame(shake(request, ErrorCode.ILLEGAL_SASL_STATE))


def test_the_brokers_text_is_in_the_refusal_and_does_no_harm() -> None:
    login = dialogue()
    request = login.handle_frame(shake(login.first_step()))
    with pytest.raises(AuthenticationError) as caught:
        login.handle_frame(refuse(request, "Invalid\nusername or password"))
    assert str(caught.value) == (r"refuses the login by SCRIPT: Invalid\nusername or password")


def test_the_mechanism_hears_of_a_refusal_and_may_know_more_of_it() -> None:
    heard: list[AuthenticationError] = []

    def converse(host: str) -> Conversation:
        try:
            yield b"token"
        except AuthenticationError as error:
            heard.append(error)
            raise AuthenticationError("refused the token: it has expired") from None

    login = dialogue(converse)
    request = login.handle_frame(shake(login.first_step()))
    with pytest.raises(AuthenticationError, match="it has expired"):
        login.handle_frame(refuse(request, "no"))
    assert str(heard[0]) == "refuses the login by SCRIPT: no"


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_mechanism_cannot_turn_a_refusal_into_a_login(goes_on: bool) -> None:
    def converse(host: str) -> Conversation:
        try:
            yield b"token"
        except AuthenticationError:
            if goes_on:
                yield b"please"

    login = dialogue(converse)
    request = login.handle_frame(shake(login.first_step()))
    with pytest.raises(AuthenticationError, match="refuses the login by SCRIPT: no"):
        login.handle_frame(refuse(request, "no"))


def test_other_errors_of_a_login_are_named() -> None:
    for code, kind in [
        (ErrorCode.ILLEGAL_SASL_STATE, AuthenticationError),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, KafkaConnectionError),
    ]:
        login = dialogue()
        request = login.handle_frame(shake(login.first_step()))
        with pytest.raises(kind, match=f"{code.name} \\({int(code)}\\)") as caught:
            login.handle_frame(refuse(request, None, code))
        assert type(caught.value) is kind


@pytest.mark.parametrize(
    "apis",
    [
        [ApiVersion(api_key=HANDSHAKE, min_version=0, max_version=0), SASL_APIS[1]],
        [SASL_APIS[0]],
        [SASL_APIS[1]],
    ],
)
def test_brokers_before_kafka_1_0_are_refused_by_name(apis: list[ApiVersion]) -> None:
    with pytest.raises(AuthenticationError, match=r"logs in to Kafka 1\.0 and later"):
        dialogue(say_once, *apis).first_step()


def test_a_dialogue_without_end_is_cut_off() -> None:
    def converse(host: str) -> Conversation:
        while True:
            yield b"more"

    login = dialogue(converse)
    request = login.handle_frame(shake(login.first_step()))
    for _ in range(MAX_ROUNDS - 1):
        request = login.handle_frame(accept(request, b"more"))
    with pytest.raises(AuthenticationError, match=f"after {MAX_ROUNDS} rounds"):
        login.handle_frame(accept(request, b"more"))


def test_every_answer_that_is_cut_short_is_refused() -> None:
    first = dialogue()
    whole = shake(first.first_step())
    for size in range(4, len(whole)):
        login = dialogue()
        login.first_step()
        with pytest.raises(MalformedError, match=r"^answered SaslHandshake v1 with "):
            login.handle_frame(whole[:size])
    whole = accept(first.handle_frame(whole), b"bytes")
    for size in range(4, len(whole)):
        login = dialogue()
        login.handle_frame(shake(login.first_step()))
        with pytest.raises(MalformedError, match=r"^answered SaslAuthenticate v2 with "):
            login.handle_frame(whole[:size])


def test_a_dialogue_that_is_given_up_ends_the_conversation() -> None:
    ended = []

    def converse(host: str) -> Conversation:
        try:
            yield b"hello"
        finally:
            ended.append(host)

    login = dialogue(converse)
    login.close()
    login.first_step()
    login = dialogue(converse)
    login.handle_frame(shake(login.first_step()))
    login.close()
    assert ended == ["b"]
