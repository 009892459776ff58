"""One HTTPS request to an identity provider: one URL, no redirects, no proxies.

`http.client` reads the answer; connecting and reading stop at one deadline and at one size, however
slowly the bytes come.
"""

from __future__ import annotations

import http.client
import io
import json
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from kafka_fast.control.authentication.peer_text import as_told
from kafka_fast.errors import (
    AuthenticationError,
    ConfigError,
    ConnectionReason,
    KafkaConnectionError,
)
from kafka_fast.values import Value

__all__ = ["REPLY_MAX", "TIMEOUT", "Reply", "TokenEndpoint"]

REPLY_MAX = 65536
"""Bytes of an answer, with its headers."""

TIMEOUT = 10.0
"""Seconds for all of a request."""

MAY_PASS = frozenset({408, 429, *range(500, 600)})
"""Statuses after which the same request may succeed."""


MakeRequest: TypeAlias = Callable[[], tuple[dict[str, str], bytes]]
"""Returns headers and body."""


class Reply(Value, eq=False):
    """The JSON object of a successful answer. It has secrets in it."""

    fields: Mapping[str, Any]


class TokenEndpoint:
    """A URL that is asked for tokens. Any thread that may block."""

    def __init__(
        self,
        url: str,
        *,
        ca_location: str | None,
        ca_certificates: str | None,
        connect_timeout: float,
        read_timeout: float,
    ) -> None:
        """Take the URL.

        Args:
            url: https only.
            ca_location: a PEM file with the certificates that are trusted.
            ca_certificates: the same as a text. Without either, the system's are trusted.
            connect_timeout: seconds.
            read_timeout: seconds until the next bytes.

        Raises:
            ConfigError: this is no https URL.
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        is_clean = url.isascii() and url.isprintable() and " " not in url
        if not is_clean or not host or parts.scheme != "https" or parts.username is not None:
            raise ConfigError(
                "sasl.oauthbearer.token.endpoint.url must begin with https:// and name a host, "
                "without a user"
            )
        self.shown = f"https://{parts.netloc}{parts.path}"
        """Without the query: users put secrets there."""
        self._address = (host, port or 443)
        self._host_header = parts.netloc
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._ca_location = ca_location
        self._ca_certificates = ca_certificates
        self._connect_timeout = min(connect_timeout, TIMEOUT)
        self._read_timeout = min(read_timeout, TIMEOUT)

    def post(self, request: MakeRequest) -> Reply | KafkaConnectionError:
        """Send a request and read its answer.

        Errors are returned, without a cause: the frames of this module, and of those that it calls,
        hold secrets, and an error that is raised takes its frames along.

        Args:
            request: returns the headers and the body, when they are sent.

        Returns:
            The answer; or AuthenticationError, or KafkaConnectionError if the same may succeed.
        """
        try:
            deadline = time.monotonic() + TIMEOUT
            with self._connected(deadline) as link:
                self._send(link, *request())
                return self._answer(link, deadline)
        except ssl.SSLCertVerificationError as error:
            return AuthenticationError(
                f"needs a token, and the certificate of {self.shown} is not trusted: "
                f"{as_told(error.verify_message)}"
            )
        except OSError as error:
            why = as_told(str(error) or type(error).__name__)
            return self._not_reached(f"cannot be asked: {why}")
        except http.client.IncompleteRead:
            return self._not_reached("stopped in its answer")
        except _TooLongError:
            return self._refused(f"sent more than {REPLY_MAX} bytes")
        except (http.client.HTTPException, ValueError) as error:
            return self._refused(f"does not answer in HTTP ({type(error).__name__})")

    def _not_reached(self, what: str) -> KafkaConnectionError:
        text = f"needs a token, and {self.shown} {what}"
        return KafkaConnectionError(text, reason=ConnectionReason.LOGIN)

    def _refused(self, what: str) -> AuthenticationError:
        return AuthenticationError(f"needs a token, and {self.shown} {what}")

    def _connected(self, deadline: float) -> ssl.SSLSocket:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # unlike the default: no SSLKEYLOGFILE
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self._ca_location is None and self._ca_certificates is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(self._ca_location, cadata=self._ca_certificates)
        host, port = self._address
        failure: OSError = TimeoutError("no address answers in time")
        end = min(deadline, time.monotonic() + self._connect_timeout)
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        ):
            left = end - time.monotonic()
            if left <= 0:
                break
            bare = socket.socket(family, kind, protocol)
            try:
                bare.settimeout(left)
                bare.connect(address)
                return context.wrap_socket(bare, server_hostname=host)
            except ssl.SSLError:
                bare.close()
                raise
            except OSError as error:
                bare.close()
                failure = error
        raise failure

    def _send(self, link: ssl.SSLSocket, headers: dict[str, str], body: bytes) -> None:
        lines = [
            f"POST {self._target} HTTP/1.1",
            f"Host: {self._host_header}",
            "Connection: close",
            "Accept: application/json",
            "Content-Type: application/x-www-form-urlencoded",
            f"Content-Length: {len(body)}",
            *[f"{name}: {value}" for name, value in headers.items()],
        ]
        link.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    def _answer(self, link: ssl.SSLSocket, deadline: float) -> Reply | KafkaConnectionError:
        incoming = _Incoming(link, deadline, self._read_timeout)
        with http.client.HTTPResponse(incoming, method="POST") as response:  # type: ignore[arg-type]
            response.begin()
            body = response.read()
        fields = _object(body) if _is_json(response) else None
        if response.status in MAY_PASS:
            return self._not_reached(f"answered {_problem(response, fields)}")
        if 300 <= response.status < 400:
            return self._refused(f"answered {response.status}: redirects are not followed")
        if response.status != 200:
            return self._refused(f"answered {_problem(response, fields)}")
        if fields is None:
            return self._refused("answered with something else than a JSON object")
        return Reply(fields)


class _TooLongError(Exception):
    """More bytes than an answer may have."""


class _Incoming(io.RawIOBase):
    """What `http.client` takes for a socket: ends at a deadline and at a size."""

    def __init__(self, link: ssl.SSLSocket, deadline: float, timeout: float) -> None:
        self._link = link
        self._deadline = deadline
        self._timeout = timeout
        self._left = REPLY_MAX

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the answer takes too long")
        self._link.settimeout(min(left, self._timeout))
        count = self._link.recv_into(buffer)
        self._left -= count
        if self._left < 0:
            raise _TooLongError
        return count


def _is_json(response: http.client.HTTPResponse) -> bool:
    kind = response.headers.get_content_type()
    return kind == "application/json" or kind.endswith("+json")


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _problem(response: http.client.HTTPResponse, fields: dict[str, Any] | None) -> str:
    """Return status and reason, and what the provider says (RFC 6749 §5.2)."""
    said = [f"{response.status} {as_told(response.reason)}".strip()]
    for name in ("error", "error_description"):
        value = (fields or {}).get(name)
        if isinstance(value, str):
            said.append(as_told(value))
    return ": ".join(said)
