"""The options of a write: checked on the driver, sent to the workers as plain data.

A configuration may have secrets in it, so it travels in a `JobConfig`, which shows no values. Spark
carries it to the workers in plain text, with the job's code. A function that makes the
configuration there keeps secrets out of that.
"""

from __future__ import annotations

import pickle
import platform
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from kafka_fast.config import (
    ProducerSettings,
    conceal,
    consumer_settings,
    own_key,
    producer_settings,
    read_properties,
    shown,
)
from kafka_fast.errors import ConfigError, UsageError

Scalar: TypeAlias = str | int | float | bool | None
FrozenConfig: TypeAlias = tuple[tuple[str, Scalar], ...]
"""A producer's sorted properties, which are hashable, and equal for equal configurations."""

JobConfiguration: TypeAlias = Mapping[str, object] | Callable[[], Mapping[str, object]]
"""What users give: a producer's properties, or a function that returns them on the executor."""

OnError: TypeAlias = Literal["raise", "report"]

CHUNK_RECORDS = 10_000
ADDRESS = re.compile(r":\d+\b")


def writer_settings(properties: Mapping[str, object]) -> ProducerSettings:
    """Return the settings of the producer of a job's tasks.

    Raises:
        ConfigError: as `producer_settings`; or the property asks for transactions.
    """
    settings = producer_settings(properties)
    if settings.transactional_id is not None:
        raise ConfigError(
            "transactional.id: a Spark job writes without transactions; a task that is run again "
            "may write its records again"
        )
    return settings


SETTINGS: Mapping[str, Callable[[Mapping[str, object]], object]] = {
    "producer": writer_settings,
    "consumer": consumer_settings,
}


class JobConfig:
    """A client's configuration on its way to a task; equal ones share a client."""

    __slots__ = ("client", "plain")

    def __init__(self, plain: FrozenConfig | bytes, client: str = "producer") -> None:
        """Keep the properties of such a client, or a pickled function that returns them."""
        self.plain = plain
        self.client = client

    def properties(self) -> dict[str, object]:
        """Return the properties, in which secrets hide themselves. In a task.

        Raises:
            ConfigError: the user's function returned no mapping. Its own exceptions pass.
        """
        if isinstance(self.plain, tuple):
            return conceal(dict(self.plain), self.client)
        made = pickle.loads(self.plain)()
        if not isinstance(made, Mapping):
            kind = type(made).__name__
            del made
            raise ConfigError(
                f"the function that makes the configuration returned {kind}, not a mapping"
            )
        return conceal(made, self.client)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, JobConfig)
            and self.client == other.client
            and self.plain == other.plain
        )

    def __hash__(self) -> int:
        return hash((self.client, self.plain))

    def __repr__(self) -> str:
        names = (
            [name for name, _ in self.plain] if isinstance(self.plain, tuple) else ["(function)"]
        )
        return f"JobConfig({', '.join(names)})"


class PropertiesFile(NamedTuple):
    """Makes a configuration of a file, where a client is made: its secrets are in no job."""

    path: str
    client: str
    defaults: FrozenConfig
    """Properties that the file may set otherwise."""
    config: FrozenConfig
    """Properties that win over the file's."""
    left_out: tuple[str, ...] = ()
    """Properties of the file that have no effect here."""

    def __call__(self) -> dict[str, object]:
        """Read the file, and return the properties of such a client in it.

        Raises:
            ConfigError: the file cannot be read, or a line or name in it is wrong.
        """
        try:
            properties = conceal(read_properties(self.path), self.client)
        except OSError as error:
            raise ConfigError(
                f"the properties file cannot be read on {platform.node()}: {error}"
            ) from None
        there = {name: value for name, value in properties.items() if name not in self.left_out}
        return {**dict(self.defaults), **there, **dict(self.config)}


class TaskOptions(NamedTuple):
    """The options of every task of a job."""

    config: JobConfig
    topic: str | None
    on_error: OnError
    chunk_records: int

    def shipped(self) -> tuple[Any, ...]:
        """Return them as plain data: a worker may have no kafka_fast to make objects of."""
        return (self.config.plain, *self[1:])


