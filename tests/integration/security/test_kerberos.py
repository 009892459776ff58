"""GSSAPI against a Kerberos server, with the acceptor's side of the same library as the broker."""

from __future__ import annotations

import base64
import contextlib
import importlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_fast.config.security._security_settings import SaslSettings
from kafka_fast.control.authentication.dialogue import Authentication
from kafka_fast.control.authentication.mechanism import Mechanism, Work
from kafka_fast.errors import AuthenticationError, KafkaConnectionError
from kafka_fast.net.login import make_mechanism
from kafka_fast.testing._kafka.broker_jars import ToolMissingError
from tests.support.kdc import Kdc
from tests.unit.canary import assert_hidden, traces
from tests.unit.control.authentication.conversing import converse
from tests.unit.control.authentication.scripted import accept, read, shake, versions

pytestmark = pytest.mark.broker

IS_CI = os.environ.get("CI") == "true"
gssapi: Any = None
with contextlib.suppress(ImportError):
    gssapi = importlib.import_module("gssapi")


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    if gssapi is None and IS_CI:
        pytest.fail("the package gssapi is missing")
    if gssapi is None:
        pytest.skip("the package gssapi needs krb5's headers")
    folder = tmp_path_factory.mktemp("kdc")
    try:
        made = Kdc(folder, "client", "other", "kafka/localhost", "bus/brokers.test")
    except ToolMissingError as missing:
        if IS_CI:
            raise
        pytest.skip(str(missing))
    with made, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(made.krb5_conf))
        patch.setenv("KRB5CCNAME", f"FILE:{folder}/cache")
        yield made


class Broker:
    """The acceptor's side of RFC 4752."""

    def __init__(self, kdc: Kdc, principal: str, *, offers: bytes = b"\1\0\0\0") -> None:
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
        store = {"keytab": f"FILE:{kdc.keytab}"}
        credentials = gssapi.Credentials(name=name, usage="accept", store=store)
        self.context = gssapi.SecurityContext(creds=credentials, usage="accept")
        self.offers = offers
        self.chosen = b""

    def accept(self, token: bytes) -> bytes:
        return self.context.step(token) or b""

    def offer(self, nothing: bytes) -> bytes:
        assert nothing == b"" and self.context.complete
        return bytes(self.context.wrap(self.offers, False).message)

    def take(self, message: bytes) -> bytes:
        self.chosen = self.context.unwrap(message).message
        return b""

    @property
    def answers(self) -> tuple[Any, ...]:
        return self.accept, self.offer, self.take


def mechanism(**named: Any) -> Mechanism:
    return make_mechanism(SaslSettings(mechanism="GSSAPI", **named))


def test_a_client_with_a_key(kdc: Kdc) -> None:
    made = mechanism(kerberos_keytab=str(kdc.keytab), kerberos_principal="client")
    assert made.name == "GSSAPI"
    for _ in range(2):
        broker = Broker(kdc, "kafka/localhost")
        converse(made.converse("localhost"), *broker.answers)
        assert broker.chosen == b"\1\0\0\0"
        assert str(broker.context.initiator_name) == "client@EXAMPLE.COM"


def test_a_service_and_a_host_of_another_name(kdc: Kdc) -> None:
    made = mechanism(
        kerberos_keytab=str(kdc.keytab),
        kerberos_principal="other@EXAMPLE.COM",
        kerberos_service_name="bus",
        kerberos_domain_name="brokers.test",
    )
    broker = Broker(kdc, "bus/brokers.test")
    converse(made.converse("10.0.0.1"), *broker.answers)
    assert str(broker.context.initiator_name) == "other@EXAMPLE.COM"


