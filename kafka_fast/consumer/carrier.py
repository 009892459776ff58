"""Translates between a consumer's planes; `net.carrier` does so for the planes of any client."""

from __future__ import annotations

from typing import Any

from kafka_fast.control.consumer.messages import (
    ConsumerCommand,
    ConsumerEvent,
    FetchPunt,
    NameStream,
    ProgramFetch,
    RemoveStream,
    StartStream,
    StopStream,
    StreamRow,
    StreamsStopped,
)
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.dataplane.fetch import _streams
from kafka_fast.dataplane.fetch._streams import Streams, topic_format
from kafka_fast.net import carrier


def read_event(event: tuple[Any, ...]) -> ConsumerEvent:
    """Return the control plane's record for one of the data plane's events."""
    kind, link_id, code, _, _, frame, told = event
    if kind == _streams.EVENT_STREAMS_STOPPED:
        return StreamsStopped(tuple(StreamRow(*row) for row in told))
    if kind == _streams.EVENT_FETCH_PUNT:
        return FetchPunt(link_id, code, frame, tuple(StreamRow(*row) for row in told))
    return carrier.read_event(event)


def carry_out(plane: DataPlane, streams: Streams, command: ConsumerCommand) -> bool:
    """Carry out a command of the data plane; return False for any other command."""
    match command:
        case StartStream(stream_id, link_id, generation, offset, leader_epoch):
            streams.start_stream(stream_id, link_id, generation, offset, leader_epoch)
        case StopStream(stream_id, generation):
            streams.stop_stream(stream_id, generation)
        case RemoveStream(stream_id):
            streams.remove_stream(stream_id)
        case NameStream(stream_id, version, field):
            streams.name_stream(stream_id, topic_format(version), field)
        case ProgramFetch(link_id, version, prefix, suffix):
            streams.program_fetch(link_id, version, prefix, suffix)
        case _:
            return carrier.carry_out(plane, command)
    return True
