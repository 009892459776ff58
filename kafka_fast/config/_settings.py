"""The configuration as typed attributes, for the code that runs with it.

One field for each property that this version supports, named like it (`linger.ms` is
`linger_ms`); a test holds the fields and the table together. The properties of TLS and SASL are
the parts of two fields, `tls` and `sasl`. Durations stay integers of
milliseconds, as in the table; beside each there is the same in seconds, without the `_ms`
(`linger`), which is what everything that compares with `now` uses. This is the only place that
converts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from kafka_fast.config._address import Address
from kafka_fast.config._key import PRODUCER
from kafka_fast.config.security._resolve_security import resolve_security
from kafka_fast.config.security._security_settings import SaslSettings, TlsSettings
from kafka_fast.config.spelling._normalize import Config, normalize
from kafka_fast.errors import ConfigError
from kafka_fast.logs import get_logger
from kafka_fast.serialization import Serializer, as_serializer
from kafka_fast.values import Value, field_names

_log = get_logger("kafka_fast.config")

Partitioner: TypeAlias = Callable[..., int]
"""A user's partitioner; `Producer` says what it is called with."""

MAX_IDEMPOTENT_IN_FLIGHT = 5
"""A broker remembers the last five batches of a producer and partition, so no more may fly."""

ZLIB_DEFAULT_LEVEL = 6
"""What gzip's level -1 stands for."""

LZ4_MAX_LEVEL = 12
"""liblz4's highest level; Java's range goes on to 17, with the same result."""

ZSTD_MIN_LEVEL = -7
"""Lower levels, which Java's range has, hardly compress at all."""


class Seconds:
    """A duration in seconds, read from the field of the same name with `_ms`; -1 means no limit."""

    __slots__ = ("_field",)

    def __set_name__(self, owner: type, name: str) -> None:
        self._field = f"{name}_ms"

    def __get__(self, settings: object, owner: type | None = None) -> float:
        duration: int = getattr(settings, self._field)
        return math.inf if duration < 0 else duration / 1000


class CommonSettings(Value, kw_only=True):
    """What every client needs to find brokers and to talk to them."""

    bootstrap_servers: tuple[Address, ...]
    client_id: str
    client_dns_lookup: str
    security_protocol: str
    serializer_encoding: str
    request_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    socket_connection_setup_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    connections_max_idle_ms: int
    send_buffer_bytes: int
    receive_buffer_bytes: int
    receive_message_max_bytes: int
    metadata_max_age_ms: int
    metadata_recovery_strategy: str
    metadata_recovery_rebootstrap_trigger_ms: int
    tls: TlsSettings | None = None
    """How TLS is spoken; None: it is not, as `security_protocol` says."""
    sasl: SaslSettings | None = None
    """How the client says who it is; None: it does not, as `security_protocol` says."""

    request_timeout = Seconds()
    retry_backoff = Seconds()
    retry_backoff_max = Seconds()
    reconnect_backoff = Seconds()
    reconnect_backoff_max = Seconds()
    socket_connection_setup_timeout = Seconds()
    socket_connection_setup_timeout_max = Seconds()
    connections_max_idle = Seconds()
    metadata_max_age = Seconds()
    metadata_recovery_rebootstrap_trigger = Seconds()


class ProducerSettings(CommonSettings, kw_only=True):
    """A producer's configuration, complete and free of contradictions."""

    key_serializer: Serializer | None
    value_serializer: Serializer | None
    acks: int
    """-1 (all), 0 or 1, as in the Produce request."""
    enable_idempotence: bool
    retries: int
    max_in_flight_requests_per_connection: int
    delivery_timeout_ms: int
    linger_ms: int
    batch_size: int
    buffer_memory: int
    max_block_ms: int
    max_request_size: int
    request_coalesce_bytes: int
    compression_type: str
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    partitioner_class: str | Partitioner
    """`default`, `round_robin`, or the user's callable."""
    partitioner_adaptive_partitioning_enable: bool
    partitioner_availability_timeout_ms: int
    partitioner_ignore_keys: bool
    metadata_max_idle_ms: int
    client_rack: str
    exit_flush_timeout_ms: int
    exit_status_on_loss: int
    on_delivery: Callable[..., object] | None
    transactional_id: str | None
    transaction_timeout_ms: int

    transaction_timeout = Seconds()
    delivery_timeout = Seconds()
    linger = Seconds()
    max_block = Seconds()
    partitioner_availability_timeout = Seconds()
    metadata_max_idle = Seconds()
    exit_flush_timeout = Seconds()

    @property
    def compression_level(self) -> int:
        """The level of the chosen codec as its library wants it; 0 if it has none."""
        match self.compression_type:
            case "gzip":
                return (
                    ZLIB_DEFAULT_LEVEL
                    if self.compression_gzip_level < 0
                    else (self.compression_gzip_level)
                )
            case "lz4":
                return min(self.compression_lz4_level, LZ4_MAX_LEVEL)
            case "zstd":
                return max(self.compression_zstd_level, ZSTD_MIN_LEVEL)
        return 0


