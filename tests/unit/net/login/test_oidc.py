from __future__ import annotations

import base64
import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)

from kafka_fast.config.security._security_settings import OidcSettings, SaslSettings
from kafka_fast.errors import (
    AuthenticationError,
    ConfigError,
    KafkaConnectionError,
    MissingPackageError,
)
from kafka_fast.net.login import https, make_mechanism, packages
from kafka_fast.net.login.https import REPLY_MAX
from kafka_fast.net.login.oidc import JWT_BEARER, ProviderTokens
from kafka_fast.secret import Secret
from kafka_fast.testing.certificates import CertificateAuthority
from tests.unit.canary import CANARY, traces
from tests.unit.control.authentication.conversing import converse
from tests.unit.net.login.provider import Provider, answer
from tests.unit.net.login.test_jwt import jwt

NOW = 1_800_000_000.0

TOKEN = answer("200 OK", {"access_token": "token", "expires_in": 3600, "token_type": "Bearer"})


def settings(provider: Provider, authority: CertificateAuthority, **named: Any) -> OidcSettings:
    named = {
        "token_endpoint_url": provider.url,
        "ca_location": str(authority.certificate),
        "client_id": "client",
        "client_secret": Secret(CANARY),
    } | named
    return OidcSettings(**named)


Make = Callable[..., ProviderTokens]


@pytest.fixture
def make(provider: Provider, authority: CertificateAuthority) -> Make:
    return lambda **named: ProviderTokens(settings(provider, authority, **named), lambda: NOW)


def test_client_credentials(provider: Provider, make: Make) -> None:
    provider.answers = [TOKEN]
    tokens = make(scope="kafka all")
    assert tokens.what == f"a token is asked of {provider.url}"
    token = tokens.fetch()
    assert (token.value.reveal(), token.expires_at) == ("token", NOW + 3600)
    (line, headers, form), = provider.requests  # fmt: skip
    assert line == "POST /token HTTP/1.1"
    assert headers["Host"] == f"localhost:{provider.port}"
    assert headers["Accept"] == "application/json"
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert headers["Authorization"] == (
        "Basic " + base64.b64encode(f"client:{CANARY}".encode()).decode()
    )
    assert form == {"grant_type": "client_credentials", "scope": "kafka all"}


def test_credentials_may_be_encoded(provider: Provider, make: Make) -> None:
    provider.answers = [TOKEN]
    make(client_id="a b", client_secret=Secret("p:+ü"), urlencodes_credentials=True).fetch()
    basic = provider.requests[0][1]["Authorization"].removeprefix("Basic ")
    assert base64.b64decode(basic) == b"a+b:p%3A%2B%C3%BC"


def test_the_tokens_own_end(provider: Provider, make: Make) -> None:
    provider.answers = [answer(body={"id_token": jwt({"exp": NOW + 60, "iat": NOW - 5})})]
    token = make().fetch()
    assert (token.expires_at, token.issued_at) == (NOW + 60, NOW - 5)


def test_an_answer_in_chunks(provider: Provider, make: Make) -> None:
    body = b'{"access_token": "token"}'
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n"
    provider.answers = [head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks]
    assert make().fetch().value.reveal() == "token"


PASSING = [
    (b"", "closed connection without response"),
    (answer(body={"access_token": CANARY})[:-3], "stopped in its answer"),
    (answer("500 Oops", b"<h1>", content_type="text/html"), "answered 500 Oops$"),
    (answer("503 Busy", {"error": "temporarily_unavailable"}), "503 Busy: temporarily_unavailable"),
    (answer("429 Too Many Requests"), "answered 429 Too Many Requests"),
]
FINAL = [
    (
        answer("401 No", {"error": "invalid_client", "error_description": "who?\x1b[2J\r\nINFO"}),
        r"answered 401 No: invalid_client: who\?\\x1b\[2J\\r\\nINFO$",
    ),
    (answer("400 Bad", {"error": {"x": 1}}), "answered 400 Bad$"),
    (answer("404 \x1b[2J", b""), r"answered 404 \\x1b\[2J$"),
    (answer("302 Found", b"", "Location: https://localhost/"), "302: redirects are not followed"),
    (answer("307 Moved", b"", "Location: /other"), "307: redirects are not followed"),
    (answer("204 No Content"), "answered 204 No Content"),
    (answer(body=b"not json"), "something else than a JSON object"),
    (answer(body=b'["token"]'), "something else than a JSON object"),
    (answer(body=b"[" * 50_000), "something else than a JSON object"),
    (answer(body={"access_token": "token"}, content_type="text/html"), "something else than"),
    (answer(body={}), "answered without access_token"),
    (answer(body={"access_token": ""}), "answered without access_token"),
    (answer(body={"access_token": {"a": CANARY}}), "answered without access_token"),
    (answer(body=b"x" * 10_000_000), f"sent more than {REPLY_MAX} bytes"),
    (answer("500 Oops", b"x" * 10_000_000), f"sent more than {REPLY_MAX} bytes"),
    (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 1000, "does not answer in HTTP"),
    (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000, "does not answer in HTTP|more than"),
    (b"SSH-2.0-OpenSSH\r\n", "does not answer in HTTP"),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        "does not answer in HTTP|something else",
    ),
    (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nx", "something else than"),
]


