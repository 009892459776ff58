"""The messages between a consumer's control plane, its fetch side, and its user's thread.

`control.messages` has those of every client. A *stream* is one
partition that is fetched; its id counts the streams of the client. A *generation* tells to which
start of a stream something belongs. Its upper half counts the user's seeks. Its lower half counts
the starts by the control plane since the last seek. So both threads can raise the generation
without asking each other.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from kafka_fast.control.connections.connection_key import ConnectionKey
from kafka_fast.control.connections.unreadable import Row
from kafka_fast.control.group.member import GroupNews
from kafka_fast.control.message_fields import Int16, Int32, Int64, StreamId
from kafka_fast.control.messages import ClientCommand, TransportEvent
from kafka_fast.errors import KafkaError
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value

GENERATION_SHIFT = 32


def generation(seeks: int, starts: int) -> int:
    """Return the generation of the `starts`-th start since the `seeks`-th seek."""
    return seeks << GENERATION_SHIFT | starts


def seeks_of(generation_: int) -> int:
    """Return how many seeks a generation counts."""
    return generation_ >> GENERATION_SHIFT


# ---- events ----


class StreamRow(NamedTuple):
    """A stream that is not fetched any more, in an event."""

    stream_id: Int64
    generation: Int64
    error_code: Int16
    """Of its part of the answer; 0: another reason than an error, or the link is gone."""
    fetch_position: Int64
    """Where the next fetch would begin."""
    last_epoch: Int32
    """Leader epoch of the last batch that was fetched, or -1."""


class StreamsStopped(Value):
    """These streams have stopped: by command, or because their link is gone."""

    rows: tuple[StreamRow, ...]


class FetchPunt(Value):
    """A Fetch answer in which not everything is plain success; the streams concerned stopped."""

    link_id: Int32
    version: Int16
    frame: bytes
    rows: tuple[StreamRow, ...]


FetchEvent: TypeAlias = StreamsStopped | FetchPunt
"""What only a consumer has."""

ConsumerEvent: TypeAlias = TransportEvent | FetchEvent


# ---- commands for the data plane ----


class ProgramFetch(Value):
    """Let a link carry Fetch requests of this version."""

    link_id: Int32
    version: Int16
    prefix: bytes
    """The request up to and including the session epoch (before v7: isolation level)."""
    suffix: bytes
    """The request after the arrays of topics."""


class NameStream(Value):
    """Set the field that names the topic, for requests of the same form as `version`."""

    stream_id: StreamId
    version: Int16
    field: bytes


class StartStream(Value):
    """Fetch from this offset over this link. Dropped if the stream has a newer generation."""

    stream_id: StreamId
    link_id: Int32
    generation: Int64
    offset: Int64
    leader_epoch: Int32


class StopStream(Value):
    """Stop a stream; answered by `StreamsStopped`."""

    stream_id: StreamId
    generation: Int64


class RemoveStream(Value):
    """Remove a stream, which the user's thread has made, and everything fetched for it."""

    stream_id: StreamId


class AddStream(Value):
    """Know a stream, which stands still until it is named and started; `Streams` sends this."""

    stream_id: StreamId


class PauseStream(Value):
    """Fetch no more of a stream for a while; `Streams` sends this for its user's thread."""

    stream_id: StreamId
    paused: bool


FetchCommand: TypeAlias = (
    ProgramFetch | AddStream | NameStream | StartStream | StopStream | PauseStream | RemoveStream
)


# ---- news for the user's thread ----


class PartitionFailed(Value):
    """Raise this at the next poll, once all records fetched before it were handed over.

    Nothing is raised if the partition is fetched again by then, unless `is_final`.
    """

    partition: TopicPartition
    seeks: int
    error: KafkaError
    is_final: bool
    """The partition stands still until the user seeks, so every poll raises this."""


class PartitionFound(Value):
    """A partition that did not exist exists now: stop raising its `PartitionFailed`."""

    partition: TopicPartition
    seeks: int


class Reposition(Value):
    """Seek to this offset at the next poll: the log was truncated there."""

    partition: TopicPartition
    seeks: int
    offset: int
    epoch: int


class Positioned(Value):
    """Reading goes on at this offset, once all records fetched before were handed over."""

    partition: TopicPartition
    generation: int
    """The generation of the start at this offset. Its records may arrive before this news."""
    offset: int
    epoch: int
    """Leader epoch of the record before the offset; -1 if unknown."""


class Recreated(Value):
    """The partition's topic was deleted and recreated: at the next poll, forget what was read.

    The user's thread answers with `ConsumerControl.begin_again`. Until then, the positions that it
    knows and commits are those of the deleted topic.
    """

    partition: TopicPartition
    seeks: int


class BrokerFailed(Value):
    """Raise this at the next poll: a node refuses this client, or sends only unreadable answers."""

    error: KafkaError
    is_urgent: bool
    """It is a node that partitions are read from: raise this even if others bring records."""
    at: float
    """When this was found. A user who polls much later asks the node again instead."""
    refused: ConnectionKey | None = None
    """The connection, if it was refused. Nothing is raised once it is made."""
    unreadable: Row | None = None
    """The row of unreadable answers, if there was one. Nothing is raised once one can be read."""


News: TypeAlias = (
    PartitionFailed | PartitionFound | Reposition | Positioned | Recreated | BrokerFailed
)

OwnCommand: TypeAlias = FetchCommand | News | GroupNews
"""What only a consumer has."""

ConsumerCommand: TypeAlias = ClientCommand | OwnCommand
