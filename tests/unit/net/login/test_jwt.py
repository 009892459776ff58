from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256

from kafka_fast.errors import ConfigError
from kafka_fast.net.login.jwt import sign, token_from


def jwt(claims: object) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.sig"


def test_a_token_says_when_it_ends() -> None:
    token = token_from(jwt({"exp": 1_900_000_000, "iat": 1_800_000_000.5, "sub": "x"}))
    assert (token.expires_at, token.issued_at) == (1_900_000_000, 1_800_000_000.5)


def test_what_the_provider_says_of_the_end_comes_first() -> None:
    token = token_from(jwt({"exp": 1_900_000_000, "iat": 1_800_000_000}), 1_850_000_000)
    assert (token.expires_at, token.issued_at) == (1_850_000_000, None)


@pytest.mark.parametrize(
    "text",
    [
        "opaque",
        "a.b",
        "a.b.c",
        "a.é.c",
        "a..c",
        jwt([]),
        jwt({}),
        jwt({"exp": "1900000000"}),
        jwt({"exp": True}),
        jwt({"exp": None}),
        jwt({"exp": float("nan")}),
        jwt({"exp": 10**400}),
        "e30." + base64.urlsafe_b64encode(b"[" * 30_000).decode() + ".x",
    ],
    ids=lambda text: text[:20],
)
def test_a_token_that_says_nothing_has_no_end(text: str) -> None:
    token = token_from(text)
    assert token.expires_at is None and token.value.reveal() == text


def parts(text: str) -> tuple[bytes, bytes]:
    said, _, signature = text.rpartition(".")
    return said.encode(), base64.urlsafe_b64decode(signature + "==")


def test_rs256() -> None:
    key = rsa.generate_private_key(65537, 2048)
    said, signature = parts(sign({"alg": "RS256"}, {"sub": "ü"}, key))
    key.public_key().verify(signature, said, padding.PKCS1v15(), SHA256())
    header, claims = (base64.urlsafe_b64decode(part + b"==") for part in said.split(b"."))
    assert (json.loads(header), json.loads(claims)) == ({"alg": "RS256"}, {"sub": "ü"})


def test_es256() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    said, signature = parts(sign({"alg": "ES256"}, {"sub": "x"}, key))
    assert len(signature) == 64
    numbers = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
    key.public_key().verify(utils.encode_dss_signature(*numbers), said, ec.ECDSA(SHA256()))


def test_a_key_of_another_kind_is_refused() -> None:
    for algorithm, key in (
        ("RS256", ec.generate_private_key(ec.SECP256R1())),
        ("ES256", ec.generate_private_key(ec.SECP384R1())),
        ("ES256", rsa.generate_private_key(65537, 2048)),
    ):
        with pytest.raises(ConfigError, match=f"none for {algorithm}"):
            sign({"alg": algorithm}, {}, key)
