"""One link's login: when its renewal is due, and when it may begin."""

from __future__ import annotations

import pytest

from kafka_fast.control.authentication.login import Login
from kafka_fast.instants import LONG_AGO, NEVER
from tests.unit.control.authentication.scripted import (
    Scripted,
    accept,
    say_once,
    shake,
    versions,
    work_then_say,
)


def log_in(login: Login, now: float, lifetime_ms: int) -> None:
    """Ask at `now` for the last time, and be accepted 0.3 s later."""
    request = login.handle_frame(shake(login.begin_dialogue(now - 1)), now)
    assert login.handle_frame(accept(request, lifetime_ms=lifetime_ms), now + 0.3) is None


@pytest.mark.parametrize(("chance", "share"), [(0.0, 0.85), (0.5, 0.9), (1.0, 0.95)])
def test_it_is_renewed_before_the_session_ends(chance: float, share: float) -> None:
    login = Login(Scripted(say_once), "b", versions(), "me", lambda: chance)
    assert login.may_begin_at == LONG_AGO
    log_in(login, 100.0, 10_000)
    assert login.renew_at == pytest.approx(100.0 + 10 * share), "from the last request on"
    assert not login.is_under_way
    log_in(login, 200.0, 20_000)
    assert login.renew_at == pytest.approx(200.0 + 20 * share)
    log_in(login, 300.0, 0)
    assert login.renew_at == NEVER


def test_brokers_refuse_two_renewals_within_a_second() -> None:
    login = Login(Scripted(say_once), "b", versions(), "me", lambda: 0.5)
    log_in(login, 100.0, 500)
    assert login.may_begin_at > 101.3


@pytest.mark.parametrize(
    ("lifetime_ms", "lead"), [(10_000, 0.3), (500_000, 15.0), (86_400_000, 30.0)]
)
def test_a_renewal_may_begin_a_little_ahead(lifetime_ms: int, lead: float) -> None:
    login = Login(Scripted(say_once), "b", versions(), "me", lambda: 0.5)
    assert login.prepare_at == NEVER
    log_in(login, 100.0, lifetime_ms)
    assert login.renew_at - login.prepare_at == pytest.approx(lead)
    log_in(login, 200.0, 500)
    assert login.prepare_at == login.may_begin_at, "not before the broker allows it"
    log_in(login, 300.0, 0)
    assert login.prepare_at == NEVER


def test_what_it_waits_for_in_words() -> None:
    login = Login(Scripted(work_then_say), "b", versions(), "me", lambda: 0.5)
    assert login.describe() == "waits for the login to be renewed"
    request = login.begin_dialogue(0.0)
    assert login.describe() == "has not answered SaslHandshake v1"
    login.handle_frame(shake(request), 0.0)
    assert login.describe() == "waits for a login: a token is asked of b"
    login.handle_result(b"token", 0.0)
    assert login.describe() == "has not answered SaslAuthenticate v2"
    login.close()
    assert login.awaited == ""
