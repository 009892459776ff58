"""The produce side of the data plane as an object: topics and their queues, commands."""

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

from kafka_fast.dataplane.core._plane import DataPlane

EVENT_PUNT: int
EVENT_ROUTE: int
EVENT_REPORT: int

FORMAT_NAME: int
FORMAT_COMPACT_NAME: int
FORMAT_ID: int

VERDICT_FAIL: int
VERDICT_SUCCEED: int
VERDICT_SPLIT: int
VERDICT_FORGIVE: int

OUTCOME_NOT_SENT: int
OUTCOME_REJECTED: int
OUTCOME_MAYBE_WRITTEN: int

class TopicQueues:
    name: str
    @property
    def partition_count(self) -> int: ...

class Queues:
    plane: DataPlane
    client_id: str
    exit_status: int
    observed: int
    notified: int
    refuses: bool
    refusal: Exception | None
    reporter: Callable[[tuple[Queues]], object] | None
    callback_starter: Callable[[], object] | None
    callback_thread: int
    loop_bridge: Callable[[asyncio.AbstractEventLoop], object] | None
    guide: object
    told: bool
    @property
    def dead(self) -> bool: ...
    @property
    def is_inherited(self) -> bool: ...
    @property
    def has_unlogged(self) -> bool: ...
    def __init__(
        self,
        plane: DataPlane,
        *,
        buffer_memory: int,
        batch_size: int,
        max_request_size: int,
        coalesce_bytes: int,
        linger: float,
        delivery_timeout: float,
        max_in_flight: int,
        availability_timeout: float = 0.0,
        codec: int = 0,
        idempotent: bool = True,
        acks_zero: bool = False,
        client_id: str = "",
        exit_status: int = 0,
    ) -> None: ...
    def topic(self, name: str, seed: int) -> TopicQueues: ...
    def set_partitions(self, name: str, first: int, queue_ids: range) -> None: ...
    def set_partition_count(self, name: str, count: int) -> None: ...
    def partition_count(self, name: str) -> int: ...
    def set_available(self, queue_id: int, available: bool) -> None: ...
    def queue_of(self, queue_id: int) -> tuple[str, int]: ...
    def program(self, link_id: int, version: int, topic_format: int, prefix: bytes) -> None: ...
    def name_topic(self, name: str, topic_format: int, field: bytes) -> None: ...
    def limit_topic(self, name: str, batch_limit: int, wire_limit: int) -> None: ...
    def restart_topic(self, name: str) -> None: ...
    def route(self, queue_id: int, link_id: int) -> None: ...
    def set_producer_id(self, producer_id: int, epoch: int) -> None: ...
    def judge(
        self,
        queue_id: int,
        generation: int,
        verdict: int,
        serial: int,
        slice: int,
        *,
        error_code: int = 0,
        outcome: int = 0,
        base_offset: int = -1,
        timestamp_ms: int = -1,
        size: int = 0,
        detail: bytes | None = None,
    ) -> None: ...
    def renumber(
        self,
        queue_id: int,
        generation: int,
        producer_id: int,
        epoch: int,
        base_sequence: int,
        serial: int,
        slice: int,
    ) -> None: ...
    def thaw(self, queue_id: int, generation: int, at: float, single: bool) -> None: ...
    def fail_queue(self, queue_id: int, error_code: int) -> None: ...
    def check_owner(self) -> None: ...
    def check_lives(self) -> None: ...
    def check_may_wait(self) -> None: ...
    def refuse(self, error: Exception | None = None) -> None: ...
    def raise_refusal(self) -> NoReturn: ...
    def mark_inherited(self) -> None: ...
    def shut_down(self) -> None: ...
    def stats(self) -> dict[str, Any]: ...
    def topic_stats(self) -> dict[str, dict[str, int]]: ...
    def take_used_topics(self) -> list[str]: ...
    def pending(self) -> int: ...
