"""The properties as types, for editors and type checkers: names as keywords, and their values.

`Producer(**properties)` is `Unpack[ProducerProperties]`, and a function of yours may say the same.
The table that properties are read from is wider: it also takes numbers as strings, other clients'
names, and dotted names in a mapping. Keys whose feature this version lacks are left out. A test
holds this page and the table together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from kafka_fast.config._settings import Partitioner
from kafka_fast.serialization import DeserializerLike, SerializerLike


class CommonProperties(TypedDict, total=False):
    """What every client takes."""

    bootstrap_servers: str | Sequence[str]
    client_id: str
    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"]
    request_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    socket_connection_setup_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    connections_max_idle_ms: int
    send_buffer_bytes: int | None
    receive_buffer_bytes: int | None
    receive_message_max_bytes: int
    metadata_max_age_ms: int
    metadata_recovery_strategy: Literal["rebootstrap", "none"]
    metadata_recovery_rebootstrap_trigger_ms: int
    security_protocol: Literal["PLAINTEXT"]
    serializer_encoding: str


class ProducerProperties(CommonProperties, total=False):
    """What `Producer` takes."""

    key_serializer: SerializerLike | None
    value_serializer: SerializerLike | None
    acks: Literal[-1, 0, 1, "all"]
    enable_idempotence: bool
    retries: int
    max_in_flight_requests_per_connection: int
    delivery_timeout_ms: int
    linger_ms: int
    batch_size: int
    buffer_memory: int
    max_block_ms: int
    max_request_size: int
    request_coalesce_bytes: int
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] | None
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    partitioner_class: Literal["default", "round_robin"] | Partitioner | None
    partitioner_adaptive_partitioning_enable: bool
    partitioner_availability_timeout_ms: int
    partitioner_ignore_keys: bool
    metadata_max_idle_ms: int
    exit_flush_timeout_ms: int
    client_rack: str


class ConsumerProperties(CommonProperties, total=False):
    """What `Consumer` and `read_range` take."""

    key_deserializer: DeserializerLike | None
    value_deserializer: DeserializerLike | None
    group_id: str | None
    group_instance_id: str | None
    group_protocol: Literal["classic", "consumer"]
    group_remote_assignor: str | None
    partition_assignment_strategy: str | Sequence[object]
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    max_poll_records: int
    auto_offset_reset: str
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    isolation_level: Literal["read_uncommitted", "read_committed"]
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    max_partition_fetch_bytes: int
    fetch_buffer_bytes: int
    max_decompressed_batch_bytes: int
    check_crcs: bool
    client_rack: str
    allow_auto_create_topics: bool
    exclude_internal_topics: bool
    default_api_timeout_ms: int