def producer_settings(
    mapping: Mapping[str, object] | None = None, kwargs: Mapping[str, object] | None = None
) -> ProducerSettings:
    """Return the settings of a producer from what its constructor was given.

    Raises:
        ConfigError: see `normalize`; or `bootstrap.servers` is missing, or properties
            that were given explicitly contradict each other.
    """
    try:
        config = normalize(mapping, kwargs, client=PRODUCER)
    finally:
        del mapping, kwargs  # see normalize
    values = dict(config)
    check_required(values)
    resolve_backoff(config, values)
    _resolve_idempotence(config, values)
    _resolve_delivery_timeout(config, values)
    values |= resolve_security(config)
    for name in ("key.serializer", "value.serializer"):
        values[name] = as_serializer(values[name], values["serializer.encoding"])
    return ProducerSettings(
        **{name: values[name.replace("_", ".")] for name in field_names(ProducerSettings)}
    )


def check_required(values: Mapping[str, Any]) -> None:
    """Refuse a configuration that says not even whom to talk to."""
    if not values["bootstrap.servers"]:
        raise ConfigError("bootstrap.servers is required: host:port of at least one broker")


def resolve_backoff(config: Config, values: dict[str, Any]) -> None:
    """Make the longest pause at least as long as the first one, as Java does."""
    for first, longest in (
        ("retry.backoff.ms", "retry.backoff.max.ms"),
        ("reconnect.backoff.ms", "reconnect.backoff.max.ms"),
        ("socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms"),
    ):
        if values[first] <= values[longest]:
            continue
        if longest in config.explicit:
            _log.warning(
                "%s=%d is more than %s=%d and replaces it: no exponential growth",
                first,
                values[first],
                longest,
                values[longest],
            )
        values[longest] = values[first]
    # An explicit pause without a maximum asked for a constant one before there was a maximum.
    explicit = config.explicit
    if "reconnect.backoff.ms" in explicit and "reconnect.backoff.max.ms" not in explicit:
        values["reconnect.backoff.max.ms"] = values["reconnect.backoff.ms"]


def _resolve_idempotence(config: Config, values: dict[str, Any]) -> None:
    """Let idempotence yield to what it does not allow, unless it was asked for."""
    is_transactional = values["transactional.id"] is not None
    if values["transactional.id"] == "":
        raise ConfigError("transactional.id must not be empty")
    if not values["enable.idempotence"]:
        if is_transactional:
            raise ConfigError("transactional.id needs idempotence: enable.idempotence=false")
        return
    in_flight = values["max.in.flight.requests.per.connection"]
    obstacles = []
    if values["acks"] != -1:
        obstacles.append(f"acks={values['acks']}, it needs acks=all")
    if values["retries"] == 0:
        obstacles.append("retries=0, it needs retries")
    if in_flight > MAX_IDEMPOTENT_IN_FLIGHT:
        obstacles.append(
            f"max.in.flight.requests.per.connection={in_flight}, it needs at most "
            f"{MAX_IDEMPOTENT_IN_FLIGHT}"
        )
    if not obstacles:
        return
    if is_transactional:
        raise ConfigError(f"transactional.id needs idempotence: {'; '.join(obstacles)}")
    if "enable.idempotence" in config.explicit:
        raise ConfigError(f"enable.idempotence=true contradicts {'; '.join(obstacles)}")
    _log.info("idempotence is off because of %s", "; ".join(obstacles))
    values["enable.idempotence"] = False


def _resolve_delivery_timeout(config: Config, values: dict[str, Any]) -> None:
    """See that a record has time to linger and to be sent once."""
    least = values["linger.ms"] + values["request.timeout.ms"]
    timeout = values["delivery.timeout.ms"]
    if timeout >= least:
        return
    if "delivery.timeout.ms" in config.explicit:
        raise ConfigError(
            f"delivery.timeout.ms={timeout} is less than linger.ms + request.timeout.ms = "
            f"{values['linger.ms']} + {values['request.timeout.ms']} = {least}"
        )
    _log.warning("delivery.timeout.ms is raised to linger.ms + request.timeout.ms = %d", least)
    values["delivery.timeout.ms"] = least
