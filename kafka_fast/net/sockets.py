"""What the control plane needs of the operating system: connecting sockets and resolving names.

Neither may block the control thread. Sockets connect while the control thread sleeps. Each look-up
has a thread of its own, because the resolver cannot be interrupted. The exception is the end of the
process, when CPython 3.12 and later can start no thread: the control thread then looks up in place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
from collections.abc import Callable

from kafka_fast.config import CommonSettings
from kafka_fast.control.messages import OpenLink
from kafka_fast.net.host import Addresses
from kafka_fast.values import Value


def resolve(host: str, done: Callable[[Addresses], None]) -> None:
    """Look `host` up in a thread of its own and hand all its addresses to `done` there.

    While the interpreter ends, this call blocks for the look-up and calls `done` in this thread.
    """

    def look_up() -> None:
        try:
            addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            done(error)
            return
        except ValueError:  # brokers may advertise anything: labels that are empty or too long
            done(OSError(errno.EINVAL, "it is no host name"))
            return
        done(tuple(dict.fromkeys(str(address[4][0]) for address in addresses)))

    try:
        threading.Thread(target=look_up, name="kf-dns", daemon=True).start()
    except RuntimeError:  # the interpreter ends, or the process is out of threads
        look_up()


KEEP_ALIVE = {
    socket.TCP_KEEPIDLE: 60,
    socket.TCP_KEEPINTVL: 10,
    socket.TCP_KEEPCNT: 3,
}
"""Seconds without traffic before a probe, seconds between two probes, and how many may be lost.

Linux would wait for two hours. A load balancer forgets an idle connection after some minutes, and
says nothing; the next request would then be waited for in vain until request.timeout.ms.
"""


class Connecting(Value, frozen=False):
    """A socket that is still connecting."""

    link_id: int
    node_id: int
    host: str
    """What the certificate must name, if there is one."""
    socket: socket.socket
    deadline: float


def begin_connect(command: OpenLink, settings: CommonSettings) -> Connecting:
    """Start to connect a socket.

    Raises:
        OSError: the connection was refused at once, or there are no sockets left.
    """
    family = socket.AF_INET6 if ":" in command.ip else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    with contextlib.ExitStack() as on_error:
        on_error.callback(sock.close)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _keep_alive(sock)
        if settings.send_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer_bytes)
        if settings.receive_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)
        code = sock.connect_ex((command.ip, command.port))
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
        on_error.pop_all()
    return Connecting(command.link_id, command.key.node_id, command.host, sock, command.deadline)


def _keep_alive(sock: socket.socket) -> None:
    """Have the kernel find out that the other side of an idle connection is gone."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEP_ALIVE.items():
        sock.setsockopt(socket.IPPROTO_TCP, option, value)


def finish_connect(connecting: Connecting) -> None:
    """See whether a socket that has become writable is connected.

    Raises:
        OSError: the connection has failed; the socket is closed.
    """
    code = connecting.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code != 0:
        connecting.socket.close()
        raise OSError(code, os.strerror(code))
