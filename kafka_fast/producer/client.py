"""The producer: the blocking, thread-safe public client for sending records.

`Producer` inherits `send`, `send_nowait` and the bulk calls from the compiled append path, so that
no Python frame stands round them. The core behind `Producer` runs both planes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kafka_fast.config import producer_settings, warn_of_weakness
from kafka_fast.dataplane.bulk._bulk import BulkAccumulator
from kafka_fast.dataplane.produce.losses import were
from kafka_fast.errors import DeliveryError, KafkaError
from kafka_fast.logs import UNLIMITED, get_logger
from kafka_fast.net.threaded_host import ThreadedHost
from kafka_fast.producer.core import ProducerCore
from kafka_fast.serialization import serialize
from kafka_fast.types import PartitionInfo, RecordMetadata

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from kafka_fast.config.properties import ProducerProperties

__all__ = ["OnDelivery", "Producer"]

OnDelivery = Callable[[DeliveryError | None, RecordMetadata], object]
"""Called as `(error, metadata)`; with an error, the metadata's offset is -1."""

logger = get_logger("kafka_fast.producer")

_numbers = itertools.count(1)


class Producer(BulkAccumulator):
    """Sends records to Kafka. Thread-safe.

    Example:
        >>> with Producer({"bootstrap.servers": "localhost:9092"}) as producer:
        ...     future = producer.send("events", b"value", key=b"key")
        ...     print(future.result().offset)

    Args:
        config: Java's property names, dotted or with underscores; see the configuration page.
        on_delivery: Called as `(error, metadata)` on the callback thread, for every record that was
            sent without a callback of its own.
        **properties: The same properties as keywords, such as `bootstrap_servers=...`.

    Raises:
        ConfigError: A property is unknown, out of range or contradicts another.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        on_delivery: OnDelivery | None = None,
        **properties: Unpack[ProducerProperties],
    ) -> None:
        try:
            settings = producer_settings(config, properties)
        finally:
            del config, properties  # a traceback that has this frame shows no secret
        warn_of_weakness(settings)
        client_id = settings.client_id or f"producer-{next(_numbers)}"
        core = ProducerCore(settings, client_id, ThreadedHost(settings))
        partitioner = settings.partitioner_class
        transforms = (settings.key_serializer, settings.value_serializer) != (None, None)
        self._core = core
        self._settings = settings
        self.client_id = client_id
        with ExitStack() as undo:
            undo.callback(core.close, 0.0)
            super().__init__(
                core.queues,
                max_block=settings.max_block,
                partitioner=None if partitioner == "default" else partitioner,
                ignore_keys=settings.partitioner_ignore_keys,
                adaptive=settings.partitioner_adaptive_partitioning_enable,
                on_delivery=on_delivery or settings.on_delivery,
                transforms=transforms,
            )
            undo.pop_all()
        core.origin = self._origin

    # Called by the compiled base class

    def _need_topic(self, name: str) -> None:
        self._core.driver.run(self._core.topics.need(name))

    def _serialize(self, topic: str, key: object, value: object, headers: Any) -> tuple[Any, Any]:
        settings = self._settings
        if settings.key_serializer is not None:
            key = serialize(settings.key_serializer, "key", topic, key, headers)
        if settings.value_serializer is not None:
            value = serialize(settings.value_serializer, "value", topic, value, headers)
        return key, value

    # Public

    def flush(self, timeout: float | None = None) -> int:
        """Send all records accepted so far, and wait until each is delivered or has failed.

        Args:
            timeout: Seconds; None waits as long as delivery.timeout.ms lets records live.

        Returns:
            How many records are still pending; 0 without a timeout.

        Raises:
            DeliveryError: Records have failed that nobody can observe: they have no callback, and
                they were sent with `send_nowait` or their handle was dropped unread.
            UsageError: The caller is a delivery callback.
        """
        pending = self._core.flush(timeout)
        self._raise_lost()
        return pending

    def close(self, timeout: float | None = None) -> None:
        """Deliver all accepted records, then stop. Closing twice is allowed.

        In a delivery callback this call does not wait; accepted records are delivered afterwards.

        Args:
            timeout: Seconds; records not delivered by then fail with UsageError as their cause.

        Raises:
            DeliveryError: As for `flush`, and for records that were given up.
        """
        self._core.close(timeout)
        self._raise_lost()

    def _raise_lost(self) -> None:
        lost = self._core.lost()
        first = lost.first
        if first is None:
            return
        raise DeliveryError(
            f"{were(lost.count)} not delivered, and nobody was told; the first: {first}",
            outcome=first.outcome,
            count=lost.count,
            first=first,
            samples=(first,),
        ) from first

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """Return the topic's partitions, waiting for metadata up to max.block.ms.

        Raises:
            KafkaTimeoutError: No metadata by then.
            BrokerError: The topic cannot be used.
            UsageError: The producer does not run any more; or the caller is a delivery callback,
                which must not wait, and the topic is not known yet.
        """
        return self._core.driver.run(self._core.topics.partitions(topic))

    def metrics(self) -> dict[str, Any]:
        """Return counters and histograms of this producer, of each node and of each topic.

        Counters count from the start. Histograms are `{"count", "sum", "buckets"}`; a bucket's key
        is its upper bound, in microseconds if the name ends in `_us` (sums are seconds), otherwise
        in bytes. Troubles with links are counted by kind: unreadable answers by API, closed links
        by reason, failures to reach a node. A node's counters cover all connections to it; node -1
        stands for bootstrap.servers.

        Raises:
            UsageError: The producer belongs to the parent of this process.
        """
        return {"client_id": self.client_id, **self._core.stats()}

    def debug_dump(self, timeout: float = 5.0) -> str:
        """Return what this producer's connections did lately, for a bug report.

        The text lists up to 1,024 events of each link (time, kind, correlation id, batch, number of
        bytes), without the contents of records. Links that do not answer within `timeout` seconds
        are missing.
        """
        return self._core.driver.run(self._core.debug_dump(timeout))

    def __enter__(self) -> Producer:
        """Return the producer itself; leaving the block closes it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close. If the block has raised, losses are only logged, and do not hide its error."""
        try:
            self.close()
        except KafkaError as lost:
            if error is None:
                raise
            logger.error(  # noqa: TRY400 # a traceback says nothing more
                "producer %s: %s", self.client_id, lost, extra=UNLIMITED
            )

    def __del__(self) -> None:
        """Warn, and leave accepted records to the core, which delivers them and then ends."""
        core = getattr(self, "_core", None)
        if core is None or core.queues.dead:
            return  # the constructor failed, the core has ended, or it belongs to a parent process
        core.abandon()
        core.warn_unclosed()

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Refuse to be pickled."""
        raise TypeError(
            "a Producer cannot be pickled: make one in each process (for Spark, use "
            "kafka_fast.spark.write_partition)"
        )

    def __repr__(self) -> str:
        """Return the client id and whether the producer is closed."""
        if not hasattr(self, "_core"):
            return "<Producer, not made>"  # its constructor has failed, and an error is reported
        state = "closed" if self._queues.dead else "open"
        return f"<Producer {self.client_id} {state}>"
