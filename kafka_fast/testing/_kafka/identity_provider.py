"""An identity provider for tests of OAUTHBEARER: signs tokens, and serves the key to check them.

    with IdentityProvider(authority, {"alice": "alice-secret"}) as provider:
        provider.token("alice")      # a JWT, signed with RS256

It listens on the loopback address. Brokers fetch the public key by http (`jwks_url`), so that the
broker's JVM needs no trust in the test's authority. Clients ask for tokens by https (`token_url`),
with the grant `client_credentials`. Needs trustme, which brings cryptography.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
import ssl
import threading
import time
import urllib.parse
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from kafka_fast.testing.certificates import CertificateAuthority

__all__ = ["IdentityProvider"]

HOST = "127.0.0.1"
ISSUER = "https://issuer.test"
AUDIENCE = "kafka"
LIFETIME = 3600.0
"""Seconds that a token is valid, if nobody says otherwise."""
_KEY_ID = "test-key"
_KEY_BITS = 2048
_EXPONENT = 65_537


class _Server(ThreadingHTTPServer):
    """One address of the provider; it knows the provider for its handlers."""

    daemon_threads = True
    provider: IdentityProvider


class IdentityProvider:
    """A running provider; use it as a context manager, or call `start` and `close`."""

    def __init__(self, authority: CertificateAuthority, clients: Mapping[str, str]) -> None:
        """Make the key.

        Args:
            authority: issues the certificate of `token_url`.
            clients: ids of clients and their secrets. A client's token has its id as subject.
        """
        from cryptography.hazmat.primitives.asymmetric import rsa

        self.refusal: int | None = None
        """If set, the HTTP status that every request for a token is answered with."""
        self.asked = 0
        """How many requests for tokens there were."""
        self._clients = dict(clients)
        self._key = rsa.generate_private_key(_EXPONENT, _KEY_BITS)
        self._certificate = authority.issue("localhost", HOST)
        self._servers: list[_Server] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> IdentityProvider:
        """Start serving."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop serving."""
        self.close()

    @property
    def jwks_url(self) -> str:
        """Where brokers fetch the public key."""
        return f"http://{HOST}:{self._servers[0].server_port}/jwks"

    @property
    def token_url(self) -> str:
        """Where clients ask for tokens, by https."""
        return f"https://localhost:{self._servers[1].server_port}/token"

    def start(self) -> None:
        """Listen on two free ports, and serve each in a thread."""
        for has_tls in (False, True):
            server = _Server((HOST, 0), _Handler)
            server.provider = self
            if has_tls:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(self._certificate.both)
                # The handshake takes place in the handler's thread, at its first read.
                server.socket = context.wrap_socket(
                    server.socket, server_side=True, do_handshake_on_connect=False
                )
            self._servers.append(server)
            thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def close(self) -> None:
        """Stop listening. May be called twice."""
        for server in self._servers:
            server.shutdown()
            server.server_close()
        for thread in self._threads:
            thread.join()
        self._servers.clear()
        self._threads.clear()

    def token(self, subject: str, *, lifetime: float = LIFETIME, **claims: object) -> str:
        """Return a signed token.

        Args:
            subject: whom it names: the user.
            lifetime: seconds from now on; negative: it has expired.
            claims: further ones, or others in place of the usual ones (`aud="other"`).
        """
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        now = time.time()
        usual = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": subject,
            "iat": int(min(now, now + lifetime)),
            "exp": int(now + lifetime),
            "jti": secrets.token_hex(8),
        }
        header = {"alg": "RS256", "typ": "JWT", "kid": _KEY_ID}
        signed = f"{_json64(header)}.{_json64({**usual, **claims})}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_base64url(signature)}"

    def jwks(self) -> dict[str, object]:
        """Return the public key as brokers fetch it."""
        numbers = self._key.public_key().public_numbers()
        key = {
            "kty": "RSA",
            "use": "sig",
            "alg": "RS256",
            "kid": _KEY_ID,
            "n": _base64url(numbers.n.to_bytes(_KEY_BITS // 8, "big")),
            "e": _base64url(numbers.e.to_bytes(3, "big")),
        }
        return {"keys": [key]}

    def granted(self, form: Mapping[str, str], authorization: str) -> tuple[int, dict[str, object]]:
        """Return the status and the answer to a request for a token."""
        self.asked += 1
        if self.refusal is not None:
            return self.refusal, {"error": "server_error"}
        if form.get("grant_type") != "client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        client, secret = _credentials(form, authorization)
        if client not in self._clients or self._clients[client] != secret:
            return 401, {"error": "invalid_client"}
        extra: dict[str, Any] = {"scope": form["scope"]} if form.get("scope") else {}
        token = self.token(client, **extra)
        return 200, {
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": int(LIFETIME),
            **extra,
        }


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: _Server
    timeout = 10.0  # seconds; a client that keeps silent does not hold its thread

    def do_GET(self) -> None:
        """Serve the public key."""
        if self.path == "/jwks":
            self._answer(200, self.server.provider.jwks())
        else:
            self._answer(404, {"error": "not_found"})

    def do_POST(self) -> None:
        """Serve a token."""
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        form = dict(urllib.parse.parse_qsl(body.decode()))
        authorization = self.headers.get("Authorization", "")
        self._answer(*self.server.provider.granted(form, authorization))

    def log_message(self, format: str, *args: Any) -> None:  # the base class's name
        """Say nothing on stderr."""

    def _answer(self, status: int, answer: Mapping[str, object]) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _credentials(form: Mapping[str, str], authorization: str) -> tuple[str, str]:
    """Return the client's id and secret, from the header or from the form."""
    scheme, _, value = authorization.partition(" ")
    if scheme != "Basic":
        return form.get("client_id", ""), form.get("client_secret", "")
    try:
        client, _, secret = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return client, secret


def _json64(value: Mapping[str, object]) -> str:
    return _base64url(json.dumps(value, separators=(",", ":")).encode())


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
