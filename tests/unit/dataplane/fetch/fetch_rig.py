"""A fetching data plane driven by hand: memory links, a virtual clock, a broker the test plays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from kafka_fast.consumer import consumer_carrier as fetch_carrier
from kafka_fast.control.consumer.consumer_messages import (
    FetchPunt,
    NameStream,
    ProgramFetch,
    StartStream,
    StreamRow,
    StreamsStopped,
)
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.dataplane.fetch._streams import NO_END, Streams
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.records.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kafka_fast.record import RecordBatchBuilder
from kafka_fast.testing._memory import MemoryLink, Turner, VirtualMachine
from tests.unit.dataplane.commands import FetchCalls

T = TypeVar("T")

VERSIONS = range(4, 19)
FIRST_WITH_SESSIONS = 7
FIRST_WITH_IDS = 13
MAX_WAIT = 0.5
SESSION = 1234
CLIENT = "rig"
RACK = "rack-1"
PARTITION_BYTES = 1 << 20
PIECE = 2 << 20  # what a link asks for to begin with
BACK_OFF = 0.051  # seconds that the data plane waits at most after an empty answer


def topic_id(name: str) -> bytes:
    """Return a made-up id of the topic."""
    return name.encode().ljust(16, b"#")


def batch(base_offset: int, count: int = 1, *, epoch: int = 3, value: bytes = b"v") -> bytes:
    """Return a record batch."""
    builder = RecordBatchBuilder(base_offset=base_offset, leader_epoch=epoch)
    for _ in range(count):
        builder.append(None, value, 1_700_000_000_000)
    return builder.build()


class Asked(NamedTuple):
    """A Fetch request as the broker reads it."""

    correlation_id: int
    version: int
    request: FetchRequest
    data: bytes

    @property
    def positions(self) -> dict[tuple[str, int], int]:
        """Where to read from, by topic and partition, in the order of the request."""
        return {
            (name_of(topic), partition.partition): partition.fetch_offset
            for topic in self.request.topics
            for partition in topic.partitions
        }

    @property
    def forgotten(self) -> set[tuple[str, int]]:
        """What the session is to forget."""
        return {
            (name_of(topic), partition)
            for topic in self.request.forgotten_topics_data
            for partition in topic.partitions
        }


def name_of(topic: Any) -> str:
    """Return the topic's name, whatever the version names it by."""
    return str(topic.topic or topic.topic_id.rstrip(b"#").decode())


def part(partition: int, records: bytes | None = b"", **more: Any) -> PartitionData:
    """Return a partition's part of an answer."""
    known: dict[str, Any] = {
        "error_code": 0,
        "high_watermark": 100,
        "last_stable_offset": 90,
        "log_start_offset": 5,
        "aborted_transactions": None,
    }
    return PartitionData(partition_index=partition, records=records, **{**known, **more})


def answer_to(asked: Asked, parts: Mapping[str, Iterable[PartitionData]], **more: Any) -> bytes:
    """Return the frame of an answer, length included; parts by topic."""
    session = SESSION if asked.version >= FIRST_WITH_SESSIONS else 0
    response = FetchResponse(
        responses=[
            FetchableTopicResponse(topic=name, topic_id=topic_id(name), partitions=list(them))
            for name, them in parts.items()
        ],
        **{"throttle_time_ms": 0, "error_code": 0, "session_id": session, **more},
    )
    return frame.encode_response(response, asked.version, asked.correlation_id)


