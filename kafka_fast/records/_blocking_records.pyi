"""What `for record in consumer` iterates over."""

from collections.abc import Callable, Iterator
from types import FrameType
from typing import final

from kafka_fast.records._consumer_record import ConsumerRecord
from kafka_fast.records._consumer_records import RecordIterator
from kafka_fast.records._record_loop import RecordLoop

@final
class BlockingRecords(RecordLoop, Iterator[ConsumerRecord]):
    def __init__(
        self, records: RecordIterator, ask: Callable[[bool], object], frame: FrameType | None
    ) -> None: ...
    def __next__(self) -> ConsumerRecord: ...
