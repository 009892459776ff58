from collections.abc import Generator, Mapping, Sequence
from typing import Any

from kafka_fast.sending._accumulator import Accumulator
from kafka_fast.sending.bulk._batch_future import BatchFuture

class BulkAccumulator(Accumulator):
    def send_many(
        self,
        topic: str,
        values: Any,
        *,
        keys: Any = None,
        partitions: Any = None,
        timestamps_ms: Any = None,
        headers: Sequence[Any] | Mapping[str, Any] | Any = None,
    ) -> BatchFuture: ...
    def send_table(
        self,
        topic: str | None,
        data: Any,
        *,
        value: str = "value",
        key: str | None = "key",
        headers: str | None = None,
        partition: str | None = None,
        timestamp: str | None = None,
    ) -> BatchFuture: ...
    def _many(
        self,
        topic: str,
        values: Any,
        keys: Any,
        partitions: Any,
        timestamps_ms: Any,
        headers: Any,
    ) -> Generator[Any, Any, BatchFuture]: ...
    def _table(
        self,
        topic: str | None,
        data: Any,
        value: str,
        key: str | None,
        headers: str | None,
        partition: str | None,
        timestamp: str | None,
    ) -> Generator[Any, Any, BatchFuture]: ...
    def _bulk_callback(self) -> object: ...
