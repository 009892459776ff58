from collections.abc import Callable
from typing import Any

class Detached:
    def __init__(
        self,
        function: Callable[..., object],
        name: str,
        start: Callable[[Callable[..., object], tuple[Any, ...]], object] | None = None,
    ) -> None: ...
    def __call__(self, arguments: tuple[Any, ...]) -> None: ...

def wait_for_starts(patience: float) -> bool: ...
def forget_starts() -> None: ...
