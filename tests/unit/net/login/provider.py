"""An identity provider on loopback, over TLS, that answers as a test says."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs

from kafka_fast.testing.certificates import Certificate

Serve = Callable[[ssl.SSLSocket], None]


def answer(
    status: str = "200 OK",
    body: bytes | dict[str, object] = b"",
    *headers: str,
    content_type: str = "application/json",
) -> bytes:
    """Return an answer in HTTP."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(data)}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + data


class Provider:
    """One request a connection; `requests` has what it has read."""

    def __init__(self, certificate: Certificate) -> None:
        self.requests: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self.answers: list[bytes | Serve] = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.chain, certificate.key)
        self._context = context
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.url = f"https://localhost:{self.port}/token"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(30)

    def _run(self) -> None:
        while True:
            try:
                link, _ = self._listening.accept()
            except OSError:
                return
            with link, contextlib.suppress(OSError):
                link.settimeout(30)
                with self._context.wrap_socket(link, server_side=True) as secure:
                    self._serve(secure)

    def _serve(self, link: ssl.SSLSocket) -> None:
        self.requests.append(_read(link))
        reply = self.answers.pop(0)
        if callable(reply):
            reply(link)
        else:
            link.sendall(reply)


def _read(link: ssl.SSLSocket) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return the request line, headers, and the form."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += link.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    line, *rest = head.decode().split("\r\n")
    headers = dict(one.split(": ", 1) for one in rest)
    while len(body) < int(headers["Content-Length"]):
        body += link.recv(65536)
    return line, headers, {name: value[0] for name, value in parse_qs(body.decode()).items()}


@contextlib.contextmanager
def serving(certificate: Certificate) -> Iterator[Provider]:
    provider = Provider(certificate)
    try:
        yield provider
    finally:
        provider.close()
