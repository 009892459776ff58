"""What `async for record in consumer` iterates over."""

from collections.abc import AsyncIterator, Callable, Coroutine
from types import FrameType
from typing import Any, final

from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.dataplane.core._ready_call import ReadyCall
from kafka_fast.records._consumer_record import ConsumerRecord
from kafka_fast.records._consumer_records import RecordIterator
from kafka_fast.records._record_loop import RecordLoop

@final
class AsyncRecords(RecordLoop, AsyncIterator[ConsumerRecord]):
    def __init__(
        self,
        records: RecordIterator,
        wait: Callable[[AsyncRecords], Coroutine[Any, Any, ConsumerRecord]],
        frame: FrameType | None,
        plane: DataPlane,
    ) -> None: ...
    def __anext__(self) -> ReadyCall: ...
