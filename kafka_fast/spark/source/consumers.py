"""The consumers of a worker process, kept from task to task.

A task has its consumer for itself and gives it back with nothing assigned. A new task then finds
connections, metadata and fetch sessions ready. A task that fails closes its consumer.

Spark ends an idle worker with `os._exit`; nothing needs to be done for a consumer then, because it
belongs to no group. A consumer without a task for connections.max.idle.ms is closed before. After
a fork the child forgets the consumers, which are its parent's.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from kafka_fast.config import consumer_settings
from kafka_fast.consumer.range import OWN_DEFAULTS, RangeConsumer
from kafka_fast.errors import KafkaError
from kafka_fast.instants import NEVER
from kafka_fast.spark.options import JobConfig

MAX_IDLE = 4
"""Few, because each has threads and connections; a worker rarely reads for two queries."""


def new_consumer(config: JobConfig, **others: Any) -> RangeConsumer:
    """Return a consumer with the properties of a query.

    Args:
        config: The properties.
        **others: Further ones.
    """
    return RangeConsumer({**OWN_DEFAULTS, **config.properties(), **others})


@dataclass(slots=True, eq=False)
class KeptConsumer:
    """A consumer of this worker."""

    config: JobConfig
    consumer: Any
    idle_timeout: float
    """Seconds without a task after which it is closed."""
    due: float = NEVER
    """Without a task: when that is."""


class ConsumerCache:
    """The idle consumers of this process. Thread-safe.

    Args:
        make: Makes a consumer.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        make: Callable[[JobConfig], Any] = new_consumer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._clock = clock
        self.forget()

    def forget(self) -> None:
        """Drop all consumers without closing them: after a fork they belong to the parent."""
        self._lock = threading.Lock()
        self._idle: list[KeptConsumer] = []  # the one that became idle last is the last one
        self._timer: threading.Timer | None = None

    @contextmanager
    def lease(self, config: JobConfig) -> Iterator[Any]:
        """Lend a consumer with these properties; an exception of the block closes it.

        A block that is left by GeneratorExit has read enough, as with LIMIT, and has not failed.
        """
        kept = self._take(config) or self._new(config)
        try:
            yield kept.consumer
        except GeneratorExit:
            self._give_back(kept)
            raise
        except BaseException:
            _close([kept])
            raise
        self._give_back(kept)

    def __len__(self) -> int:
        """Return the number of idle consumers."""
        with self._lock:
            return len(self._idle)

    def close_idle(self) -> None:
        """Close the consumers that have been idle for too long."""
        with self._lock:
            now = self._clock()
            closing = [it for it in self._idle if it.due <= now]
            self._idle = [it for it in self._idle if it.due > now]
            self._timer = None
            self._arm()
        _close(closing)

    def _take(self, config: JobConfig) -> KeptConsumer | None:
        with self._lock:
            for index in reversed(range(len(self._idle))):
                if self._idle[index].config == config:
                    return self._idle.pop(index)
        return None

    def _new(self, config: JobConfig) -> KeptConsumer:
        idle_timeout = consumer_settings(config.properties()).connections_max_idle
        return KeptConsumer(config, self._make(config), idle_timeout)

    def _give_back(self, kept: KeptConsumer) -> None:
        kept.consumer.assign([])
        kept.due = self._clock() + kept.idle_timeout
        with self._lock:
            self._idle.append(kept)
            surplus = self._idle[:-MAX_IDLE]
            del self._idle[:-MAX_IDLE]
            self._arm()
        _close(surplus)

    def _arm(self) -> None:
        """Have `close_idle` called when the next consumer is due."""
        if self._timer is not None or not self._idle:
            return
        due = min(it.due for it in self._idle)
        self._timer = threading.Timer(max(0.0, due - self._clock()), self.close_idle)
        self._timer.daemon = True
        self._timer.start()


def _close(some: list[KeptConsumer]) -> None:
    for kept in some:
        with suppress(KafkaError):  # it belongs to no group, which could miss it
            kept.consumer.close(0)


CONSUMERS = ConsumerCache()
"""The cache of this process."""

os.register_at_fork(after_in_child=CONSUMERS.forget)
