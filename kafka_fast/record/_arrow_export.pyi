from collections.abc import Callable, Iterable, Sequence
from typing import Literal, final

from kafka_fast.record._slices import RecordSlice

@final
class ArrowRecords:
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class ArrowSteps:
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def arrow_steps(
    next_slices: Callable[[], list[RecordSlice] | None],
    topics: Iterable[str],
    *,
    layout: Literal["kafka", "spark"] = "kafka",
    views: bool = False,
    headers: bool | None = None,
    columns: Sequence[str] | None = None,
    text: bool = False,
    failures: list[BaseException] | None = None,
) -> ArrowSteps: ...
