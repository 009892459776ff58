from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from kafka_fast.config.security._security_settings import SaslSettings
from kafka_fast.control.authentication.oauthbearer import Token
from kafka_fast.errors import AuthenticationError, KafkaConnectionError
from kafka_fast.instants import LONG_AGO
from kafka_fast.net.login import tokens
from kafka_fast.net.login.tokens import TokenCache, World, refresh_time
from kafka_fast.secret import Secret

NOW = 1_800_000_000.0


def settings(**named: Any) -> SaslSettings:
    return SaslSettings(mechanism="OAUTHBEARER", **named)


def token(life: float | None, issued_at: float | None = None) -> Token:
    return Token(Secret("value"), None if life is None else NOW + life, issued_at)


@pytest.mark.parametrize(
    ("life", "issued", "chance", "wanted"),
    [
        (3600, None, 0.0, 2880),  # 80 %
        (3600, None, 1.0, 3060),  # 85 %
        (3600, 0, 0.0, 2880),
        (3600, -3600, 0.0, 2160),  # 80 % of two hours, the first of which is over
        (1000, None, 0.0, 700),  # the buffer of 300 s before the end
        (361, None, 0.0, 61),  # both limits just fit
        (360, None, 0.0, 288),  # they do not, and hold no more
        (10, None, 0.5, 8.25),
        (3600, -36000, 0.0, 60),  # nearly over, as the token says: not before the shortest period
    ],
)
def test_when_a_token_is_replaced(
    life: float, issued: float | None, chance: float, wanted: float
) -> None:
    issued_at = None if issued is None else NOW + issued
    due = refresh_time(token(life, issued_at), NOW, settings(), chance)
    assert due - NOW == pytest.approx(wanted)


def test_a_token_without_an_end_is_replaced_at_once() -> None:
    assert refresh_time(token(None), NOW, settings(), 0.0) == LONG_AGO


class Provider:
    """A world with a clock that stands, and tokens that live an hour."""

    def __init__(self, **named: Any) -> None:
        self.now = NOW
        self.slept: list[float] = []
        self.outcomes: list[Token | Exception] = []
        self.count = 0
        world = World(lambda: self.now, self.slept.append, lambda: 0.5)
        self.cache = TokenCache(self.fetch, "a token is asked of a test", settings(**named), world)

    def fetch(self) -> Token:
        self.count += 1
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome or Token(Secret(f"token {self.count}"), self.now + 3600)

    def value(self) -> str:
        return self.cache.current().value.reveal()


def test_a_token_is_kept_for_most_of_its_life() -> None:
    provider = Provider()
    assert provider.value() == "token 1"
    provider.now += 2900
    assert provider.value() == "token 1"
    provider.now += 100
    assert provider.value() == "token 2"
    assert provider.value() == "token 2"
    assert provider.count == 2


def test_a_token_without_an_end_is_fetched_each_time() -> None:
    provider = Provider()
    provider.outcomes = [Token(Secret("a")), Token(Secret("b"))]
    assert [provider.value(), provider.value()] == ["a", "b"]


def test_a_token_that_a_broker_refused_is_not_used_again() -> None:
    provider = Provider()
    first = provider.cache.current()
    provider.cache.handle_refused(first)
    second = provider.cache.current()
    assert second is not first
    provider.cache.handle_refused(first)  # another link says it late
    assert provider.cache.current() is second


def test_a_token_that_is_good_is_kept_if_the_next_cannot_be_fetched(
    caplog: pytest.LogCaptureFixture,
) -> None:
    provider = Provider()
    first = provider.cache.current()
    provider.now += 3000
    provider.outcomes = [AuthenticationError("needs a token, and …"), KafkaConnectionError("again")]
    assert provider.cache.current() is first
    assert "a token is asked of a test: failed; the old token is good for another 600 s" in (
        caplog.text
    )
    assert provider.cache.current() is first  # not asked before the backoff
    assert provider.count == 2
    provider.now += 0.1
    assert provider.cache.current() is first
    provider.now += 0.1
    assert provider.cache.current() is first
    assert provider.count == 3
    provider.now += 0.2
    assert provider.value() == "token 4"
    assert provider.slept == []


def test_an_old_token_is_an_error_if_the_next_cannot_be_fetched() -> None:
    provider = Provider()
    provider.cache.current()
    provider.now += 3600
    provider.outcomes = [AuthenticationError("needs a token, and the provider says no")]
    with pytest.raises(AuthenticationError, match="says no"):
        provider.cache.current()