@pytest.mark.parametrize(("reply", "text"), PASSING, ids=lambda value: value[:25])
def test_an_answer_after_which_the_same_may_succeed(
    provider: Provider, make: Make, reply: bytes, text: str
) -> None:
    provider.answers = [reply]
    with pytest.raises(KafkaConnectionError, match=text) as caught:
        make().fetch()
    assert not isinstance(caught.value, AuthenticationError)
    assert provider.url in str(caught.value)
    assert traces(caught.value) == []


@pytest.mark.parametrize(("reply", "text"), FINAL, ids=lambda value: value[:25])
def test_an_answer_without_a_token(provider: Provider, make: Make, reply: bytes, text: str) -> None:
    provider.answers = [reply]
    with pytest.raises(AuthenticationError, match=text) as caught:
        make().fetch()
    assert provider.url in str(caught.value)
    assert len(str(caught.value)) < 1500
    assert traces(caught.value) == []
    assert len(provider.requests) == 1


def test_a_provider_that_is_silent(provider: Provider, make: Make) -> None:
    has_given_up = threading.Event()
    provider.answers = [lambda link: has_given_up.wait(30) and None]
    with pytest.raises(KafkaConnectionError, match=r"cannot be asked: .*timed out") as caught:
        make(read_timeout=0.05).fetch()
    has_given_up.set()
    assert traces(caught.value) == []


