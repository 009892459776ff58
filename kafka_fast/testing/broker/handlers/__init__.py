"""Which APIs the broker has, in which versions, and who answers them.

One module per API: `answer(request)` returns the response, a `Waiting`, or None where Kafka sends
nothing. What is not in the table is not in ApiVersions and, as in Kafka, ends the connection; only
ApiVersions itself answers a version it does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsResponse
from kafka_fast.testing.broker.faults import Faults
from kafka_fast.testing.broker.handlers import (
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    describe_groups,
    fetch,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
)
from kafka_fast.testing.broker.request import Answer, Request
from kafka_fast.testing.broker.versions import (
    API_VERSIONS,
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    INIT_PRODUCER_ID,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_OFFSETS,
    METADATA,
    OFFERED,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SYNC_GROUP,
)

# API key -> who answers it.
HANDLERS: Mapping[int, Callable[[Request], Answer]] = {
    PRODUCE: produce.answer,
    FETCH: fetch.answer,
    LIST_OFFSETS: list_offsets.answer,
    METADATA: metadata.answer,
    OFFSET_COMMIT: offset_commit.answer,
    OFFSET_FETCH: offset_fetch.answer,
    FIND_COORDINATOR: find_coordinator.answer,
    JOIN_GROUP: join_group.answer,
    HEARTBEAT: heartbeat.answer,
    LEAVE_GROUP: leave_group.answer,
    SYNC_GROUP: sync_group.answer,
    DESCRIBE_GROUPS: describe_groups.answer,
    SASL_HANDSHAKE: sasl_handshake.answer,
    API_VERSIONS: api_versions.answer,
    CREATE_TOPICS: create_topics.answer,
    DELETE_TOPICS: delete_topics.answer,
    DELETE_RECORDS: delete_records.answer,
    DESCRIBE_CONFIGS: describe_configs.answer,
    SASL_AUTHENTICATE: sasl_authenticate.answer,
    INIT_PRODUCER_ID: init_producer_id.answer,
    OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch.answer,
    CONSUMER_GROUP_HEARTBEAT: consumer_group_heartbeat.answer,
    CONSUMER_GROUP_DESCRIBE: consumer_group_describe.answer,
}


def offered_versions(api_key: int, faults: Faults) -> tuple[int, int] | None:
    """Return the lowest and highest version in which an API is answered, None: not at all."""
    if api_key not in OFFERED:
        return None
    return faults.version_range(api_key, *OFFERED[api_key])


def answers_any_version(api_key: int) -> bool:
    """Tell whether an API answers also versions that it does not have."""
    return api_key == API_VERSIONS


def unsupported_version(faults: Faults) -> ApiVersionsResponse:
    """Return the version 0 answer to an ApiVersions request of a version that is not offered."""
    return api_versions.unsupported(faults)
