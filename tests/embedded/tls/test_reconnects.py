"""Thousands of links over TLS that a broker drops: memory and descriptors stay as they are."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafka_fast import Producer
from kafka_fast.testing.certificates import Certificate, CertificateAuthority
from tests.embedded.producing import MIB, entries
from tests.embedded.tls.harness import server_context
from tests.memory import resident_bytes
from tests.waiting import eventually


@contextmanager
def dropping(context: ssl.SSLContext, counts: list[int]) -> Iterator[str]:
    """Shake hands with everybody, one after the other in one thread, and close the link."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=16)

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError):
                context.wrap_socket(connection, server_side=True).close()
            connection.close()
            counts[0] += 1

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    host, port = listener.getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(30)


@pytest.mark.parametrize(
    "count", [1_000, pytest.param(10_000, marks=[pytest.mark.long, pytest.mark.timeout(600)])]
)
def test_links_that_come_and_go_leave_nothing(
    way: str,
    count: int,
    certificate: Certificate,
    authority: CertificateAuthority,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFKA_FAST_TLS", way)
    counts = [0]
    with dropping(server_context(certificate), counts) as address:
        properties = {
            "bootstrap.servers": address,
            "security.protocol": "SSL",
            "ssl.ca.location": str(authority.certificate),
            "reconnect.backoff.ms": 1,
            "reconnect.backoff.max.ms": 1,
        }
        with Producer(properties):
            eventually(lambda: counts[0] >= count // 4, "the first links", timeout=300)
            memory = resident_bytes()
            files, tasks = (len(entries(f"/proc/self/{kind}")) for kind in ("fd", "task"))
            eventually(lambda: counts[0] >= count, "all links", timeout=300)
            eventually(lambda: len(entries("/proc/self/fd")) <= files + 4)
            # The memory of a sanitizer or an emulator counts as well.
            if not {"KAFKA_FAST_SANITIZER", "KAFKA_FAST_EMULATOR"} & os.environ.keys():
                assert resident_bytes() - memory < 8 * MIB
            eventually(lambda: len(entries("/proc/self/task")) <= tasks + 2)