def test_a_provider_that_sends_a_byte_now_and_then(
    provider: Provider, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes in time, the answer does not."""
    now = [100.0]

    monkeypatch.setattr(https.time, "monotonic", lambda: now[0])
    readinto = https._Incoming.readinto

    def read(self: Any, buffer: Any) -> int:
        now[0] += 3
        return readinto(self, memoryview(buffer)[:1])

    monkeypatch.setattr(https._Incoming, "readinto", read)
    provider.answers = [TOKEN]
    with pytest.raises(KafkaConnectionError, match="the answer takes too long"):
        make().fetch()


def test_a_provider_that_is_not_there(provider: Provider, make: Make) -> None:
    tokens = make()
    provider.close()
    with pytest.raises(KafkaConnectionError, match="Connection refused") as caught:
        tokens.fetch()
    assert traces(caught.value) == []


def test_authorities_may_be_given_as_a_text(
    provider: Provider, authority: CertificateAuthority, make: Make, tmp_path: Path
) -> None:
    provider.answers = [TOKEN]
    text = authority.certificate.read_text()
    assert make(ca_location=None, ca_certificates=text).fetch().value.reveal() == "token"
    other = CertificateAuthority(tmp_path).certificate.read_text()
    with pytest.raises(AuthenticationError, match="is not trusted"):
        make(ca_location=None, ca_certificates=other).fetch()


def test_a_certificate_that_is_not_trusted(provider: Provider, make: Make, tmp_path: Path) -> None:
    other = CertificateAuthority(tmp_path)
    with pytest.raises(AuthenticationError, match=r"certificate of .* is not trusted: .*issuer"):
        make(ca_location=str(other.certificate)).fetch()
    url = f"https://127.0.0.1:{provider.port}/token"
    with pytest.raises(AuthenticationError, match=r"is not trusted: .*127\.0\.0\.1"):
        make(token_endpoint_url=url).fetch()
    assert provider.requests == []


def test_certificates_that_cannot_be_read(make: Make) -> None:
    with pytest.raises(KafkaConnectionError, match="No such file"):
        make(ca_location="/nowhere/ca.pem").fetch()


def test_proxies_of_the_environment_are_not_asked(
    provider: Provider, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    provider.answers = [TOKEN]
    assert make().fetch().value.reveal() == "token"


def test_session_keys_are_written_nowhere(
    provider: Provider, make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    provider.answers = [TOKEN]
    make().fetch()
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/token",
        "file:///etc/passwd",
        "https://",
        "https:///token",
        "https://user:secret@localhost/token",
        "https://localhost:x/token",
        "https://localhost:99999/token",
        "https://localhost/to ken",
        "https://localhost/to\r\nken",
        "https://löcalhost/",
        "https://[::1/token",
        "",
    ],
)
def test_only_https(make: Make, url: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.oauthbearer\.token\.endpoint\.url") as caught:
        make(token_endpoint_url=url)
    assert "secret" not in str(caught.value)


def test_secrets_in_the_query_are_not_shown(provider: Provider, make: Make) -> None:
    provider.answers = [answer("400 Bad")]
    with pytest.raises(AuthenticationError) as caught:
        make(token_endpoint_url=f"{provider.url}?key={CANARY}").fetch()
    assert CANARY not in str(caught.value)
    assert provider.requests[0][0] == f"POST /token?key={CANARY} HTTP/1.1"


def test_allowed_urls(provider: Provider, make: Make) -> None:
    with pytest.raises(ConfigError, match=r"none of those in sasl\.oauthbearer\.allowed\.urls"):
        make(allowed_urls=("https://localhost/token",))
    provider.answers = [TOKEN]
    make(allowed_urls=("https://localhost/token", provider.url)).fetch()


def test_credentials_that_are_missing(make: Make) -> None:
    with pytest.raises(ConfigError, match="needs the client's id and secret"):
        make(client_secret=None)
    with pytest.raises(ConfigError, match="jwt-bearer grant needs"):
        make(grant=JWT_BEARER)


def test_a_secret_from_a_function(provider: Provider, make: Make) -> None:
    secrets = iter(["one", "two"])
    provider.answers = [TOKEN, TOKEN]
    tokens = make(client_secret=Secret(lambda: next(secrets)))
    tokens.fetch()
    tokens.fetch()
    shown = [headers["Authorization"].split()[1] for _, headers, _ in provider.requests]
    assert [base64.b64decode(text) for text in shown] == [b"client:one", b"client:two"]
    with pytest.raises(AuthenticationError, match=r"needs a client secret.*StopIteration"):
        tokens.fetch()


# ---- assertions ----


def write_key(path: Path, key: Any, encryption: KeySerializationEncryption | None = None) -> str:
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())
    )
    return str(path)


def decoded(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    header, claims, _ = text.split(".")
    read = [json.loads(base64.urlsafe_b64decode(part + "==")) for part in (header, claims)]
    return read[0], read[1]


def test_jwt_bearer(provider: Provider, make: Make, tmp_path: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    template = tmp_path / "template.json"
    template.write_text('{"header": {"kid": "1"}, "payload": {"sub": "a", "x": 1, "exp": 5}}')
    provider.answers = [TOKEN]
    make(
        grant=JWT_BEARER,
        client_id=None,
        client_secret=None,
        scope="kafka",
        assertion_key_file=write_key(tmp_path / "key.pem", key, BestAvailableEncryption(b"pass")),
        assertion_key_password=Secret("pass"),
        assertion_template_file=str(template),
        assertion_audience="aud",
        assertion_issuer="iss",
        assertion_subject="sub",
        assertion_has_id=True,
    ).fetch()
    _, headers, form = provider.requests[0]
    assert "Authorization" not in headers
    assertion = form.pop("assertion")
    assert form == {"grant_type": JWT_BEARER, "scope": "kafka"}
    said, _, signature = assertion.rpartition(".")
    raw = base64.urlsafe_b64decode(signature + "==")
    key.public_key().verify(raw, said.encode(), padding.PKCS1v15(), SHA256())
    header, claims = decoded(assertion)
    assert header == {"kid": "1", "alg": "RS256", "typ": "JWT"}
    assert len(claims.pop("jti")) == 36
    times = {"iat": NOW, "exp": NOW + 300, "nbf": NOW - 60}
    assert claims == {"x": 1, "aud": "aud", "iss": "iss", "sub": "sub", **times}


def test_a_client_assertion(provider: Provider, make: Make, tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = Path(write_key(tmp_path / "key.pem", key)).read_text()
    provider.answers = [TOKEN]
    make(client_secret=None, assertion_key=Secret(pem), assertion_algorithm="ES256").fetch()
    _, headers, form = provider.requests[0]
    assert "Authorization" not in headers
    header, claims = decoded(form.pop("client_assertion"))
    assert header["alg"] == "ES256" and set(claims) == {"iat", "exp", "nbf"}
    assert form == {
        "grant_type": "client_credentials",
        "client_id": "client",
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    }


def test_an_assertion_of_others_in_a_file(provider: Provider, make: Make, tmp_path: Path) -> None:
    path = tmp_path / "assertion"
    provider.answers = [TOKEN, TOKEN]
    tokens = make(grant=JWT_BEARER, assertion_file=str(path))
    with pytest.raises(KafkaConnectionError, match="No such file"):
        tokens.fetch()
    for text in ("one", "two"):
        path.write_text(f"{text}\n")
        tokens.fetch()
    assert [form["assertion"] for _, _, form in provider.requests] == ["one", "two"]
    path.write_bytes(b"\xff")
    with pytest.raises(AuthenticationError, match="assertion holds none"):
        tokens.fetch()


@pytest.mark.parametrize(
    ("content", "password", "text"),
    [
        (f"no key {CANARY}", None, "the private key is none in PEM"),
        (None, None, "its password is wrong or missing"),
        (None, CANARY + "x", "its password is wrong or missing"),
        (None, CANARY + "\ud800", "can be written in UTF-8"),
    ],
)
def test_a_key_that_cannot_be_read_is_not_shown(
    make: Make, tmp_path: Path, content: str | None, password: str | None, text: str
) -> None:
    path = tmp_path / "key.pem"
    if content is None:
        key = ec.generate_private_key(ec.SECP256R1())
        write_key(path, key, BestAvailableEncryption(CANARY.encode()))
    else:
        path.write_text(content)
    tokens = make(
        assertion_key_file=str(path),
        assertion_key_password=None if password is None else Secret(password),
        assertion_algorithm="ES256",
    )
    with pytest.raises(AuthenticationError, match=text) as caught:
        tokens.fetch()
    assert traces(caught.value) == []


def test_a_key_of_another_kind(make: Make, tmp_path: Path) -> None:
    path = write_key(tmp_path / "key.pem", ec.generate_private_key(ec.SECP256R1()))
    with pytest.raises(AuthenticationError, match="the private key is none for RS256"):
        make(assertion_key_file=path).fetch()


@pytest.mark.parametrize("content", ["", "[]", '{"header": []}', '{"payload": 1}', "[" * 99_999])
def test_a_template_that_is_none(make: Make, tmp_path: Path, content: str) -> None:
    path = tmp_path / "template.json"
    path.write_text(content)
    tokens = make(assertion_key=Secret("x"), assertion_template_file=str(path))
    with pytest.raises(AuthenticationError, match=r"template\.json is no JSON object"):
        tokens.fetch()


def test_an_algorithm_that_is_not_known(make: Make) -> None:
    with pytest.raises(ConfigError, match="must be one of RS256, ES256"):
        make(assertion_key=Secret("x"), assertion_algorithm="none")


def test_the_package_that_signs_is_named(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"pip install cryptography"):
        make(assertion_key=Secret("x"))


# ---- the whole ----


def test_a_mechanism_with_a_provider(
    provider: Provider,
    authority: CertificateAuthority,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    provider.answers = [
        answer("500 Oops"),
        answer(body={"access_token": CANARY, "expires_in": 3600}),
    ]
    mechanism = make_mechanism(
        SaslSettings(
            mechanism="OAUTHBEARER",
            oidc=settings(provider, authority),
            extensions=(("logicalCluster", "lkc-1"),),
            retry_backoff_ms=1,
        )
    )
    message = f"n,,\1auth=Bearer {CANARY}\1logicalCluster=lkc-1\1\1".encode()
    for _ in range(3):
        assert converse(mechanism.converse("broker"), b"") == [message]
    assert len(provider.requests) == 2
    assert "500 Oops" in caplog.text and CANARY not in caplog.text
