"""The clients for asyncio: the names and arguments of `kafka_fast`, awaited where they may wait.

    >>> from kafka_fast.aio import Consumer
    >>> async with Consumer(bootstrap_servers="localhost:9092", group_id="g") as consumer:
    ...     consumer.subscribe(["events"])
    ...     async for record in consumer:
    ...         print(record.offset, record.value)

They run the steps of the blocking clients, in the tasks of an event loop. Nothing polls: each
client has one event descriptor among the readers of each loop that uses it. Only a close starts a
thread, which waits until the client's own threads have ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_fast._lazy import lazily
from kafka_fast.peer_names import AIO_MODULE

if TYPE_CHECKING:
    from kafka_fast.aio.admin import Admin
    from kafka_fast.aio.consumer import Consumer
    from kafka_fast.aio.listener import RebalanceListener
    from kafka_fast.aio.producer import Producer
    from kafka_fast.aio.range import RecordRange, read_range
else:  # type checkers would take any name for one that is here
    _WHERE = {
        "Admin": "admin",
        "Consumer": "consumer",
        "Producer": "producer",
        "RebalanceListener": "listener",
        "RecordRange": "range",
        "read_range": "range",
    }
    __getattr__, __dir__ = lazily(__name__, _WHERE, lambda: AIO_MODULE)

__all__ = [
    "Admin",
    "Consumer",
    "Producer",
    "RebalanceListener",
    "RecordRange",
    "read_range",
]
