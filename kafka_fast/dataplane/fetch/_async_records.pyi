"""What `async for record in consumer` iterates over."""

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, final

from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.dataplane.core._ready_call import ReadyCall
from kafka_fast.dataplane.fetch._consumer_record import ConsumerRecord
from kafka_fast.dataplane.fetch._consumer_records import RecordIterator

@final
class AsyncRecords(AsyncIterator[ConsumerRecord]):
    def __init__(
        self,
        records: RecordIterator,
        begin: Callable[[], Coroutine[Any, Any, ConsumerRecord]],
        wait: Callable[[], Coroutine[Any, Any, ConsumerRecord]],
        plane: DataPlane,
    ) -> None: ...
    def __anext__(self) -> ReadyCall: ...
