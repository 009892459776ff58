"""A client of the sans-I/O cluster: frames go in and come out in memory, time is a number."""

from __future__ import annotations

import itertools
import random
from typing import Any

from kafka_fast.protocol import frame as framing
from kafka_fast.protocol.apis import response_class
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kafka_fast.protocol.apis.records.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from kafka_fast.protocol.apis.records.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from kafka_fast.protocol.schema import Request
from kafka_fast.record import RecordBatchBuilder
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.state import Node, Settings

LENGTH_SIZE = 4
PRODUCE_VERSION = 12
FETCH_VERSION = 12


class World:
    """A cluster, its time, and what its connections have received."""

    def __init__(self, nodes: int = 1, seed: int = 1, **settings: Any) -> None:
        """Start `nodes` brokers with node ids from 1."""
        members = [Node(node_id, "127.0.0.1", 9000 + node_id) for node_id in range(1, nodes + 1)]
        self.cluster = Cluster(members, Settings(**settings), random.Random(seed))
        self.now = 0.0
        self._received: dict[int, bytearray] = {}
        self._closed: set[int] = set()
        self._ids = itertools.count(1)

    def connect(self, node_id: int = 1) -> Client:
        """Connect to a broker that must accept."""
        connection_id = next(self._ids)
        assert self.cluster.brokers[node_id].connect(connection_id)
        self._received[connection_id] = bytearray()
        return Client(self, node_id, connection_id)

    def settle(self) -> None:
        """Collect what the brokers have to say by now."""
        for _, (connection_id, data, close) in self.cluster.poll_output(self.now):
            assert connection_id not in self._closed
            self._received[connection_id] += data
            if close:
                self._closed.add(connection_id)

    def run_until(self, now: float) -> None:
        """Let time pass, stopping wherever a broker wants to act."""
        while True:
            self.settle()
            due = self.cluster.next_due()
            if due is None or due > now:
                break
            assert due > self.now
            self.now = due
        self.now = now

    def received(self, connection_id: int) -> bytearray:
        """Return the bytes that a connection got and that were not taken yet."""
        return self._received[connection_id]

    def is_closed(self, connection_id: int) -> bool:
        """Tell whether the broker closed a connection."""
        return connection_id in self._closed


class Client:
    """One connection."""

    def __init__(self, world: World, node_id: int, connection_id: int) -> None:
        """Belong to a world."""
        self.world = world
        self.node_id = node_id
        self.connection_id = connection_id
        self._correlation_ids = itertools.count(1)

    @property
    def closed(self) -> bool:
        """Tell whether the broker closed the connection."""
        return self.world.is_closed(self.connection_id)

    @property
    def received(self) -> bytes:
        """Return the bytes that wait to be taken."""
        return bytes(self.world.received(self.connection_id))

    def send(self, body: Request, version: int) -> int:
        """Send a request; return its correlation id."""
        correlation_id = next(self._correlation_ids)
        self.send_bytes(framing.encode_request(body, version, correlation_id, "test"))
        return correlation_id

    def send_bytes(self, data: bytes) -> None:
        """Send bytes and let the brokers act."""
        broker = self.world.cluster.brokers[self.node_id]
        broker.handle_bytes(self.connection_id, data, self.world.now)
        self.world.settle()

    def take_frame(self) -> bytes | None:
        """Return the next whole frame without its length, or None."""
        received = self.world.received(self.connection_id)
        length = int.from_bytes(received[:LENGTH_SIZE], "big")
        if len(received) < LENGTH_SIZE or len(received) < LENGTH_SIZE + length:
            return None
        frame = bytes(received[LENGTH_SIZE : LENGTH_SIZE + length])
        del received[: LENGTH_SIZE + length]
        return frame

    def take(self, request: Request, version: int) -> Any:
        """Return the next response, which is one to `request`, or None."""
        frame = self.take_frame()
        if frame is None:
            return None
        return framing.decode_response(response_class(request.api_key), frame, version)[1]

    def ask(self, request: Request, version: int) -> Any:
        """Send a request and return its response, which must come at once."""
        self.send(request, version)
        response = self.take(request, version)
        assert response is not None
        return response

    # ---- the usual ones ----

    def produce(
        self, topic: str, records: bytes, *, partition: int = 0, version: int = PRODUCE_VERSION
    ) -> PartitionProduceResponse:
        """Produce to one partition."""
        response = self.ask(produce_request(topic, records, partition), version)
        answer: PartitionProduceResponse = response.responses[0].partition_responses[0]
        return answer

    def fetch(self, topic: str, offset: int, *, partition: int = 0) -> PartitionData:
        """Fetch from one partition what is there."""
        response = self.ask(fetch_request(topic, offset, partition), FETCH_VERSION)
        answer: PartitionData = response.responses[0].partitions[0]
        return answer

    def metadata(self, *topics: str, version: int = 12) -> MetadataResponse:
        """Ask for topics."""
        asked = [MetadataRequestTopic(name=name) for name in topics]
        response: MetadataResponse = self.ask(MetadataRequest(topics=asked), version)
        return response


def produce_request(
    topic: str, records: bytes, partition: int = 0, *, acks: int = -1
) -> ProduceRequest:
    """Return a request with one batch."""
    data = [PartitionProduceData(index=partition, records=records)]
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )


def fetch_request(
    topic: str,
    offset: int,
    partition: int = 0,
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    leader_epoch: int = -1,
) -> FetchRequest:
    """Return a request for one partition."""
    asked = FetchPartition(
        partition=partition,
        current_leader_epoch=leader_epoch,
        fetch_offset=offset,
        partition_max_bytes=1 << 20,
    )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic=topic, partitions=[asked])],
    )


def batch(count: int = 1, *, producer: tuple[int, int, int] = (-1, -1, -1)) -> bytes:
    """Return a batch of small records; `producer` is id, epoch and first sequence."""
    builder = RecordBatchBuilder(
        producer_id=producer[0], producer_epoch=producer[1], base_sequence=producer[2]
    )
    for number in range(count):
        builder.append(None, b"value-%d" % number, number)
    return builder.build()
