from collections.abc import Iterable
from typing import Any, Generic, final

from typing_extensions import TypeVar

from kafka_fast.record.types import TimestampType

_K_co = TypeVar("_K_co", covariant=True, default=Any)
_V_co = TypeVar("_V_co", covariant=True, default=Any)

@final
class ConsumerRecord(Generic[_K_co, _V_co]):
    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        key: _K_co = ...,
        value: _V_co = ...,
        *,
        timestamp_ms: int = ...,
        timestamp_type: int = ...,
        headers: Iterable[tuple[str, bytes | None]] = ...,
        leader_epoch: int = ...,
        serialized_key_size: int | None = None,
        serialized_value_size: int | None = None,
    ) -> None: ...
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def timestamp_type(self) -> TimestampType: ...
    @property
    def key(self) -> _K_co: ...
    @property
    def value(self) -> _V_co: ...
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def serialized_key_size(self) -> int: ...
    @property
    def serialized_value_size(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

def restore(
    topic: str,
    partition: int,
    offset: int,
    key: Any,
    value: Any,
    timestamp_ms: int,
    timestamp_type: TimestampType,
    headers: tuple[tuple[str, bytes | None], ...],
    leader_epoch: int,
    key_size: int,
    value_size: int,
) -> ConsumerRecord: ...
