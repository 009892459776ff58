"""The append path: `send` and what stands behind it."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.errors import DeliveryError
from kafka_fast.sending._delivery import DeliveryFuture
from kafka_fast.types import RecordMetadata

class Accumulator:
    _queues: Queues
    _origin: object
    def __init__(
        self,
        queues: Queues,
        *,
        max_block: float,
        partitioner: Callable[..., int] | str | None = None,
        ignore_keys: bool = False,
        adaptive: bool = True,
        on_delivery: Callable[[DeliveryError | None, RecordMetadata], object] | None = None,
        transforms: bool = False,
        never_waits: bool = False,
    ) -> None: ...
    def _need_topic(self, name: str) -> None: ...
    def _serialize(self, topic: str, key: Any, value: Any, headers: Any) -> tuple[Any, Any]: ...
    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | datetime | None = None,
        headers: Iterable[tuple[str, Any]] | Mapping[str, Any] | None = None,
        on_delivery: Callable[[DeliveryError | None, RecordMetadata], object] | None = None,
    ) -> DeliveryFuture: ...
    def send_nowait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | datetime | None = None,
        headers: Iterable[tuple[str, Any]] | Mapping[str, Any] | None = None,
        on_delivery: Callable[[DeliveryError | None, RecordMetadata], object] | None = None,
    ) -> None: ...
