"""One loop over the records of a consumer."""

from types import FrameType

from kafka_fast.records._consumer_record import ConsumerRecord
from kafka_fast.records._consumer_records import RecordIterator

class RecordLoop:
    def __init__(self, records: RecordIterator, frame: FrameType | None) -> None: ...
    def begin_next(self) -> bool: ...
    def take_next(self) -> ConsumerRecord: ...