def arrived(shipped: tuple[Any, ...]) -> TaskOptions:
    """Return the options that `TaskOptions.shipped` made plain."""
    plain, *others = shipped
    return TaskOptions(JobConfig(plain), *others)


def task_options(
    config: JobConfiguration,
    topic: str | None,
    *,
    call: str = "write_rdd(rdd, {config}, {topic})",
    on_error: OnError = "raise",
    chunk_records: int = CHUNK_RECORDS,
) -> TaskOptions:
    """Return the options of a write.

    Args:
        config: a producer's properties, or a function that returns them.
        topic: topic of all records, or None.
        call: the user's call, as code with {config} and {topic}, for messages.
        on_error: what happens if records fail: "raise" or "report".
        chunk_records: most records that are handed to the producer at once.

    Raises:
        ConfigError: a property is unknown, out of range, or no plain value.
        TypeError: the configuration is no mapping, or the topic no str; the message shows the call
            that was most likely meant.
        UsageError: another argument is not valid.
    """
    try:
        job = _job_config(config, topic, call)
    finally:
        del config  # a traceback that has this frame shows no secret
    if topic is not None and not isinstance(topic, str):
        right = call.format(config="config", topic="'events'")
        raise TypeError(f"the topic is a str, not {shown(topic)}: {right}")
    if on_error not in ("raise", "report"):
        raise UsageError(f"on_error must be 'raise' or 'report', not {on_error!r}")
    if chunk_records < 1:
        raise UsageError(f"chunk_records must be at least 1, not {chunk_records}")
    return TaskOptions(job, topic, on_error, chunk_records)


def _job_config(config: object, topic: object, call: str) -> JobConfig:
    """Return the configuration for the tasks; a mistake in a mapping shows here, on the driver."""
    if isinstance(config, Mapping):
        try:
            return checked(config)
        finally:
            del config  # a traceback that has this frame shows no secret
    if callable(config):
        from pyspark import cloudpickle  # also functions that stand in a notebook

        dumps: Callable[[object], bytes] = cloudpickle.dumps
        return JobConfig(dumps(config))
    said = _no_mapping(config, topic, call)
    del config
    raise TypeError(said)


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
    return f"the configuration is a mapping of properties, not {shown(config)}: {right}"


def of_file(made: PropertiesFile) -> JobConfig:
    """Return the configuration that a file makes, once it is valid in this process.

    Raises:
        ConfigError: the file cannot be read, or a property is unknown or out of range.
    """
    job = JobConfig(pickle.dumps(made), made.client)
    SETTINGS[made.client](job.properties())
    return job


def checked(config: Mapping[str, object], client: str = "producer") -> JobConfig:
    """Return the configuration of such a client, once its properties are valid.

    Raises:
        ConfigError: a property is unknown, out of range, or no plain value.
    """
    try:
        job = freeze(config, client)
    finally:
        del config  # a traceback that has this frame shows no secret
    SETTINGS[client](job.properties())
    return job


def freeze(config: Mapping[str, object], client: str = "producer") -> JobConfig:
    """Return the configuration of such a client in its hashable form.

    Raises:
        ConfigError: a value is an object, such as a callable. Each task would get its own copy, and
            so its own producer. The callable's work belongs into the job.
    """
    objects = {
        str(name): type(value).__name__ for name, value in config.items() if not _is_plain(value)
    }
    flat = {str(name): _flat(value) for name, value in config.items()}
    job = JobConfig(tuple((name, flat[name]) for name in sorted(flat)), client)
    del config, flat  # a traceback that has this frame shows no secret
    for name, kind in objects.items():
        raise ConfigError(
            f"{name} must be a plain value in a Spark job, not {kind}: {_instead_of_object(name)}"
        )
    return job


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (str, int, float, list, tuple))


def _flat(value: Any) -> Scalar:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def _instead_of_object(name: str) -> str:
    key = own_key(name)
    if key is not None and key.field:
        return "give a function that returns the whole configuration; it is called on the executor"
    return "serialize in the job, and give each record its partition where you need to"
