"""Our messages read and written again by kafka-python, and by aiokafka, byte for byte.

kafka-python 3 has a codec of its own for every API and version up to the ones that it knows;
aiokafka has hand-written structs for the older versions.
"""

from __future__ import annotations

import importlib
import io
import pkgutil
import random

import pytest

from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsResponse
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_fast.protocol.apis.records.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafka_fast.protocol.schema import Request, Response
from tests.reference import protocol_codec as slow

PAIRS = [pair for pair in slow.ALL if issubclass(pair[0], (Request, Response))]


def kafka_python_classes() -> dict[str, type]:
    """Return kafka-python's message classes by name."""
    package = pytest.importorskip("kafka.protocol")
    classes: dict[str, type] = {}
    for module in pkgutil.walk_packages(package.__path__, "kafka.protocol."):
        if ".old" in module.name or "stubs" in module.name:
            continue
        classes.update(
            (name, value)
            for name, value in vars(importlib.import_module(module.name)).items()
            if isinstance(value, type) and name.endswith(("Request", "Response"))
        )
    return classes


@pytest.fixture(scope="module")
def theirs() -> dict[str, type]:
    return kafka_python_classes()


def test_kafka_python_reads_and_writes_the_same_bytes(theirs):
    tried = set()
    for message, version in PAIRS:
        peer = theirs.get(message.__name__)
        if peer is None or version > peer.max_version:
            continue
        for seed in range(3):
            values = slow.random_struct(message, version, random.Random(seed))
            if message is ApiVersionsResponse:
                values["error_code"] = 0  # theirs reads any answer with an error as version 0
            data = slow.from_dict(message, values).encode(version)
            read = peer.decode(data, version=version)
            read._header = None  # DeleteTopicsRequest looks at it, and decoding leaves it unset
            assert read.encode() == data, f"{message.__name__} v{version}"
        tried.add(message.__name__)
    assert len(tried) == 104


def test_aiokafka_reads_metadata():
    theirs = pytest.importorskip("aiokafka.protocol.metadata")
    partition = MetadataResponsePartition(
        error_code=5, partition_index=3, leader_id=1, replica_nodes=[1, 2], isr_nodes=[1]
    )
    message = MetadataResponse(
        throttle_time_ms=9,
        brokers=[MetadataResponseBroker(node_id=1, host="localhost", port=9092, rack="r")],
        cluster_id="cid",
        controller_id=1,
        topics=[MetadataResponseTopic(name="t", is_internal=True, partitions=[partition])],
    )
    read = theirs.MetadataResponse_v5.decode(io.BytesIO(message.encode(5)))
    assert read.brokers == [(1, "localhost", 9092, "r")]
    assert (read.throttle_time_ms, read.cluster_id, read.controller_id) == (9, "cid", 1)
    assert read.topics == [(0, "t", True, [(5, 3, 1, [1, 2], [1], [])])]
    assert read.encode() == message.encode(5)


def test_aiokafka_reads_produce():
    theirs = pytest.importorskip("aiokafka.protocol.produce")
    message = ProduceRequest(
        transactional_id="tx",
        acks=-1,
        timeout_ms=100,
        topic_data=[
            TopicProduceData(
                name="t", partition_data=[PartitionProduceData(index=2, records=b"batch")]
            )
        ],
    )
    read = theirs.ProduceRequest_v3.decode(io.BytesIO(message.encode(3)))
    assert read.topics == [("t", [(2, b"batch")])]
    assert (read.transactional_id, read.required_acks, read.timeout) == ("tx", -1, 100)
