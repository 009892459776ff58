"""What the blocking producer and that of asyncio have in common."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kafka_fast.config import ProducerSettings, peek, producer_settings, warn_of_weakness
from kafka_fast.errors import DeliveryError, KafkaError
from kafka_fast.logs import UNLIMITED, ClientLog, naming
from kafka_fast.net.process import process_life  # noqa: F401  # registers
from kafka_fast.serialization import serialize
from kafka_fast.types import RecordMetadata

if TYPE_CHECKING:
    from kafka_fast.net.threaded_host import ThreadedHost
    from kafka_fast.producer.producer_core import ProducerCore
    from kafka_fast.producer.transaction_steps import TransactionSteps

OnDelivery = Callable[[DeliveryError | None, RecordMetadata], object]
"""Called as `(error, metadata)`; with an error, the metadata's offset is -1."""

_numbers = itertools.count(1)


def delivery_callback(given: Any) -> Any:
    """Return a callback that hears of deliveries, or None."""
    if given is not None and not callable(given):
        raise TypeError(
            f"{given!r} cannot be called; on_delivery is called with error and metadata"
        )
    return given


def accumulator_options(
    settings: ProducerSettings, on_delivery: OnDelivery | None
) -> dict[str, Any]:
    """Return the keywords of the accumulator of a producer with these settings."""
    partitioner = settings.partitioner_class
    return {
        "max_block": settings.max_block,
        "partitioner": None if partitioner == "default" else partitioner,
        "ignore_keys": settings.partitioner_ignore_keys,
        "adaptive": settings.partitioner_adaptive_partitioning_enable,
        "on_delivery": on_delivery or settings.on_delivery,
        "transforms": (settings.key_serializer, settings.value_serializer) != (None, None),
    }


def serialize_both(
    settings: ProducerSettings, topic: str, key: object, value: object, headers: Any
) -> tuple[Any, Any]:
    """Return key and value as the serializers, where there are any, make them."""
    if settings.key_serializer is not None:
        key = serialize(settings.key_serializer, "key", topic, key, headers)
    if settings.value_serializer is not None:
        value = serialize(settings.value_serializer, "value", topic, value, headers)
    return key, value


def start_core(
    config: Mapping[str, object] | None,
    properties: Mapping[str, Any],
    on_delivery: OnDelivery | None,
) -> tuple[ProducerCore, ProducerSettings, ThreadedHost]:
    """Start the core of a producer, and return it with its settings and its host.

    Args:
        config: properties, dotted or with underscores.
        properties: the same as keywords.
        on_delivery: is checked here, and used by the caller.
    """
    client_id = peek("client.id", config, properties) or f"producer-{next(_numbers)}"
    with naming(client_id):
        try:
            settings = producer_settings(config, properties)
        finally:
            del config, properties  # a traceback that has this frame shows no secret
        delivery_callback(on_delivery)
        # Here, as in the other kinds of clients: the planes are half of the import, and a program
        # that only names a client's class does not need them.
        from kafka_fast.net.threaded_host import ThreadedHost
        from kafka_fast.producer.loss_log import watch_losses
        from kafka_fast.producer.producer_core import ProducerCore

        warn_of_weakness(settings.tls)
        host = ThreadedHost(settings)
        core = ProducerCore(settings, client_id, host)
        watch_losses(core.queues)
    return core, settings, host


def transaction_steps_of(core: ProducerCore, settings: ProducerSettings) -> TransactionSteps:
    """Return the calls of a producer that concern transactions."""
    from kafka_fast.producer.transaction_steps import TransactionSteps  # as in `start_core`

    return TransactionSteps(core, settings.max_block)


class ProducerBase:
    """A producer without its calls that send, or wait; see `Producer` and `aio.Producer`."""

    client_id: str
    _core: ProducerCore

    def _log_lost(self, lost: KafkaError) -> None:
        """Log what a close has raised, where another error is on its way to the user."""
        ClientLog("kafka_fast.producer", self.client_id).error("%s", lost, extra=UNLIMITED)
        if isinstance(lost, DeliveryError):
            self._core.note_lost()

    def metrics(self) -> dict[str, Any]:
        """Return counters and histograms of this producer, of each node and of each topic.

        The page "Metrics" lists each name with its unit and its meaning. Counters count from the
        start. Histograms are `{"count", "sum", "buckets"}`; a bucket's key is its upper bound. Sum
        and bounds have the unit of the name: microseconds if it ends in `_us`, bytes if it ends in
        `_bytes`.

        Raises:
            UsageError: the producer belongs to the parent of this process.
        """
        return {"client_id": self.client_id, **self._core.stats()}

    def __del__(self) -> None:
        """Warn, and leave accepted records to the core, which delivers them and then ends."""
        core = getattr(self, "_core", None)
        if core is None:
            return  # the constructor failed
        if core.queues.dead:  # the core has ended, or it belongs to a parent process
            core.report_if_dead()
            return
        core.abandon("its producer was collected")
        core.warn_unclosed()

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Refuse to be pickled."""
        raise TypeError(
            "a Producer cannot be pickled or copied: make one in each process (for Spark, use "
            "kafka_fast.spark.write_partition)"
        )

    def __repr__(self) -> str:
        """Return the client id and whether the producer is closed."""
        if not hasattr(self, "_core"):
            return "<Producer, not made>"  # its constructor has failed, and an error is reported
        state = "closed" if self._core.queues.dead else "open"
        return f"<Producer {self.client_id} {state}>"
