"""What only the relay has to look after."""

from __future__ import annotations

import os
import select
import socket
import ssl

import pytest

from kafka_fast.net.tls.relay import close_forgotten
from kafka_fast.testing.broker.serving.sockets import LINGER_NONE


def test_a_connection_that_was_reset_before_its_handshake_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        near = socket.create_connection(listening.getsockname())
        far, _ = listening.accept()
    far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NONE)
    far.close()
    waiting = select.poll()
    waiting.register(near, select.POLLIN)
    waiting.poll(10_000)
    number = near.fileno()
    with pytest.raises(ConnectionResetError) as raised:
        ssl.create_default_context().wrap_socket(near, server_hostname="broker")
    close_forgotten(raised.value)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
