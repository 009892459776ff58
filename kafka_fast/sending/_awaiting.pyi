"""What event loops wait for."""

import asyncio
from collections.abc import Callable
from typing import Any, final

from kafka_fast.dataplane.produce._queues import Queues

@final
class LoopWaits:
    loop: asyncio.AbstractEventLoop
    def __init__(
        self,
        queues: Queues,
        loop: asyncio.AbstractEventLoop,
        take: Callable[[], object],
        wake: Callable[[], object],
    ) -> None: ...
    @property
    def idle(self) -> bool: ...
    def take_due(self) -> list[Any]: ...
    def run(self, due: list[Any]) -> None: ...