def test_tickets_of_the_users_cache(kdc: Kdc) -> None:
    with pytest.raises(AuthenticationError, match=r"with Kerberos: .*No Kerberos credentials"):
        converse(mechanism().converse("localhost"))
    name = gssapi.Name("client", gssapi.NameType.kerberos_principal)
    cache = os.environ["KRB5CCNAME"]
    store = {"client_keytab": f"FILE:{kdc.keytab}", "ccache": cache}
    gssapi.Credentials(name=name, usage="initiate", store=store).inquire(lifetime=True)
    broker = Broker(kdc, "kafka/localhost")
    converse(mechanism().converse("localhost"), *broker.answers)
    assert str(broker.context.initiator_name) == "client@EXAMPLE.COM"


def test_a_key_table_that_is_not_there(tmp_path: Path, kdc: Kdc) -> None:
    with pytest.raises(AuthenticationError, match="cannot be authenticated to with Kerberos"):
        converse(mechanism(kerberos_keytab=str(tmp_path / "none")).converse("localhost"))


def test_a_broker_that_kerberos_does_not_know(kdc: Kdc) -> None:
    made = mechanism(kerberos_keytab=str(kdc.keytab), kerberos_principal="client")
    with pytest.raises(AuthenticationError, match="not found in Kerberos database"):
        converse(made.converse("elsewhere.test"))


@pytest.mark.parametrize("answer", [b"", b"\0", b"x" * 1000])
def test_a_broker_that_answers_nonsense(kdc: Kdc, answer: bytes) -> None:
    made = mechanism(kerberos_keytab=str(kdc.keytab), kerberos_principal="client")
    with pytest.raises(AuthenticationError, match="with Kerberos"):
        converse(made.converse("localhost"), answer)


def test_an_offer_that_was_changed(kdc: Kdc) -> None:
    made = mechanism(kerberos_keytab=str(kdc.keytab), kerberos_principal="client")
    broker = Broker(kdc, "kafka/localhost")

    def change(nothing: bytes) -> bytes:
        offer = bytearray(broker.offer(nothing))
        offer[-1] ^= 1
        return bytes(offer)

    with pytest.raises(AuthenticationError, match="with Kerberos"):
        converse(made.converse("localhost"), broker.accept, change)


def test_a_kerberos_server_that_is_away(
    kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = tmp_path / "krb5.conf"
    lines = kdc.krb5_conf.read_text().splitlines()
    away.write_text(
        "\n".join("  kdc = 127.0.0.1:9" if "kdc = 127" in line else line for line in lines)
    )
    monkeypatch.setenv("KRB5_CONFIG", str(away))
    made = mechanism(kerberos_keytab=str(kdc.keytab), kerberos_principal="client")
    with pytest.raises(KafkaConnectionError, match="Cannot contact any KDC") as caught:
        converse(made.converse("localhost"))
    assert not isinstance(caught.value, AuthenticationError)


def test_no_ticket_is_told(kdc: Kdc, caplog: pytest.LogCaptureFixture) -> None:
    """What the client says to a broker shows in no log and no error that a client would raise."""
    caplog.set_level(logging.DEBUG)
    made = mechanism(kerberos_keytab=str(kdc.keytab), kerberos_principal="client")
    made.name = "SCRIPT"  # as the other side of the dialogue is used to
    login = Authentication(made, "localhost", versions(), "me")
    step = login.handle_frame(shake(login.first_step()))
    assert isinstance(step, Work)
    request = login.handle_result(step.function())
    ticket = read(request)[0].auth_bytes
    step = login.handle_frame(accept(request, b"nonsense"))
    assert isinstance(step, Work)
    with pytest.raises(AuthenticationError, match="with Kerberos") as of_the_broker:
        step.function()
    with pytest.raises(AuthenticationError, match="with Kerberos") as of_the_client:
        login.handle_result(of_the_broker.value)
    # Its end is encrypted: no other text has that by chance.
    for secret in (ticket[-64:-32], ticket[-32:]):
        for form in (repr(secret)[2:-1], secret.hex(), base64.b64encode(secret).decode()):
            assert traces(of_the_client.value, form) == []
            assert_hidden(caplog.text, repr(made), repr(login), secret=form)
