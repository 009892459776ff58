"""What decoding the control plane's messages costs, as a ratio to struct.unpack in the same run.

    pytest bench/micro/micro_protocol.py

The yardstick reads the same message with one `struct.unpack_from` for each entry, positions known
beforehand: nothing checked, no object made. A table-driven codec in Python would take ten of them
and more. In turns, and the fastest of many short rounds counts, as in micro_send.py.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from kafka_fast.protocol.apis.cluster.api_versions import ApiVersion, ApiVersionsResponse
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_fast.protocol.apis.records.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kafka_fast.protocol.schema import Response

ROUNDS = 300
TOPICS = 50
PARTITIONS = 20
# Tagged fields: none, the last byte of every entry in a flexible version.
PARTITION = struct.Struct(">hiiiB3iB3iBB")  # of Metadata: error, index, leader, epoch, replicas
PRODUCED = struct.Struct(">ihqqqBBB")  # index, error, base offset, time, log start, two empty
API = struct.Struct(">hhhB")  # key, min, max


class Case(NamedTuple):
    """A message, and its entries as the yardstick reads them."""

    message: Response
    version: int
    entry: struct.Struct
    entries: int


def metadata() -> Case:
    """A cluster of three nodes with a thousand partitions."""
    partitions = [
        MetadataResponsePartition(
            partition_index=i,
            leader_id=i % 3,
            leader_epoch=7,
            replica_nodes=[0, 1, 2],
            isr_nodes=[0, 1, 2],
        )
        for i in range(PARTITIONS)
    ]
    topics = [
        MetadataResponseTopic(name=f"topic-{i}", topic_id=bytes(16), partitions=partitions)
        for i in range(TOPICS)
    ]
    brokers = [MetadataResponseBroker(node_id=i, host=f"node-{i}", port=9092) for i in range(3)]
    message = MetadataResponse(brokers=brokers, cluster_id="bench", topics=topics)
    return Case(message, 12, PARTITION, TOPICS * PARTITIONS)


def produce() -> Case:
    """Sixteen partitions of one topic, all well."""
    partitions = [PartitionProduceResponse(index=i, base_offset=1 << 40) for i in range(16)]
    topic = TopicProduceResponse(name="topic", partition_responses=partitions)
    return Case(ProduceResponse(responses=[topic]), 9, PRODUCED, 16)


def api_versions() -> Case:
    """As many APIs as a broker has."""
    keys = [ApiVersion(api_key=i, min_version=0, max_version=9) for i in range(60)]
    return Case(ApiVersionsResponse(api_keys=keys), 3, API, 60)


CASES = {"metadata": metadata, "produce": produce, "api_versions": api_versions}


def unpacker(case: Case, data: bytes) -> Callable[[], object]:
    """Return the yardstick: as many reads of an entry as the message has, all within its bytes."""
    unpack = case.entry.unpack_from
    positions = [i * case.entry.size % (len(data) - case.entry.size) for i in range(case.entries)]

    def run() -> None:
        for pos in positions:
            unpack(data, pos)

    return run


def fastest(calls: list[Callable[[], object]], count: int) -> list[float]:
    """Return the shortest time of each call, in ns per entry; the calls take turns."""
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for i, call in enumerate(calls):
            before = time.perf_counter_ns()
            call()
            best[i] = min(best[i], (time.perf_counter_ns() - before) / count)
    return best


@pytest.mark.parametrize(
    ("name", "limit"), [("metadata", 3.5), ("produce", 3.5), ("api_versions", 1.8)]
)
def test_an_entry_costs_at_most_so_many_unpacks(name: str, limit: float) -> None:
    """Two thirds of each limit where it was set; an unpack of a partition takes about 140 ns there.

    A partition of Metadata brings three lists with it, one of a Produce answer two objects.
    """
    case = CASES[name]()
    data, answer = case.message.encode(case.version), type(case.message)
    assert answer.decode(data, case.version) == case.message
    yardstick, measured = fastest(
        [unpacker(case, data), lambda: answer.decode(data, case.version)], case.entries
    )
    assert measured <= limit * yardstick, f"{measured:.0f} ns, unpack {yardstick:.0f} ns"


@pytest.mark.parametrize("direction", ["decode", "encode"])
@pytest.mark.parametrize("name", CASES)
def test_report(benchmark: Any, name: str, direction: str) -> None:
    """The same messages for pytest-benchmark's table, and the way out."""
    case = CASES[name]()
    data, answer = case.message.encode(case.version), type(case.message)
    benchmark.extra_info["entries"] = case.entries
    if direction == "decode":
        benchmark(answer.decode, data, case.version)
    else:
        benchmark(case.message.encode, case.version)