def test_a_failure_that_may_pass_is_tried_again_for_a_while() -> None:
    provider = Provider(retry_backoff_ms=100, retry_backoff_max_ms=1000)
    provider.outcomes = [KafkaConnectionError("away") for _ in range(3)]
    assert provider.value() == "token 4"
    assert provider.slept == pytest.approx([0.1, 0.2, 0.4])
    provider.cache.handle_refused(provider.cache.current())
    provider.outcomes = [KafkaConnectionError("away") for _ in range(4)]
    with pytest.raises(KafkaConnectionError, match="away"):
        provider.cache.current()
    assert provider.count == 8 and len(provider.slept) == 6


def test_a_refusal_is_not_tried_again() -> None:
    provider = Provider()
    provider.outcomes = [AuthenticationError("invalid_client")]
    with pytest.raises(AuthenticationError, match="invalid_client"):
        provider.cache.current()
    assert provider.count == 1 and provider.slept == []


def test_a_new_token_that_has_expired_is_an_error() -> None:
    provider = Provider()
    provider.outcomes = [token(-90)]
    with pytest.raises(AuthenticationError, match="the new one expired 90 s ago"):
        provider.cache.current()


class Slow(Provider):
    """A provider that answers when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = threading.Event()
        self.may_answer = threading.Event()

    def fetch(self) -> Token:
        self.is_asked.set()
        assert self.may_answer.wait(30)
        return super().fetch()


def ask_at_once(provider: Slow, count: int) -> list[object]:
    """Have several links ask while the provider is silent; return what each gets."""
    outcomes: list[object] = []
    waits = threading.Semaphore(0)
    cache = provider.cache
    result_of = cache._result_of

    def noted(others: Any) -> Token:
        waits.release()
        return result_of(others)

    cache._result_of = noted  # type: ignore[method-assign]

    def ask() -> None:
        try:
            outcomes.append(cache.current())
        except KafkaConnectionError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()
    for _ in range(count - 1):
        assert waits.acquire(timeout=30)
    provider.may_answer.set()
    for thread in threads:
        thread.join(30)
    assert len(outcomes) == count
    return outcomes


def test_links_that_ask_at_once_get_one_token() -> None:
    provider = Slow()
    received = ask_at_once(provider, 5)
    assert provider.count == 1 and len({id(one) for one in received}) == 1


def test_links_that_ask_at_once_get_one_failure() -> None:
    provider = Slow()
    provider.outcomes = [AuthenticationError("needs a token, and the provider says no")]
    errors = ask_at_once(provider, 5)
    assert provider.count == 1
    assert {str(error) for error in errors} == {"needs a token, and the provider says no"}
    assert len({id(error) for error in errors}) == 5  # each raises its own
    assert provider.value() == "token 2"


def test_while_the_next_token_is_fetched_others_use_the_old_one() -> None:
    provider = Slow()
    provider.may_answer.set()
    first = provider.cache.current()
    provider.now += 3000
    provider.may_answer.clear()
    provider.is_asked.clear()
    received: list[Token] = []
    thread = threading.Thread(target=lambda: received.append(provider.cache.current()))
    thread.start()
    assert provider.is_asked.wait(30)
    assert provider.cache.current() is first
    provider.may_answer.set()
    thread.join(30)
    assert received[0] is not first and provider.cache.current() is received[0]


def test_a_fetch_that_hangs_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "WORK_TIMEOUT", 0.05)
    provider = Slow()
    thread = threading.Thread(target=provider.cache.current)
    thread.start()
    assert provider.is_asked.wait(30)
    with pytest.raises(KafkaConnectionError, match=r"^needs a token: a token is asked of a test, "):
        provider.cache.current()
    provider.may_answer.set()
    thread.join(30)


def test_a_fetch_follows_one_that_hangs() -> None:
    """Who hung may have hung only once; when that ends late, nobody is in its way."""
    provider = Slow()
    thread = threading.Thread(target=provider.cache.current)
    thread.start()
    assert provider.is_asked.wait(30)
    provider.now += tokens.WORK_TIMEOUT + 1
    provider.cache._fetch = lambda: token(3600)
    second = provider.cache.current()
    assert provider.count == 0, "the first one hangs still"
    assert provider.cache.current() is second
    provider.may_answer.set()
    thread.join(30)
    assert provider.count == 1


def test_nothing_of_a_token_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    Provider().value()
    assert "a token is asked of a test: done" in caplog.text
    assert "token 1" not in caplog.text
