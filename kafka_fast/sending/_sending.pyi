"""`send` in an event loop."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import datetime
from typing import Any

from kafka_fast.errors import DeliveryError
from kafka_fast.sending._accumulator import Accumulator
from kafka_fast.sending._delivery import DeliveryFuture
from kafka_fast.types import RecordMetadata

class AsyncSender:
    _origin: object
    in_line: int
    wanted: int
    def _may_go_on(self) -> bool: ...
    def _set_accumulator(self, accumulator: Accumulator, runs_users_code: bool) -> None: ...
    def _send_waiting(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | datetime | None,
        headers: Any,
        on_delivery: Any,
    ) -> Coroutine[Any, Any, DeliveryFuture]: ...
    def _send_prepared(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | datetime | None,
        headers: Any,
        on_delivery: Any,
    ) -> DeliveryFuture: ...
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
    ) -> Coroutine[Any, Any, DeliveryFuture]: ...
