"""The records that pass between the consumer's control plane and what it programs.

They stand beside those of `control.plane`, which every client has. A *stream* is a partition that
is being fetched; its id counts the streams of the client. A *generation* says which start of a
stream something belongs to: its upper half counts the user's seeks, its lower half the starts that
the control plane made since, so that both can raise it without asking each other.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from kafka_fast.control import plane
from kafka_fast.control.group.member import GroupNews
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

    stream_id: int
    generation: int
    error_code: int
    """Of its part of the answer; 0: something else in it was not plain, or the link is gone."""
    fetch_position: int
    """Where the next fetch would begin."""
    last_epoch: int
    """Leader epoch of the last batch that was fetched, or -1."""


class StreamsStopped(Value):
    """These streams stand still: stopped by command, or their link is gone."""

    rows: tuple[StreamRow, ...]


class FetchPunt(Value):
    """A Fetch answer in which not everything is plain; the streams concerned stand still."""

    link_id: int
    version: int
    frame: bytes
    rows: tuple[StreamRow, ...]


ConsumerEvent: TypeAlias = plane.PlaneEvent | StreamsStopped | FetchPunt


# ---- commands for the data plane ----


class ProgramFetch(Value):
    """Let a link carry Fetch requests of this version."""

    link_id: int
    version: int
    prefix: bytes
    """The request up to and with the session epoch (isolation level before v7), length blank."""
    suffix: bytes
    """What follows the arrays of topics."""


class NameStream(Value):
    """Set how requests up to `version`'s form name the stream's topic."""

    stream_id: int
    version: int
    field: bytes


class StartStream(Value):
    """Fetch from here on, over this link; dropped if the stream's generation is newer."""

    stream_id: int
    link_id: int
    generation: int
    offset: int
    leader_epoch: int


class StopStream(Value):
    """Fetch no more; answered by `StreamsStopped`."""

    stream_id: int
    generation: int


class RemoveStream(Value):
    """Forget a stream and what was fetched of it; the user's thread has made it."""

    stream_id: int


# ---- news for the user's thread ----


class PartitionFailed(Value):
    """Raise this at the next poll, once what was fetched before it has been handed over."""

    partition: TopicPartition
    seeks: int
    error: KafkaError
    is_final: bool
    """The partition stays there until the user seeks: every poll has to say so."""


class PartitionFound(Value):
    """A partition that was said not to exist does exist now: it has not failed any more."""

    partition: TopicPartition
    seeks: int


class Reposition(Value):
    """Seek there at the next poll: what was fetched behind it is not in the log any more."""

    partition: TopicPartition
    seeks: int
    offset: int
    epoch: int


class Positioned(Value):
    """Reading goes on here, once what was fetched before has been handed over."""

    partition: TopicPartition
    generation: int
    """Of the start from there: its records may arrive before this is read."""
    offset: int
    epoch: int
    """Leader epoch of the record before; -1 if it is not known."""


class Recreated(Value):
    """The partition's topic was deleted and made anew: at the next poll, forget what was read.

    Until `ConsumerControl.begin_again` answers, what the user's thread knows of the partition, and
    commits, is the old one's.
    """

    partition: TopicPartition
    seeks: int


class BrokerFailed(Value):
    """Raise this at the next poll: for seconds, nothing but nonsense has come from a node."""

    error: KafkaError
    is_urgent: bool
    """It concerns the records of partitions, so raise it even if others bring records."""
    at: float
    """When it was so; a user who comes back much later asks anew."""


News: TypeAlias = (
    PartitionFailed | PartitionFound | Reposition | Positioned | Recreated | BrokerFailed
)

ConsumerCommand: TypeAlias = (
    plane.Command
    | ProgramFetch
    | NameStream
    | StartStream
    | StopStream
    | RemoveStream
    | News
    | GroupNews
)
