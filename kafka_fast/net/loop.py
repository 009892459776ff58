"""Between the data plane's world and an asyncio event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def bridge() -> tuple[asyncio.Future[None], Callable[[object, object], None]]:
    """Return a future of the running loop, and a callback that ends its wait from any thread."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not waiter.done():  # it may have been cancelled meanwhile
            waiter.set_result(None)

    return waiter, lambda error, metadata: _tell(loop, settle)


def _tell(loop: asyncio.AbstractEventLoop, settle: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(settle)
