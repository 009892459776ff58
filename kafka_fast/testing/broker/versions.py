"""Numbers of APIs, and the versions of older Kafkas that a broker may pass for.

What a broker offers is in `handlers`: `OFFERED`.
"""

from __future__ import annotations

from collections.abc import Mapping

PRODUCE = 0
FETCH = 1
LIST_OFFSETS = 2
METADATA = 3
OFFSET_COMMIT = 8
OFFSET_FETCH = 9
FIND_COORDINATOR = 10
JOIN_GROUP = 11
HEARTBEAT = 12
LEAVE_GROUP = 13
SYNC_GROUP = 14
DESCRIBE_GROUPS = 15
SASL_HANDSHAKE = 17
API_VERSIONS = 18
CREATE_TOPICS = 19
DELETE_TOPICS = 20
DELETE_RECORDS = 21
INIT_PRODUCER_ID = 22
OFFSET_FOR_LEADER_EPOCH = 23
DESCRIBE_CONFIGS = 32
SASL_AUTHENTICATE = 36
CONSUMER_GROUP_HEARTBEAT = 68
CONSUMER_GROUP_DESCRIBE = 69

# For Faults.limit_versions: the highest versions of older brokers.
KAFKA_2_1: Mapping[int, tuple[int, int]] = {
    PRODUCE: (0, 7),
    FETCH: (0, 10),
    LIST_OFFSETS: (0, 4),
    METADATA: (0, 7),
    OFFSET_COMMIT: (0, 6),
    OFFSET_FETCH: (0, 5),
    FIND_COORDINATOR: (0, 2),
    JOIN_GROUP: (0, 3),
    HEARTBEAT: (0, 2),
    LEAVE_GROUP: (0, 2),
    SYNC_GROUP: (0, 2),
    DESCRIBE_GROUPS: (0, 2),
    SASL_HANDSHAKE: (0, 1),
    API_VERSIONS: (0, 2),
    CREATE_TOPICS: (0, 3),
    DELETE_TOPICS: (0, 3),
    DELETE_RECORDS: (0, 1),
    INIT_PRODUCER_ID: (0, 1),
    OFFSET_FOR_LEADER_EPOCH: (0, 2),
    DESCRIBE_CONFIGS: (0, 2),
    SASL_AUTHENTICATE: (0, 0),
}
KAFKA_2_8: Mapping[int, tuple[int, int]] = {
    PRODUCE: (0, 9),
    FETCH: (0, 12),
    LIST_OFFSETS: (0, 6),
    METADATA: (0, 11),
    OFFSET_COMMIT: (0, 8),
    OFFSET_FETCH: (0, 7),
    FIND_COORDINATOR: (0, 3),
    JOIN_GROUP: (0, 7),
    HEARTBEAT: (0, 4),
    LEAVE_GROUP: (0, 4),
    SYNC_GROUP: (0, 5),
    DESCRIBE_GROUPS: (0, 5),
    SASL_HANDSHAKE: (0, 1),
    API_VERSIONS: (0, 3),
    CREATE_TOPICS: (0, 7),
    DELETE_TOPICS: (0, 6),
    DELETE_RECORDS: (0, 2),
    INIT_PRODUCER_ID: (0, 4),
    OFFSET_FOR_LEADER_EPOCH: (0, 4),
    DESCRIBE_CONFIGS: (0, 4),
    SASL_AUTHENTICATE: (0, 2),
}
KAFKA_3_9: Mapping[int, tuple[int, int]] = {
    PRODUCE: (0, 11),
    FETCH: (0, 17),
    LIST_OFFSETS: (0, 9),
    METADATA: (0, 12),
    OFFSET_COMMIT: (0, 9),
    OFFSET_FETCH: (0, 9),
    FIND_COORDINATOR: (0, 6),
    JOIN_GROUP: (0, 9),
    HEARTBEAT: (0, 4),
    LEAVE_GROUP: (0, 5),
    SYNC_GROUP: (0, 5),
    DESCRIBE_GROUPS: (0, 5),
    SASL_HANDSHAKE: (0, 1),
    API_VERSIONS: (0, 4),
    CREATE_TOPICS: (0, 7),
    DELETE_TOPICS: (0, 6),
    DELETE_RECORDS: (0, 2),
    INIT_PRODUCER_ID: (0, 5),
    OFFSET_FOR_LEADER_EPOCH: (0, 4),
    DESCRIBE_CONFIGS: (0, 4),
    SASL_AUTHENTICATE: (0, 2),
}
