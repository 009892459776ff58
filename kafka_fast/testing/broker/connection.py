"""One client connection of one broker: bytes to frames, and frames waiting for their turn.

Like Kafka a broker answers one request of a connection at a time: while one is being answered, or
the connection is muted, later ones wait here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from kafka_fast.errors import FrameTooLargeError, MalformedError
from kafka_fast.testing.broker.acls import ANONYMOUS
from kafka_fast.testing.broker.sasl.dialogue import SaslDialogue

LENGTH_SIZE = 4


class FrameBuffer:
    """Cuts a stream of bytes into frames, each a 4-byte length and that many bytes."""

    def __init__(self, max_frame_size: int) -> None:
        """Refuse frames of more than `max_frame_size` bytes."""
        self.max_frame_size = max_frame_size
        self._buffer = bytearray()

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        """Add bytes and yield each frame that is whole, without its length.

        Raises:
            FrameTooLargeError: the announced length is above the limit.
            MalformedError: it is negative.
        """
        self._buffer += data
        pos = 0
        try:
            while len(self._buffer) - pos >= LENGTH_SIZE:
                length = int.from_bytes(self._buffer[pos : pos + LENGTH_SIZE], "big", signed=True)
                self._check(length)
                if len(self._buffer) - pos - LENGTH_SIZE < length:
                    break
                start = pos + LENGTH_SIZE
                pos = start + length
                yield bytes(memoryview(self._buffer)[start:pos])
        finally:
            del self._buffer[:pos]

    def _check(self, length: int) -> None:
        if length < 0:
            raise MalformedError(f"frame of {length} bytes")
        if length > self.max_frame_size:
            raise FrameTooLargeError(f"frame of {length} bytes, limit {self.max_frame_size}")


class Connection:
    """The state of one connection; the broker that accepted it drives it."""

    def __init__(
        self,
        connection_id: int,
        max_frame_size: int,
        user: str = ANONYMOUS,
        sasl: SaslDialogue | None = None,
    ) -> None:
        """Store who the client is, which `sasl` may still find out.

        Args:
            connection_id: among the broker's.
            max_frame_size: bytes.
            user: whom the client's certificate names.
            sasl: how the client says who it is; None: it need not.
        """
        self.connection_id = connection_id
        self.buffer = FrameBuffer(max_frame_size)
        self.waiting: deque[bytes] = deque()  # frames that came while it was busy
        self.waiting_size = 0  # bytes of these
        self.busy = False  # a request is being answered, or the connection is muted
        self.ending = False  # authentication failed; nothing more is handled
        self.closed = False
        self.sasl = sasl
        self._user = user

    @property
    def user(self) -> str:
        """Return who the client is."""
        return self._user if self.sasl is None else self.sasl.user

    @property
    def stands_still(self) -> bool:
        """Tell whether the next request has to wait, or is not handled at all."""
        return self.busy or self.ending or self.closed

    def push(self, frame: bytes) -> None:
        """Let a frame wait for its turn."""
        self.waiting.append(frame)
        self.waiting_size += len(frame)

    def pop(self) -> bytes:
        """Return the frame whose turn it is."""
        frame = self.waiting.popleft()
        self.waiting_size -= len(frame)
        return frame
