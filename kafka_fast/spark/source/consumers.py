"""The consumers of a worker process, kept from task to task.

A task has its consumer for itself and gives it back with nothing assigned. A new task then finds
connections, metadata and fetch sessions ready. A task that fails closes its consumer.

Spark ends an idle worker with `os._exit`; nothing needs to be done for a consumer then, because it
belongs to no group. A consumer without a task for connections.max.idle.ms is closed before. After
a fork the child forgets the consumers, which are its parent's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from kafka_fast.config import consumer_settings
from kafka_fast.consumer.ranges.range_plan import OWN_DEFAULTS
from kafka_fast.consumer.ranges.record_range import RangeConsumer
from kafka_fast.errors import KafkaError
from kafka_fast.spark.options import JobConfig
from kafka_fast.spark.worker.idle_clients import IdleClients

MAX_IDLE = 4
"""Few, because each has threads and connections; a worker rarely reads for two queries."""


def new_consumer(config: JobConfig, **others: Any) -> RangeConsumer:
    """Return a consumer with the properties of a query.

    Args:
        config: the properties.
        **others: further ones.
    """
    return RangeConsumer({**OWN_DEFAULTS, **config.properties(), **others})


class KeptConsumer(NamedTuple):
    """A consumer of this worker."""

    config: JobConfig
    consumer: Any
    idle_timeout: float
    """Seconds without a task after which it is closed."""


class ConsumerCache:
    """The idle consumers of this process. Thread-safe.

    Args:
        make: makes a consumer.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        make: Callable[[JobConfig], Any] = new_consumer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self.idle = IdleClients(MAX_IDLE, _close, clock)

    @contextmanager
    def lease(self, config: JobConfig) -> Iterator[Any]:
        """Lend a consumer with these properties; an exception of the block closes it.

        A block that is left by GeneratorExit has read enough, as with LIMIT, and has not failed.
        """
        kept = self.idle.take_client(config) or self._new(config)
        try:
            yield kept.consumer
        except GeneratorExit:
            self._give_back(kept)
            raise
        except BaseException:
            _close([kept])
            raise
        self._give_back(kept)

    def _new(self, config: JobConfig) -> KeptConsumer:
        idle_timeout = consumer_settings(config.properties()).connections_max_idle
        return KeptConsumer(config, self._make(config), idle_timeout)

    def _give_back(self, kept: KeptConsumer) -> None:
        kept.consumer.assign([])
        _close(self.idle.put(kept.config, kept, kept.idle_timeout))


def _close(some: list[KeptConsumer]) -> None:
    for kept in some:
        with suppress(KafkaError):  # it belongs to no group, which could miss it
            kept.consumer.close(0)


CONSUMERS = ConsumerCache()
"""The cache of this process."""

os.register_at_fork(after_in_child=CONSUMERS.idle.drop_inherited)
