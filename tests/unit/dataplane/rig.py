"""A data plane driven by hand: memory links, a virtual clock, and a broker that the test plays."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from kafka_fast.control.producer.producer_messages import (
    NameTopic,
    ProgramProduce,
    QueueReport,
    RouteWanted,
    ThawQueue,
)
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.dataplane.produce._queues import (
    Queues,
)
from kafka_fast.producer import producer_carrier as produce_carrier
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.records.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kafka_fast.record import RecordBatch, read_batches
from kafka_fast.sending._accumulator import Accumulator
from kafka_fast.testing._memory import MemoryLink, Turner, VirtualMachine
from tests.unit.dataplane.commands import ProduceCalls

T = TypeVar("T")

PRODUCER_ID = 4711
EPOCH = 3
LEVEL = 1  # that every codec has
UNIX_MS = 1_700_000_000_000
FIRST_VERSION_WITH_IDS = 13
FIRST_FLEXIBLE_VERSION = 9


def topic_id(name: str) -> bytes:
    """Return a made-up id of the topic."""
    return name.encode().ljust(16, b"#")


class Sent(NamedTuple):
    """A Produce request as the broker reads it."""

    correlation_id: int
    version: int
    request: ProduceRequest

    @property
    def batches(self) -> dict[tuple[str, int], RecordBatch]:
        """The batches by topic and partition; each partition is named once and has one batch."""
        batches: dict[tuple[str, int], RecordBatch] = {}
        for topic in self.request.topic_data:
            name = topic.name or topic.topic_id.rstrip(b"#").decode()
            for partition in topic.partition_data:
                assert partition.records is not None
                (batch,) = read_batches(bytes(partition.records)).batches
                batch.check_crc()
                assert (name, partition.index) not in batches
                batches[name, partition.index] = batch
        return batches

    def values(self, partition: int = 0, topic: str = "t") -> list[bytes | None]:
        """The values of one partition's records."""
        return [record.value for record in self.batches[topic, partition].records()]


