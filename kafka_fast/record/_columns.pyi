from typing import NamedTuple, final

from kafka_fast.record._records import Records

@final
class BytesColumn:
    @property
    def offsets(self) -> memoryview[int]: ...
    @property
    def data(self) -> memoryview: ...
    @property
    def validity(self) -> memoryview | None: ...
    @property
    def null_count(self) -> int: ...
    def __len__(self) -> int: ...
    def to_list(self) -> list[bytes | None]: ...

class Columns(NamedTuple):
    offsets: memoryview[int]
    timestamps: memoryview[int]
    keys: BytesColumn
    values: BytesColumn

def columns(records: Records) -> Columns: ...
