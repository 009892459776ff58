from typing import final

from kafka_fast.record._reader import RecordBatch

@final
class Origin: ...

@final
class RecordSlice:
    def __len__(self) -> int: ...

def slice_of(
    batch: RecordBatch, topic: str, partition: int, *, check_crc: bool = True
) -> RecordSlice: ...
