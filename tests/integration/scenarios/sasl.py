"""The client's side of SASL, token by token, and a broker to try it on."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsRequest
from kafka_fast.protocol.apis.security.sasl_authenticate import SaslAuthenticateRequest
from kafka_fast.protocol.apis.security.sasl_handshake import SaslHandshakeRequest
from tests.integration.scenarios.wire import WireClient, connected

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
NONCE = "fyko+d2lbbFgONRv9qkxdawL"


@dataclass(frozen=True)
class Door:
    """A listener with SASL."""

    address: str
    token: Callable[..., str]
    """(user, lifetime=seconds) -> a token for OAUTHBEARER."""
    tls: ssl.SSLContext | None = None

    @contextmanager
    def connected(self) -> Iterator[WireClient]:
        """Connect, without saying who it is."""
        with connected(self.address, self.tls) as client:
            yield client


def handshake(client: WireClient, mechanism: str, version: int = 1) -> Any:
    return client.ask(SaslHandshakeRequest(mechanism=mechanism), version)


def authenticate(client: WireClient, token: bytes, version: int = 2) -> Any:
    return client.ask(SaslAuthenticateRequest(auth_bytes=token), version)


def versions(client: WireClient) -> Any:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    return client.ask(request, 3)


def plain(user: str, password: str) -> bytes:
    return f"\0{user}\0{password}".encode()


def bearer(token: str) -> bytes:
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def scram_first(user: str, nonce: str = NONCE) -> bytes:
    return f"n,,n={user},r={nonce}".encode()


def scram_final(
    mechanism: str, password: str, first: bytes, server_first: bytes, **other: str
) -> tuple[bytes, bytes]:
    """Return the client's last token, and the server's that it expects.

    Args:
        mechanism: one of SCRAM.
        password: in text.
        first: the client's first token.
        server_first: the server's answer.
        other: attributes in place of the right ones (`r="another nonce"`).
    """
    digest = HASHES[mechanism]
    fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
    salted = hashlib.pbkdf2_hmac(
        digest, password.encode(), base64.b64decode(fields["s"]), int(fields["i"])
    )
    client_key = hmac.digest(salted, b"Client Key", digest)
    without_proof = f"c={other.get('c', 'biws')},r={other.get('r', fields['r'])}"
    signed = f"{first.decode()[3:]},{server_first.decode()},{without_proof}".encode()
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True)))
    verifier = hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest)
    token = f"{without_proof},p={other.get('p', proof.decode())}".encode()
    return token, b"v=" + base64.b64encode(verifier)


def log_in(client: WireClient, mechanism: str, user: str, password: str, token: str = "") -> Any:
    """Authenticate from the handshake on; return the last answer."""
    answer = handshake(client, mechanism)
    assert answer.error_code == 0
    if mechanism == "PLAIN":
        return authenticate(client, plain(user, password))
    if mechanism == "OAUTHBEARER":
        return authenticate(client, bearer(token))
    first = scram_first(user)
    answer = authenticate(client, first)
    if answer.error_code:
        return answer
    final, verifier = scram_final(mechanism, password, first, answer.auth_bytes)
    answer = authenticate(client, final)
    assert answer.error_code or answer.auth_bytes == verifier
    return answer
