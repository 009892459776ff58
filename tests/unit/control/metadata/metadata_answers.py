"""Metadata answers for the tests of the cluster, each field defaulted like the wire's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NO_ID = bytes(16)


def make_topic_id(number: int) -> bytes:
    """Make a topic id that is easy to tell from others."""
    return number.to_bytes(16, "big")


def broker(node_id: int, host: str = "kafka", port: int = 9092) -> MetadataResponseBroker:
    """Describe a broker."""
    return MetadataResponseBroker(node_id=node_id, host=host, port=port, rack=None)


def partition(
    index: int, leader: int = 1, epoch: int = 0, error: int = 0
) -> MetadataResponsePartition:
    """Describe a partition."""
    return MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=[1, 2],
        isr_nodes=[1, 2],
        offline_replicas=[],
    )


def topic(
    name: str,
    leaders: Sequence[tuple[int, int]] = ((1, 0),),
    *,
    topic_id: bytes = NO_ID,
    error: int = 0,
) -> MetadataResponseTopic:
    """Describe a topic whose partitions have these (leader, leader epoch)."""
    return MetadataResponseTopic(
        error_code=error,
        name=name,
        topic_id=topic_id,
        is_internal=False,
        partitions=[partition(index, *leader) for index, leader in enumerate(leaders)],
    )


def answer(
    *topics: MetadataResponseTopic,
    brokers: Sequence[MetadataResponseBroker] | Mapping[int, str] = (broker(1), broker(2)),
    cluster_id: str | None = "c",
    error: int = 0,
) -> MetadataResponse:
    """Make an answer; `brokers` may be a mapping of node id to host."""
    if isinstance(brokers, Mapping):
        brokers = [broker(node_id, host) for node_id, host in brokers.items()]
    return MetadataResponse(
        throttle_time_ms=0,
        brokers=list(brokers),
        cluster_id=cluster_id,
        controller_id=1,
        topics=list(topics),
        error_code=error,
    )
