"""The topology of a Kafka Streams application, as its group keeps it (KIP-1331).

`subtopologies` of a streams group are what its coordinator needs for the assignment. This is all of
it, as the application would print it: each processor, its stores, and how they are connected.
"""

from __future__ import annotations

import enum

from kafka_fast.control.admin.types.open_numbers import OpenNumber
from kafka_fast.values import Value


class StreamsTopologyStatus(OpenNumber):
    """Whether a group's topology is described, and why it is not; the numbers are Kafka's."""

    NOT_REQUESTED = 0
    """Nobody asked for it."""
    NOT_STORED = 1
    """The brokers have none: no member has sent it, or they are not configured to keep it."""
    ERROR = 2
    """The broker could not read it: its log says why."""
    AVAILABLE = 3
    """It is described."""
    UNKNOWN = -1
    """Of a newer broker."""


class StreamsTopologyNodeType(enum.Enum):
    """What a node of a topology does."""

    SOURCE = 1
    """It reads records from topics."""
    PROCESSOR = 2
    """It works on records, with its stores."""
    SINK = 3
    """It writes records to a topic."""
    UNKNOWN = -1
    """Of a newer broker."""

    @classmethod
    def _missing_(cls, value: object) -> StreamsTopologyNodeType:
        """Return UNKNOWN."""
        return cls.UNKNOWN


class StreamsTopologyNode(Value):
    """A source, a processor or a sink."""

    name: str
    type: StreamsTopologyNodeType
    predecessors: frozenset[str]
    """The names of the nodes whose records it gets."""
    successors: frozenset[str]
    """The names of the nodes that get its records."""
    source_topics: frozenset[str] = frozenset()
    """Of a source: the topics that it reads."""
    sink_topic: str | None = None
    """Of a sink: where it writes; None: its code chooses the topic of each record."""
    stores: frozenset[str] = frozenset()
    """Of a processor: the names of its state stores."""


class StreamsTopologyPart(Value):
    """Nodes that are connected with each other, and with no others."""

    subtopology_id: str
    nodes: tuple[StreamsTopologyNode, ...]


class StreamsGlobalStore(Value):
    """A store that each member has in full."""

    source: StreamsTopologyNode
    processor: StreamsTopologyNode


class StreamsTopology(Value):
    """A topology."""

    subtopologies: tuple[StreamsTopologyPart, ...]
    global_stores: tuple[StreamsGlobalStore, ...]
