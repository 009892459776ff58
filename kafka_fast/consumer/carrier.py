"""Translates between a consumer's planes; `net.carrier` does so for the planes of any client.

`_fetch_carrier` is made by a build, see `control.command_fields`.
"""

from __future__ import annotations

from typing import Any

from kafka_fast.consumer._fetch_carrier import carry_fetch
from kafka_fast.control.consumer.messages import (
    ConsumerEvent,
    FetchCommand,
    FetchPunt,
    RemoveStream,
    StreamRow,
    StreamsStopped,
)
from kafka_fast.dataplane.fetch import _streams
from kafka_fast.dataplane.fetch._streams import Streams
from kafka_fast.net import carrier


def read_event(event: tuple[Any, ...]) -> ConsumerEvent:
    """Return the control plane's record for one of the data plane's events."""
    kind, link_id, code, _, _, frame, told = event
    if kind == _streams.EVENT_STREAMS_STOPPED:
        return StreamsStopped(tuple(StreamRow(*row) for row in told))
    if kind == _streams.EVENT_FETCH_PUNT:
        return FetchPunt(link_id, code, frame, tuple(StreamRow(*row) for row in told))
    return carrier.read_event(event)


def carry_out(streams: Streams, command: FetchCommand) -> None:
    """Carry out a command of the data plane's fetch side."""
    carry_fetch(command, streams)
    if isinstance(command, RemoveStream):
        streams.forget(command.stream_id)
