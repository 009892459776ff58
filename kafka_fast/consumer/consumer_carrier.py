"""Translates between a consumer's planes; `client_carrier` does so for those of any client.

`_fetch_carrier` is made by a build, see `control.command_fields`.
"""

from __future__ import annotations

from kafka_fast.consumer._fetch_carrier import carry_fetch
from kafka_fast.control.consumer.consumer_messages import (
    ConsumerEvent,
    FetchCommand,
    FetchPunt,
    RemoveStream,
    StreamRow,
    StreamsStopped,
)
from kafka_fast.control.messages import DumpEvent
from kafka_fast.dataplane.core._events import PlaneEvent
from kafka_fast.dataplane.core.constructors import EventConstructors
from kafka_fast.dataplane.fetch._streams import Streams
from kafka_fast.net.core.client_carrier import NoQueues, TransportConstructors


class FetchConstructors(TransportConstructors, NoQueues):
    """For a client that fetches."""

    def stream_row(
        self, stream_id: int, generation: int, error_code: int, position: int, last_epoch: int
    ) -> StreamRow:
        return StreamRow(stream_id, generation, error_code, position, last_epoch)

    def fetch_punt(
        self, link_id: int, version: int, frame: bytes, streams: tuple[StreamRow, ...]
    ) -> FetchPunt:
        return FetchPunt(link_id, version, frame, streams)

    def streams_stopped(self, streams: tuple[StreamRow, ...]) -> StreamsStopped:
        return StreamsStopped(streams)


_CONSTRUCTORS: EventConstructors[ConsumerEvent | DumpEvent] = FetchConstructors()


def read_event(event: PlaneEvent) -> ConsumerEvent | DumpEvent:
    """Return the control plane's record for one of the data plane's events."""
    return event.read(_CONSTRUCTORS)


def carry_out(streams: Streams, command: FetchCommand) -> None:
    """Carry out a command of the data plane's fetch side."""
    carry_fetch(command, streams)
    if isinstance(command, RemoveStream):
        streams.forget_stream(command.stream_id)
