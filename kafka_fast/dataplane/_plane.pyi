"""The data plane as an object: topics and queues, commands down, events up."""

from collections.abc import Awaitable, Callable
from typing import Any

EVENT_RESPONSE: int
EVENT_PUNT: int
EVENT_LINK_CLOSED: int
EVENT_THROTTLED: int
EVENT_ROUTE: int
EVENT_REPORT: int

FORMAT_NAME: int
FORMAT_COMPACT_NAME: int
FORMAT_ID: int

VERDICT_FAIL: int
VERDICT_SUCCEED: int
VERDICT_SPLIT: int

OUTCOME_NOT_SENT: int
OUTCOME_REJECTED: int
OUTCOME_MAYBE_WRITTEN: int

class Environment: ...

class Topic:
    name: str
    def __init__(self, name: str, seed: int) -> None: ...
    @property
    def partition_count(self) -> int: ...

class DataPlane:
    lost_count: int
    lost_first: Exception | None
    refuses: bool
    dead: bool
    def __init__(
        self,
        environment: Environment,
        *,
        buffer_memory: int,
        batch_size: int,
        max_request_size: int,
        coalesce_bytes: int,
        max_frame: int,
        linger: float,
        delivery_timeout: float,
        request_timeout: float,
        max_in_flight: int,
        codec: int = 0,
        idempotent: bool = True,
        acks_zero: bool = False,
    ) -> None: ...
    def topic(self, name: str, seed: int) -> Topic: ...
    def set_partitions(self, name: str, count: int) -> range: ...
    def partition_count(self, name: str) -> int: ...
    def set_available(self, queue_id: int, available: bool) -> None: ...
    def queue_of(self, queue_id: int) -> tuple[str, int]: ...
    def send_raw(self, link_id: int, token: int, frame: bytes, timeout: float) -> None: ...
    def close_link(self, link_id: int) -> None: ...
    def program(
        self, link_id: int, version: int, topic_format: int, prefix: bytes, correlation_pos: int
    ) -> None: ...
    def name_topic(self, name: str, topic_format: int, field: bytes) -> None: ...
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
    def fail_queue(self, queue_id: int, error_code: int, outcome: int) -> None: ...
    def set_callback_thread(self, ident: int) -> None: ...
    def check_may_wait(self) -> None: ...
    def set_callback_starter(self, starter: Callable[[], object] | None) -> None: ...
    def set_loop_bridge(
        self, bridge: Callable[[], tuple[Awaitable[None], Callable[[object, object], object]]]
    ) -> None: ...
    def refuse(self) -> None: ...
    def mark_dead(self) -> None: ...
    def flush(self, deadline: float) -> int: ...
    def shut_down(self) -> None: ...
    def take_events(self) -> list[tuple[Any, ...]]: ...
    def step(self, now: float) -> float: ...
    def stats(self) -> dict[str, Any]: ...
    def pending(self) -> int: ...
