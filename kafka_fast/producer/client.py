"""The producer: the blocking, thread-safe public client for sending records.

`Producer` inherits `send`, `send_nowait` and the bulk calls from the compiled append path, so that
no Python frame stands round them. The core behind `Producer` runs both planes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kafka_fast._hints import hint_at_arguments, hint_at_names
from kafka_fast.errors import KafkaError
from kafka_fast.net.process.daemon_threads import daemon_threads
from kafka_fast.peer_names import BULK_ARGUMENTS, PRODUCER, PRODUCER_ARGUMENTS
from kafka_fast.producer.base import (
    OnDelivery,
    ProducerBase,
    accumulator_options,
    serialize_both,
    start_core,
    transaction_steps_of,
)
from kafka_fast.producer.transactional import TransactionalCalls
from kafka_fast.sending.bulk._bulk import BulkAccumulator
from kafka_fast.times import timeout_seconds
from kafka_fast.types import PartitionInfo

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from kafka_fast.config.properties import ProducerProperties

__all__ = ["OnDelivery", "Producer"]


class Producer(ProducerBase, TransactionalCalls, BulkAccumulator):
    """Sends records to Kafka. Thread-safe.

    Examples:
        >>> with Producer({"bootstrap.servers": "localhost:9092"}) as producer:
        ...     future = producer.send("events", b"value", key=b"key")
        ...     print(future.result().offset)

    Args:
        config: Java's property names, dotted or with underscores; see the configuration page.
        on_delivery: called as `(error, metadata)` on the callback thread, for every record that was
            sent without a callback of its own.
        **properties: the same properties as keywords, such as `bootstrap_servers=...`.

    Raises:
        ConfigError: a property is unknown, out of range or contradicts another.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        on_delivery: OnDelivery | None = None,
        **properties: Unpack[ProducerProperties],
    ) -> None:
        try:
            core, settings, _ = start_core(config, properties, on_delivery)
        finally:
            del config, properties  # a traceback that has this frame shows no secret
        self._core = core
        self._settings = settings
        self.client_id = core.client_id
        with ExitStack() as undo:
            undo.callback(core.close, 0.0)
            BulkAccumulator.__init__(
                self, core.queues, **accumulator_options(settings, on_delivery)
            )
            undo.pop_all()
        self._transactions = transaction_steps_of(core, settings)
        core.origin = self._origin
        core.queues.before_refusal = daemon_threads.hold_daemon

    # ---- called by the compiled base class ----

    def _need_topic(self, name: str) -> None:
        self._core.driver.run(self._core.topics.need(name))

    def _serialize(self, topic: str, key: object, value: object, headers: Any) -> tuple[Any, Any]:
        return serialize_both(self._settings, topic, key, value, headers)

    # ---- public ----

    def flush(self, timeout: float | None = None) -> int:
        """Send all records accepted so far, and wait until each is delivered or has failed.

        Args:
            timeout: seconds; None waits as long as delivery.timeout.ms lets records live.

        Returns:
            How many records are still pending; 0 without a timeout.

        Raises:
            DeliveryError: records have failed that nobody can observe: they have no callback, and
                they were sent with `send_nowait` or their handle was dropped unread.
            UsageError: the caller is a delivery callback.
        """
        pending = self._core.flush(None if timeout is None else timeout_seconds(timeout))
        self._core.raise_lost()
        return pending

    def close(self, timeout: float | None = None) -> None:
        """Deliver all accepted records, then stop. Closing twice is allowed.

        A transaction that is still open is aborted, and a warning says so.

        In a delivery callback this call does not wait; accepted records are delivered afterwards.

        Args:
            timeout: seconds; records not delivered by then fail with UsageError as their cause.

        Raises:
            DeliveryError: as for `flush`, and for records that were given up.
        """
        timeout = None if timeout is None else timeout_seconds(timeout)
        if self._core.may_wait_to_close():
            timeout = self._core.driver.run(self._transactions.abort_open(timeout))
        self._core.close(timeout)
        self._core.raise_lost()

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """Return the topic's partitions, waiting for metadata up to max.block.ms.

        Raises:
            KafkaTimeoutError: no metadata by then.
            BrokerError: the topic cannot be used.
            UsageError: the producer does not run any more; or the caller is a delivery callback,
                which must not wait, and the topic is not known yet.
        """
        return self._core.driver.run(self._core.topics.partitions(topic))

    def debug_dump(self, timeout: float = 5.0) -> str:
        """Return what this producer's connections did lately, for a bug report.

        The text lists up to 1,024 events of each link (time, kind, correlation id, batch, number of
        bytes), without the contents of records. Links that do not answer within `timeout` seconds
        are missing.
        """
        return self._core.driver.run(self._core.debug_dump(timeout_seconds(timeout)))

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
            self._log_lost(lost)


hint_at_names(Producer, PRODUCER, PRODUCER_ARGUMENTS)
hint_at_arguments(Producer, BULK_ARGUMENTS)
