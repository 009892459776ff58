"""The options of a write: checked on the driver, sent to the workers as plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from kafka_fast.config import producer_settings
from kafka_fast.errors import ConfigError, UsageError

Scalar: TypeAlias = str | int | float | bool | None
FrozenConfig: TypeAlias = tuple[tuple[str, Scalar], ...]
"""A producer's sorted properties, which are hashable, and equal for equal configurations."""

OnError: TypeAlias = Literal["raise", "report"]

CHUNK_RECORDS = 10_000
LONGEST_SHOWN = 100
ADDRESS = re.compile(r":\d+\b")


class TaskOptions(NamedTuple):
    """The options of every task of a job, sent to the workers as a plain tuple."""

    config: FrozenConfig
    topic: str | None
    on_error: OnError
    chunk_records: int


def task_options(
    config: Mapping[str, object],
    topic: str | None,
    *,
    call: str = "write_rdd(rdd, {config}, {topic})",
    on_error: OnError = "raise",
    chunk_records: int = CHUNK_RECORDS,
) -> TaskOptions:
    """Return the options of a write.

    Args:
        config: A producer's properties.
        topic: Topic of all records, or None.
        call: The user's call, as code with {config} and {topic}, for messages.
        on_error: What happens if records fail: "raise" or "report".
        chunk_records: Most records that are handed to the producer at once.

    Raises:
        ConfigError: A property is unknown, out of range, or no plain value.
        TypeError: The configuration is no mapping, or the topic no str; the message shows the call
            that was most likely meant.
        UsageError: Another argument is not valid.
    """
    if not isinstance(config, Mapping):
        raise TypeError(_no_mapping(config, topic, call))
    frozen = freeze(config)
    producer_settings(dict(frozen))  # a mistake shows on the driver, before any task runs
    if topic is not None and not isinstance(topic, str):
        right = call.format(config="config", topic="'events'")
        raise TypeError(f"the topic is a str, not {_shown(topic)}: {right}")
    if on_error not in ("raise", "report"):
        raise UsageError(f"on_error must be 'raise' or 'report', not {on_error!r}")
    if chunk_records < 1:
        raise UsageError(f"chunk_records must be at least 1, not {chunk_records}")
    return TaskOptions(frozen, topic, on_error, chunk_records)


def _no_mapping(config: object, topic: object, call: str) -> str:
    """Return a message about a configuration that is no mapping, with the right call."""
    is_address = isinstance(config, str) and ADDRESS.search(config) is not None
    meant = config if topic is None or isinstance(topic, Mapping) else topic
    is_name = isinstance(meant, str) and not (meant is config and is_address)
    servers = {"bootstrap.servers": config if is_address else "localhost:9092"}
    right = call.format(
        config="config" if isinstance(topic, Mapping) else servers,
        topic=repr(meant) if is_name else "topic",
    )
    if isinstance(topic, Mapping):
        return f"the configuration comes before the topic: {right}"
    return f"the configuration is a mapping of properties, not {_shown(config)}: {right}"


def _shown(given: object) -> str:
    """Return the argument as code, or its type if the code is long."""
    shown = repr(given)
    return shown if len(shown) <= LONGEST_SHOWN else type(given).__name__


def freeze(config: Mapping[str, object]) -> FrozenConfig:
    """Return the configuration in its hashable form.

    Raises:
        ConfigError: A value is an object, such as a callable. Each task would get its own copy, and
            so its own producer. The callable's work belongs into the job.
    """
    frozen = []
    for name, value in config.items():
        plain = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else value
        if plain is not None and not isinstance(plain, (str, int, float)):
            raise ConfigError(
                f"{name} must be a plain value in a Spark job, not {type(value).__name__}: "
                "serialize in the job, and give each record its partition where you need to"
            )
        frozen.append((str(name), plain))
    return tuple(sorted(frozen))
