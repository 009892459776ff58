from __future__ import annotations

import logging
import threading

import pytest

from kafka_fast.control.authentication import scram
from kafka_fast.control.authentication.scram import ScramKeys
from kafka_fast.errors import AuthenticationError
from kafka_fast.net.login import scram_keys
from kafka_fast.net.login.scram_keys import KEPT, ScramKeyCache
from kafka_fast.secret import Secret
from tests.unit.canary import CANARY, traces


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, bytes, int]]:
    """What is derived: password, salt, iterations."""
    calls: list[tuple[bytes, bytes, int]] = []

    def derive(hash_name: str, password: bytes, salt: bytes, iterations: int) -> ScramKeys:
        calls.append((password, salt, iterations))
        return scram.derive_keys(hash_name, password, salt, 1)

    monkeypatch.setattr(scram_keys, "derive_keys", derive)
    return calls


def test_keys_are_derived_once(derived: list[tuple[bytes, bytes, int]]) -> None:
    cache, password = ScramKeyCache("sha256"), Secret("password")
    first = cache.derive(password, b"salt", 4096)
    assert cache.derive(password, b"salt", 4096) is first
    assert cache.derive(password, b"salt", 8192) is not first
    assert cache.derive(password, b"other", 4096) is not first
    assert derived == [
        (b"password", b"salt", 4096), (b"password", b"salt", 8192), (b"password", b"other", 4096)
    ]  # fmt: skip


def test_a_password_that_changes_is_derived_anew(derived: list[tuple[bytes, bytes, int]]) -> None:
    cache = ScramKeyCache("sha256")
    keys = [
        cache.derive(Secret(password), b"salt", 4096) for password in ("first", "first", "second")
    ]
    assert keys[0] is keys[1] is not keys[2]
    assert [password for password, _, _ in derived] == [b"first", b"second"]


def test_links_that_ask_at_once_wait_for_one_derivation(monkeypatch: pytest.MonkeyPatch) -> None:
    is_deriving, may_end = threading.Event(), threading.Event()
    calls: list[bytes] = []

    def derive(hash_name: str, password: bytes, salt: bytes, iterations: int) -> ScramKeys:
        calls.append(salt)
        is_deriving.set()
        may_end.wait(30)
        return scram.derive_keys(hash_name, password, salt, 1)

    monkeypatch.setattr(scram_keys, "derive_keys", derive)
    asked = threading.Semaphore(0)

    def password() -> str:
        asked.release()
        return "password"

    cache, secret = ScramKeyCache("sha256"), Secret(password)
    results: list[ScramKeys] = []
    threads = [
        threading.Thread(target=lambda: results.append(cache.derive(secret, b"salt", 4096)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    assert is_deriving.wait(30)
    for _ in threads:
        assert asked.acquire(timeout=30)
    may_end.set()
    for thread in threads:
        thread.join(30)
    assert len(results) == 4 and len({id(keys) for keys in results}) == 1
    assert calls == [b"salt"]


def test_a_broker_that_sends_new_salts_fills_no_memory(
    derived: list[tuple[bytes, bytes, int]],
) -> None:
    cache, password = ScramKeyCache("sha256"), Secret("password")
    keys = cache.derive(password, b"wanted", 4096)
    for number in range(3 * KEPT):
        cache.derive(password, b"%d" % number, 4096)
        assert cache.derive(password, b"wanted", 4096) is keys
    assert len(cache._keys) == KEPT


def test_a_password_has_its_normal_form_and_the_user_is_told_once(
    derived: list[tuple[bytes, bytes, int]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    cache, password = ScramKeyCache("sha256"), Secret(f"e\u0301{CANARY}")
    cache.derive(password, b"salt", 4096)
    cache.derive(password, b"other", 4096)
    assert derived[0][0] == f"é{CANARY}".encode()
    assert len(caplog.records) == 1
    assert "normal form (SASLprep" in caplog.text and CANARY not in caplog.text


@pytest.mark.parametrize("password", ["", f"{CANARY}\0", f"{CANARY}\u202e", f"{CANARY}\ud800"])
def test_a_password_that_cannot_be_used_is_not_shown(password: str) -> None:
    with pytest.raises(AuthenticationError, match="password") as caught:
        ScramKeyCache("sha256").derive(Secret(password), b"salt", 4096)
    assert traces(caught.value) == []