class FetchRig(FetchCalls):
    """The data plane, its clock, and topic "t", whose partitions are fetched over link 1."""

    def __init__(
        self,
        *,
        partitions: int = 1,
        version: int = 12,
        links: int = 1,
        choppiness: int = 0,
        start: bool = True,
        offset: int = 10,
        **settings: Any,
    ) -> None:
        self.machine = VirtualMachine(0, 0, 1_700_000_000_000)
        self.version = version
        self.choppiness = choppiness
        known: dict[str, Any] = {
            "max_frame": 32 << 20,
            "request_timeout": 30.0,
        }
        limits = {
            "buffer_bytes": settings.pop("buffer_bytes", 64 << 20),
            "max_bytes": settings.pop("max_bytes", 50 << 20),
            "partition_max_bytes": settings.pop("partition_max_bytes", PARTITION_BYTES),
        }
        self.plane = DataPlane(self.machine, **{**known, **settings})
        self.streams = Streams(self.plane, **limits)
        self.turner = Turner(self.plane, self.machine)
        self.links: dict[int, MemoryLink] = {}
        self.events: list[Any] = []
        self.ids: dict[tuple[str, int], int] = {}
        self.until = 0.0
        for link_id in range(1, links + 1):
            self.add_link(link_id)
        self.add_topic("t", partitions)
        if start:
            for stream_id in self.ids.values():
                self.start(stream_id, offset=offset)
        self.turn()

    def add_topic(self, name: str, partitions: int, end: int = NO_END) -> None:
        """Make streams for a topic's partitions, up to this offset; ids count from 0."""
        for partition in range(partitions):
            stream_id = self.ids[name, partition] = len(self.ids)
            self.streams.add_stream(stream_id, name, partition, end)
            self.name(stream_id, name, topic_id(name))

    def name(self, stream_id: int, name: str, id_: bytes) -> None:
        """Say how requests name the stream's topic."""
        for version in (4, 12, FIRST_WITH_IDS):
            field = frame.fetch_topic_prefix(version, name, id_)
            self.carry(NameStream(stream_id, version, field))

    def add_link(self, link_id: int, version: int | None = None) -> MemoryLink:
        """Connect, and let the link fetch."""
        link = self.links[link_id] = MemoryLink(link_id, link_id, self.choppiness, link_id)
        self.turner.add_link(link)
        self.program(link_id, version or self.version)
        return link

    def program(self, link_id: int, version: int) -> None:
        """Let the link fetch in this version."""
        parts = frame.fetch_parts(
            version,
            CLIENT,
            max_wait_ms=int(MAX_WAIT * 1000),
            min_bytes=1,
            max_bytes=1,
            read_committed=True,
            rack_id=RACK,
        )
        self.carry(ProgramFetch(link_id, version, parts.prefix, parts.suffix))

    def start(
        self,
        stream_id: int = 0,
        link_id: int = 1,
        generation: int = 0,
        offset: int = 10,
        leader_epoch: int = -1,
    ) -> None:
        """Start a stream."""
        self.carry(StartStream(stream_id, link_id, generation, offset, leader_epoch))

    def turn(self) -> float:
        """Turn until nothing is left to do now; returns when something is."""
        until = self.turner.turn()
        for _ in range(1000):
            chopped = [link.make_room() for link in self.links.values()]
            ready = any(link.is_ready for link in self.links.values())
            woken = self.machine.take_data_wake()
            if until != -1.0 and not ready and not any(chopped) and not woken:
                break
            until = self.turner.turn()
        self.events += self.take_events()
        self.until = until
        return until

    def advance(self, seconds: float) -> float:
        """Let time pass."""
        self.machine.advance(self.machine.now + seconds)
        return self.turn()

    def frames(self, link_id: int = 1) -> list[bytes]:
        """Return the requests written since the last call, lengths included."""
        self.turn()
        data = self.links[link_id].take_sent()
        frames = []
        while data:
            size = int.from_bytes(data[:4], "big")
            frames.append(data[: 4 + size])
            data = data[4 + size :]
        return frames

    def requests(self, link_id: int = 1) -> list[Asked]:
        """Return the Fetch requests written since the last call."""
        requests = []
        for data in self.frames(link_id):
            header, request = frame.decode_request(data[4:])
            assert isinstance(request, FetchRequest)
            assert header.client_id == CLIENT
            requests.append(Asked(header.correlation_id, header.version, request, data))
        return requests

    def request(self, link_id: int = 1) -> Asked:
        """Return the one Fetch request that was written since the last call, or is soon."""
        requests = self.requests(link_id)
        if not requests:
            self.advance(BACK_OFF)
            requests = self.requests(link_id)
        (asked,) = requests
        return asked

    def answer(
        self,
        asked: Asked,
        parts: Mapping[str, Iterable[PartitionData]],
        link_id: int = 1,
        **more: Any,
    ) -> None:
        """Answer a request; parts by topic."""
        self.arrive(answer_to(asked, parts, **more), link_id)

    def arrive(self, data: bytes, link_id: int = 1) -> None:
        """Let bytes arrive."""
        self.links[link_id].arrive(data)
        self.turn()

    def hang_up(self, link_id: int = 1) -> None:
        """Let the peer close."""
        self.links[link_id].end()
        self.turn()
        del self.links[link_id]

    def take_events(self) -> list[Any]:
        """Return what has come up since the last call."""
        return [fetch_carrier.read_event(event) for event in self.plane.take_events()]

    def take(self, kind: type[T]) -> list[T]:
        """Return, and forget, the events of one kind."""
        self.turn()
        events = [event for event in self.events if isinstance(event, kind)]
        self.events = [event for event in self.events if not isinstance(event, kind)]
        return events

    def rows(self, kind: type[FetchPunt | StreamsStopped]) -> list[StreamRow]:
        """Return the rows of such events."""
        return [row for event in self.take(kind) for row in event.rows]

    def offsets(self) -> list[tuple[int, int, int]]:
        """Take all chunks; returns (stream, asked offset, next offset) of each."""
        return [
            (chunk.stream_id, chunk.asked_offset, chunk.next_offset)
            for chunk in self.streams.take_chunks(1000)
        ]
