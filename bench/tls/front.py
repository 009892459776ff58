"""A TLS server before the null broker, in a process of its own: it decrypts, and passes bytes on.

    python bench/tls/front.py 40001 40002 --certificate server.pem --clients-of ca.pem

It listens once for each port of the null broker, prints the ports at which it does, and ends with
its standard input. Without `--certificate` it passes bytes on as they are: a client behind such a
front differs from one behind a front with TLS in nothing but TLS. `--clients-of` asks for a
certificate of this authority.

Each connection has a thread, which sleeps in poll(2) until either side has something.
"""

from __future__ import annotations

import argparse
import contextlib
import select
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from kafka_fast.testing.certificates import CertificateAuthority
from tests.support.null_broker import NullBroker

LOOPBACK = "127.0.0.1"
BACKLOG = 512
READ_SIZE = 256 << 10


@dataclass(frozen=True, slots=True)
class Papers:
    """Files of an authority and of what it has issued.

    Attributes:
        authority: its certificate.
        server: the front's certificate and key.
        client: a client's.
    """

    authority: Path
    server: Path
    client: Path

    def client_properties(self) -> dict[str, str]:
        """Return how a client connects, in names that kafka_fast and librdkafka both take."""
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.authority),
            "ssl.certificate.location": str(self.client),
            "ssl.key.location": str(self.client),
        }


def make_papers(folder: Path) -> Papers:
    """Issue certificates for a front and its clients."""
    authority = CertificateAuthority(folder)
    server, client = authority.issue(LOOPBACK), authority.issue("client.test")
    return Papers(authority.certificate, server.both, client.both)


def put_behind_front(
    stack: ExitStack, broker: NullBroker, nodes: list[int], papers: Papers | None
) -> str:
    """Start a front before some nodes, which go by its addresses from then on.

    Args:
        stack: closes it.
        broker: the null broker.
        nodes: ids.
        papers: for mutual TLS; None: plaintext.

    Returns:
        The address of the first of these nodes.
    """
    ports = broker.ports
    command = [sys.executable, __file__, *(str(ports[node - 1]) for node in nodes)]
    if papers is not None:
        command += [f"--certificate={papers.server}", f"--clients-of={papers.authority}"]
    front = stack.enter_context(
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    )
    assert front.stdin is not None
    assert front.stdout is not None
    stack.callback(front.stdin.close)
    there = [int(port) for port in front.stdout.readline().split()]
    for node, port in zip(nodes, there, strict=True):
        broker.advertise(node, LOOPBACK, port)
    return f"{LOOPBACK}:{there[0]}"


def main() -> int:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description="Put TLS before the null broker.")
    parser.add_argument("ports", type=int, nargs="+", help="of the null broker")
    parser.add_argument("--certificate", help="chain and key; default: no TLS")
    parser.add_argument("--clients-of", help="an authority: clients need a certificate of it")
    options = parser.parse_args()
    listen(options.ports, server_context(options.certificate, options.clients_of))
    return 0


def server_context(certificate: str | None, clients_of: str | None) -> ssl.SSLContext | None:
    """Return how the front speaks TLS; None: it does not."""
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    if clients_of is not None:
        context.load_verify_locations(clients_of)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def listen(ports: list[int], context: ssl.SSLContext | None) -> None:
    """Print where the front listens, and accept connections until standard input ends."""
    upstream = {}
    for port in ports:
        listener = socket.create_server((LOOPBACK, 0), backlog=BACKLOG)
        upstream[listener.fileno()] = listener, port
    print(*(listener.getsockname()[1] for listener, _ in upstream.values()), flush=True)
    poller = select.poll()
    for fd in (sys.stdin.fileno(), *upstream):
        poller.register(fd, select.POLLIN)
    while True:
        for fd, _ in poller.poll():
            if fd == sys.stdin.fileno():
                return
            listener, port = upstream[fd]
            near, _ = listener.accept()
            threading.Thread(target=serve, args=(near, port, context), daemon=True).start()


def serve(near: socket.socket, port: int, context: ssl.SSLContext | None) -> None:
    """Pass the bytes of one connection on until either side closes it."""
    with contextlib.suppress(OSError), near:
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        side = near if context is None else context.wrap_socket(near, server_side=True)
        with side, socket.create_connection((LOOPBACK, port)) as far:
            far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pass_on(side, far)


def pass_on(near: socket.socket, far: socket.socket) -> None:
    """Copy in both directions."""
    poller = select.poll()
    others = {near.fileno(): (near, far), far.fileno(): (far, near)}
    for fd in others:
        poller.register(fd, select.POLLIN)
    while True:
        for fd, _ in poller.poll():
            source, target = others[fd]
            data = source.recv(READ_SIZE)
            while isinstance(source, ssl.SSLSocket) and source.pending():
                data += source.recv(READ_SIZE)
            if not data:
                return
            target.sendall(data)


if __name__ == "__main__":
    sys.exit(main())
