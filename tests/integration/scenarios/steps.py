"""Steps that scenarios have in common."""

from __future__ import annotations

import os

from kafka_fast import errors
from kafka_fast.protocol.apis.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka_fast.protocol.apis.topics.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from kafka_fast.protocol.apis.topics.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from kafka_fast.protocol.apis.transactions.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafka_fast.record import Record, read_batches
from tests.integration.scenarios.wire import WireClient
from tests.waiting import eventually

NO_ID = bytes(16)
UNKNOWN_ID = b"\x01" * 16
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3  # timestamps of ListOffsets


def new_topic(client: WireClient, *, name: str = "", **config: str) -> str:
    name = name or unique_name()
    configs = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in config.items()
    ]
    created = create(
        client,
        CreatableTopic(name=name, num_partitions=3, replication_factor=1, configs=configs),
    )
    assert created[0].error_code == 0
    client.wait_for_topic(name)
    return name


def tell_coordinator(client: WireClient) -> None:
    """Return when the groups' coordinator knows of all topics made before.

    A broker tells it last of a topic, but of one topic after the other: when the broker leads a
    later topic, the coordinator has heard of those before it.
    """
    new_topic(client)


def unique_name() -> str:
    return f"scenario-{os.urandom(6).hex()}"


def create(
    client: WireClient, *topics: CreatableTopic, version: int = 7, validate_only: bool = False
) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=5000, validate_only=validate_only)
    results: list[CreatableTopicResult] = client.ask(request, version).topics
    return results


def delete(client: WireClient, *topics: DeleteTopicState) -> list[DeletableTopicResult]:
    request = DeleteTopicsRequest(topics=list(topics), timeout_ms=5000)
    results: list[DeletableTopicResult] = client.ask(request, 6).responses
    return results


def new_producer(client: WireClient) -> int:
    """Return a new producer id; a broker that has just started may need a moment."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60000)

    def probe() -> InitProducerIdResponse | None:
        response = client.ask(request, 4)
        loading = response.error_code == errors.CoordinatorLoadInProgress.code
        return None if loading else response

    response = eventually(probe, "the coordinator to be loaded")
    assert (response.error_code, response.producer_epoch) == (0, 0)
    return int(response.producer_id)


def list_offset(
    client: WireClient,
    topic: str,
    timestamp: int,
    *,
    partition: int = 0,
    version: int = 10,
    epoch: int = -1,
    isolation: int = 0,
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(
        partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch
    )
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        timeout_ms=5000,
        topics=[ListOffsetsTopic(name=topic, partitions=[asked])],
    )
    answer: ListOffsetsPartitionResponse = client.ask(request, version).topics[0].partitions[0]
    return answer


def log_of(client: WireClient, topic: str, partition: int = 0) -> list[Record]:
    records = client.fetch(topic, 0, partition=partition).records
    return [record for one in read_batches(records or b"") for record in one.records()]
