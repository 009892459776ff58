"""Translates between a consumer's planes; `client_carrier` does so for those of any client.

`_fetch_carrier` is made by a build, see `control.message_fields`.
"""

from __future__ import annotations

from kafka_fast.consumer._fetch_carrier import carry_fetch, read_fetch
from kafka_fast.control.consumer.consumer_messages import ConsumerEvent, FetchCommand, RemoveStream
from kafka_fast.control.messages import DumpEvent
from kafka_fast.dataplane.core._events import PlaneEvent
from kafka_fast.dataplane.fetch._streams import Streams
from kafka_fast.net.core.client_carrier import in_words


def read_event(event: PlaneEvent) -> ConsumerEvent | DumpEvent:
    """Return the control plane's record for one of the data plane's events."""
    return in_words(read_fetch(event))


def carry_out(streams: Streams, command: FetchCommand) -> None:
    """Carry out a command of the data plane's fetch side."""
    carry_fetch(command, streams)
    if isinstance(command, RemoveStream):
        streams.forget_stream(command.stream_id)