class ProduceRig(ProduceCalls):
    """The data plane, its clock, and one topic "t" whose partitions are routed to link 1."""

    def __init__(
        self,
        *,
        partitions: int = 1,
        version: int = 12,
        links: int = 1,
        choppiness: int = 0,
        with_producer_id: bool = True,
        warm: bool = False,
        **settings: Any,
    ) -> None:
        self.machine = VirtualMachine(settings.get("codec", 0), LEVEL, UNIX_MS)
        self.version = version
        self.choppiness = choppiness
        known: dict[str, Any] = {
            "buffer_memory": 32 << 20,
            "batch_size": 16_384,
            "max_request_size": 1 << 20,
            "coalesce_bytes": 2 << 20,
            "linger": 0.0,
            "delivery_timeout": 120.0,
            "max_in_flight": 5,
        }
        limits = {
            "max_frame": settings.pop("max_frame", 1 << 20),
            "request_timeout": settings.pop("request_timeout", 30.0),
            "max_idle": settings.pop("max_idle", 0.0),
        }
        self.plane = DataPlane(self.machine, **limits)
        self.queues = Queues(self.plane, **{**known, **settings})
        self.acks = 0 if settings.get("acks_zero") else -1
        self.turner = Turner(self.plane, self.machine)
        self.accumulator = Accumulator(self.queues, max_block=1e-6)
        self.queue_count = 0
        self.links: dict[int, MemoryLink] = {}
        self.events: list[Any] = []
        self.add_topic("t", partitions)
        for link_id in range(1, links + 1):
            self.add_link(link_id)
        if with_producer_id and settings.get("idempotent", True):
            self.set_producer_id(PRODUCER_ID, EPOCH)
        for queue_id in range(partitions):
            self.route(queue_id, 1)
        self.turn()
        if warm:  # a partition's first batch goes alone: get it, sequence 0, out of the way
            for partition in range(partitions):
                self.send_nowait(b"first", partition)
            self.turner.begin_flush()
            for sent in self.requests():
                self.answer(sent)
            self.turner.end_flush()
            self.advance(0.001)

    def add_topic(self, name: str, partitions: int) -> range:
        self.queues.topic(name, 1)
        self.name_topic(name, topic_id(name))
        queue_ids = range(self.queue_count, self.queue_count + partitions)
        self.queue_count += partitions
        self.queues.set_partitions(name, 0, queue_ids)
        return queue_ids

    def name_topic(self, name: str, id_: bytes) -> None:
        for version in (8, FIRST_FLEXIBLE_VERSION, FIRST_VERSION_WITH_IDS):
            field = frame.produce_topic_prefix(version, name, id_)
            self.carry(NameTopic(name, version, field))

    def add_link(self, link_id: int) -> MemoryLink:
        link = self.links[link_id] = MemoryLink(link_id, link_id, self.choppiness, link_id)
        self.turner.add_link(link)
        self.program(link_id, self.version)
        return link

    def program(self, link_id: int, version: int) -> None:
        prefix = frame.produce_prefix(version, "rig", None, self.acks, 30_000)
        self.carry(ProgramProduce(link_id, version, prefix))

    def send(self, value: bytes = b"v", partition: int = 0, topic: str = "t", **more: Any) -> Any:
        return self.accumulator.send(topic, value, partition=partition, **more)

    def send_nowait(self, value: bytes = b"v", partition: int = 0, **more: Any) -> None:
        self.accumulator.send_nowait("t", value, partition=partition, **more)

    def turn(self) -> float:
        """Turn until nothing is left to do now; returns when something is."""
        until = self.turner.turn()
        for _ in range(1000):
            chopped = [link.make_room() for link in self.links.values()]
            ready = any(link.is_ready for link in self.links.values())
            if until != -1.0 and not ready and not any(chopped):
                break
            until = self.turner.turn()
        self.events += self.take_events()
        return until

    def advance(self, seconds: float) -> float:
        self.machine.advance(self.machine.now + seconds)
        return self.turn()

    def requests(self, link_id: int = 1) -> list[Sent]:
        """Return the Produce requests written since the last call, after a turn."""
        self.turn()
        return self.written(link_id)

    def written(self, link_id: int = 1) -> list[Sent]:
        """Return the Produce requests written since the last call."""
        data = self.links[link_id].take_sent()
        requests = []
        while data:
            size = int.from_bytes(data[:4], "big")
            header, request = frame.decode_request(data[4 : 4 + size])
            assert isinstance(request, ProduceRequest)
            assert header.client_id == "rig"
            requests.append(Sent(header.correlation_id, header.version, request))
            data = data[4 + size :]
        return requests

    def answer(
        self, sent: Sent, errors: dict[int, int] | None = None, *, link_id: int = 1, **more: Any
    ) -> None:
        """Answer a request: error codes by partition, success (at offset 100) for the others."""
        self.links[link_id].arrive(encode(response_to(sent, errors, **more), sent))
        self.turn()

    def hang_up(self, link_id: int = 1) -> None:
        self.links[link_id].end()
        self.turn()
        del self.links[link_id]

    def take_events(self) -> list[Any]:
        """Return what has come up since the last call."""
        return [produce_carrier.read_event(event) for event in self.plane.take_events()]

    def take(self, kind: type[T]) -> list[T]:
        """Return, and forget, the events of one kind."""
        self.turn()
        events = [event for event in self.events if isinstance(event, kind)]
        self.events = [event for event in self.events if not isinstance(event, kind)]
        return events

    def reports(self) -> list[QueueReport]:
        return self.take(QueueReport)

    def wanted_routes(self) -> list[int]:
        return [queue_id for event in self.take(RouteWanted) for queue_id in event.queue_ids]

    def thaw(self, report: QueueReport, *, single: bool = False, at: float = 0.0) -> None:
        self.carry(ThawQueue(report.queue.queue_id, report.queue.generation, at, single))
        self.turn()

    @property
    def reserved(self) -> int:
        return self.turner.reserved_bytes()


def response_to(
    sent: Sent, errors: dict[int, int] | None = None, throttle_ms: int = 0, base_offset: int = 100
) -> ProduceResponse:
    """Return the answer to a request."""
    codes = errors or {}
    topics = [
        TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=[
                PartitionProduceResponse(
                    index=partition.index,
                    error_code=codes.get(partition.index, 0),
                    base_offset=-1 if codes.get(partition.index) else base_offset,
                )
                for partition in topic.partition_data
            ],
        )
        for topic in sent.request.topic_data
    ]
    return ProduceResponse(responses=topics, throttle_time_ms=throttle_ms)


def encode(response: ProduceResponse, sent: Sent) -> bytes:
    """Return the frame of an answer to this request, length included."""
    return frame.encode_response(response, sent.version, sent.correlation_id)
