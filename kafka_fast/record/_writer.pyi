from collections.abc import Iterable
from typing import final

from typing_extensions import Buffer

from kafka_fast.record.types import Codec, ControlType

@final
class RecordBatchBuilder:
    def __init__(
        self,
        *,
        codec: Codec | int = ...,
        level: int | None = None,
        base_offset: int = 0,
        leader_epoch: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
        is_control: bool = False,
        log_append_time_ms: int | None = None,
    ) -> None: ...
    def append(
        self,
        key: Buffer | None,
        value: Buffer | None,
        timestamp_ms: int,
        headers: Iterable[tuple[str, Buffer | str | None]] = (),
        *,
        offset_delta: int | None = None,
    ) -> int: ...
    def __len__(self) -> int: ...
    @property
    def size(self) -> int: ...
    def build(self, *, last_offset_delta: int | None = None) -> bytes: ...

def build_control_batch(
    kind: ControlType,
    *,
    base_offset: int,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
    coordinator_epoch: int = 0,
    leader_epoch: int = -1,
) -> bytes: ...
def stamp_batch(
    batch: Buffer,
    *,
    base_offset: int,
    leader_epoch: int,
    log_append_time_ms: int | None = None,
) -> None: ...
