"""Bytes of a connection into frames."""

from __future__ import annotations

import pytest

from kafka_fast.errors import FrameTooLargeError, MalformedError
from kafka_fast.testing.broker.connection import Connection, FrameBuffer

STREAM = b"\0\0\0\3abc" + b"\0\0\0\0" + b"\0\0\0\1d"


@pytest.mark.parametrize("step", range(1, len(STREAM) + 1))
def test_frames_come_out_whole_however_the_bytes_come_in(step: int) -> None:
    buffer = FrameBuffer(100)
    frames: list[bytes] = []
    for pos in range(0, len(STREAM), step):
        frames += buffer.feed(STREAM[pos : pos + step])
    assert frames == [b"abc", b"", b"d"]


def test_a_frame_over_the_limit_is_refused_before_it_is_read() -> None:
    buffer = FrameBuffer(10)
    assert list(buffer.feed(b"\0\0\0\x0a" + b"x" * 10)) == [b"x" * 10]
    with pytest.raises(FrameTooLargeError):
        list(buffer.feed(b"\0\0\0\x0b"))


def test_a_negative_length_is_malformed() -> None:
    with pytest.raises(MalformedError):
        list(FrameBuffer(10).feed(b"\xff\xff\xff\xff"))


def test_waiting_frames_are_counted_in_bytes() -> None:
    connection = Connection(1, 100)
    connection.push(b"abc")
    connection.push(b"de")
    assert connection.waiting_size == 5
    assert connection.pop() == b"abc"
    assert connection.waiting_size == 2
