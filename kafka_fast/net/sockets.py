"""What the control plane needs of the operating system: sockets that connect, names that resolve.

Neither may block the control thread: sockets connect while the loop sleeps, and each look-up has a
thread of its own for as long as it takes (the resolver cannot be interrupted). The exception is the
end of the process, when no thread can be started (CPython 3.12 and later): the control thread then
looks up in place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
from collections.abc import Callable

from kafka_fast.config import CommonSettings
from kafka_fast.control.plane import OpenLink
from kafka_fast.net.host import Addresses
from kafka_fast.values import Value


def resolve(host: str, done: Callable[[Addresses], None]) -> None:
    """Look `host` up in a thread of its own and hand all its addresses to `done` there.

    While the interpreter ends this takes as long as the look-up does, and `done` is called here.
    """

    def look_up() -> None:
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            done(error)
            return
        done(tuple(dict.fromkeys(str(address[4][0]) for address in found)))

    try:
        threading.Thread(target=look_up, name="kf-dns", daemon=True).start()
    except RuntimeError:  # the interpreter ends, or the process is out of threads
        look_up()


class Connecting(Value, frozen=False):
    """A socket that is on its way to a peer."""

    link_id: int
    node_id: int
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
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if settings.send_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer_bytes)
        if settings.receive_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)
        code = sock.connect_ex((command.ip, command.port))
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
        on_error.pop_all()
    return Connecting(command.link_id, command.key.node_id, sock, command.deadline)


def finish_connect(connecting: Connecting) -> int:
    """Return the file descriptor of a socket that is writable now.

    Raises:
        OSError: it could not be connected; the socket is closed.
    """
    code = connecting.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code != 0:
        connecting.socket.close()
        raise OSError(code, os.strerror(code))
    return connecting.socket.detach()
