"""A small pool of native threads that compress sealed batches."""

from collections.abc import Callable

class Compressor:
    thread_count: int
    def __init__(self, codec: int, level: int) -> None: ...
    def stop(self) -> None: ...

class Handover:
    def work(
        self, compress: Callable[[bytes], bytes], report: Callable[[Exception], object]
    ) -> int: ...
