"""The producers of a worker process: one for each configuration, kept from task to task.

Spark forks a worker, gives it one task after the other, and ends the worker with `os._exit` when it
has been idle for a minute. So a producer is lent to a task, which waits for its own records.
Between tasks the producer is idle, and after connections.max.idle.ms without a task it is closed.

    lease(config) ──► idle? take it : make one ──► task ──► back, idle
                                                     └ failed, or the outcome of some records is
                                                       unknown ──► retired: closed at once, so that
                                                       no record of that attempt is sent any more

So no record is pending between tasks, and a delivery at the end of the process
(`net/process/process_life.py`) is never needed here. `os._exit` and SIGKILL would not allow it.
Keys hold the process id, and a fork clears the cache: a child never touches its parent's producers.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kafka_fast.errors import KafkaError
from kafka_fast.logs import get_logger
from kafka_fast.producer import Producer
from kafka_fast.spark.options import JobConfig, writer_settings
from kafka_fast.spark.worker.idle_clients import IdleClients

logger = get_logger(__name__)

MAX_IDLE_PRODUCERS = 4
"""Few, because each has threads, connections and up to buffer.memory; a job rarely has two
configurations.
"""


@dataclass(slots=True, eq=False)
class Lent:
    """A producer and the number of its users."""

    key: tuple[int, JobConfig]
    producer: Any
    idle_timeout: float
    """Seconds without a task after which the producer is closed."""
    delivery_timeout: float
    """Seconds in which the outcome of a record is known."""
    tasks: int = 0
    """Number of tasks that use the producer now."""
    retired: bool = False
    """Whether no task gets the producer any more; it is closed when its last task ends."""


class ProducerCache:
    """The producers of this process. Thread-safe.

    Args:
        make: makes a producer from a configuration.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        make: Callable[[dict[str, Any]], Any] = Producer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self.idle = IdleClients(MAX_IDLE_PRODUCERS, _close, clock)
        self.drop_inherited()

    def drop_inherited(self) -> None:
        """Drop all producers without closing them: after a fork they belong to the parent."""
        self._lock = threading.Lock()
        self._lent: dict[tuple[int, JobConfig], Lent] = {}
        self.idle.drop_inherited()

    @contextmanager
    def lease(self, config: JobConfig) -> Iterator[Any]:
        """Lend the producer of `config` for one task; an exception of the block retires it."""
        lent = self._take(config)
        try:
            yield lent.producer
        except BaseException:
            self._give_back(lent, retire=True)
            raise
        self._give_back(lent, retire=False)

    def retire(self, producer: Any) -> None:
        """Have a lent producer closed when its last task gives it back."""
        with self._lock:
            for lent in self._lent.values():
                if lent.producer is producer:
                    lent.retired = True
                    del self._lent[lent.key]
                    return

    def delivery_timeout(self, producer: Any) -> float:
        """Return the seconds in which a lent producer knows the outcome of a record."""
        with self._lock:
            return next(
                lent.delivery_timeout for lent in self._lent.values() if lent.producer is producer
            )

    def __len__(self) -> int:
        """Return the number of producers in the cache."""
        with self._lock:
            return len(self._lent) + len(self.idle)

    def _take(self, config: JobConfig) -> Lent:
        key = (os.getpid(), config)
        with self._lock:
            lent = self._lent.get(key) or self.idle.take_client(key) or self._new(key)
            self._lent[key] = lent
            lent.tasks += 1
            return lent

    def _new(self, key: tuple[int, JobConfig]) -> Lent:
        properties = key[1].properties()
        settings = writer_settings(properties)
        return Lent(
            key, self._make(properties), settings.connections_max_idle, settings.delivery_timeout
        )

    def _give_back(self, lent: Lent, *, retire: bool) -> None:
        closing = []
        with self._lock:
            lent.tasks -= 1
            lent.retired |= retire
            if (lent.retired or lent.tasks == 0) and self._lent.get(lent.key) is lent:
                del self._lent[lent.key]
            if lent.tasks == 0:
                closing = (
                    [lent] if lent.retired else self.idle.put(lent.key, lent, lent.idle_timeout)
                )
        _close(closing)


def _close(some: list[Lent]) -> None:
    """Close producers that no task uses."""
    for lent in some:
        _close_now(lent.producer)


def _close_now(producer: Any) -> None:
    """Close a producer, and give up its records: Spark's next attempt writes them again."""
    try:
        producer.close(timeout=0.0)
    except KafkaError as error:
        logger.info("closed a producer with undelivered records: %s", error)


PRODUCERS = ProducerCache()
"""The cache of this process."""

os.register_at_fork(after_in_child=PRODUCERS.drop_inherited)
