"""The options of `format("kafka_fast")` as texts: what the source and the sink read alike.

Spark hands all options over as text, with names in lower case. Those that begin with `kafka.` are
properties of the client, which the client's own table checks.

An option that is like a known one is a mistake, and is refused. (Spark's own source ignores it.)
One that is like none is ignored with a warning: platforms add options of their own.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from kafka_fast.config import KEYS, own_key
from kafka_fast.errors import UsageError
from kafka_fast.logs import get_logger
from kafka_fast.spark.options import JobConfig, PropertiesFile, checked, of_file

logger = get_logger(__name__)

T = TypeVar("T")

PREFIX = "kafka."
TIME = re.compile(r"(-?\d+)\s*([a-z]*)")
DAY = 86_400.0
NOTHING: Mapping[str, str] = MappingProxyType({})
#: Spark's units of time; a number without a unit is in milliseconds.
UNITS = {"us": 1e-6, "": 1e-3, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": DAY}

#: The options of a query that reads.
SOURCE = (
    "subscribe",
    "subscribePattern",
    "assign",
    "propertiesFile",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "failOnDataLoss",
    "includeHeaders",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "initialOffsetsLocation",
    "commitOffsetsToGroup",
    "allowUnsafeLatest",
)
#: The options of a query that writes.
SINK = ("topic", "propertiesFile", "dedupeHeaders", "jobId")
#: What Spark itself adds: `load(path)`, `option("checkpointLocation", ...)`, `queryName(...)`.
SPARKS_OWN = ("path", "checkpointLocation", "queryName")
#: How like a known name another one must be to be taken for a mistake; see `difflib`.
MISSPELT = 0.8


class FormatOptions:
    """The texts of one query.

    Args:
        given: what the user gave; the case of the names has no meaning.
        names: the options of such a query.
        elsewhere: options that mean nothing to such a query, but to another that the user may share
            the mapping with, or to Spark.
    """

    def __init__(
        self, given: Mapping[str, str], names: Iterable[str], elsewhere: Iterable[str] = ()
    ) -> None:
        self.texts = {name.lower(): text for name, text in given.items()}
        self._names = {name.lower(): name for name in names}
        self._elsewhere = {name.lower() for name in elsewhere} - self._names.keys()

    def find(self, name: str, read: Callable[[str, str], T]) -> T | None:
        """Return an option's value; None if it is not given.

        Raises:
            LookupError: the name is none of this query's `names`: a mistake of this package.
            UsageError: the text is no value of this option.
        """
        text = self.texts.get(self._names[name.lower()].lower())
        return None if text is None else read(name, text.strip())

    def take_option(self, name: str, read: Callable[[str, str], T], default: T) -> T:
        """Return an option's value."""
        value = self.find(name, read)
        return default if value is None else value

    def client_config(
        self,
        client: str,
        refused: Mapping[str, str],
        *,
        ignored: Mapping[str, str] = NOTHING,
        defaults: Mapping[str, str] = NOTHING,
    ) -> JobConfig:
        """Return Kafka's own properties, once they are valid.

        They are options, and those of a file where `propertiesFile` names one. A file is read
        where a client is made, so what stands in it is in no job.

        Args:
            client: "consumer" or "producer".
            refused: properties that Spark's connector refuses, each with the message.
            ignored: properties that have no effect, each with the warning.
            defaults: properties that the query's win over.

        Raises:
            UsageError: a property is refused, or there are no brokers.
            ConfigError: a property is unknown, or its value is wrong; or the file cannot be read.
        """
        properties = {
            name.removeprefix(PREFIX): text
            for name, text in self.texts.items()
            if name.startswith(PREFIX)
        }
        try:
            path = self.find("propertiesFile", text_of)
            names = set(properties)
            if path is not None:
                names |= PropertiesFile(path, client, (), ())().keys()
            for name, why in refused.items():
                if name in names:
                    raise UsageError(why)
            if "bootstrap.servers" not in names:
                raise UsageError(
                    "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka "
                    + client
                )
            for name, why in ignored.items():
                if name in names:
                    logger.warning(why)
            for name in ignored.keys() & properties.keys():
                del properties[name]
            if path is None:
                return checked({**defaults, **properties}, client)
            own = tuple(sorted(defaults.items())), tuple(sorted(properties.items()))
            return of_file(PropertiesFile(path, client, *own, tuple(ignored)))
        finally:
            del properties, self  # a traceback that has this frame shows no secret

    def check_names(self) -> None:
        """Refuse a misspelt option, and log the options that nobody knows.

        Raises:
            UsageError: an option is like one of this query's; or it is a property of Kafka's
                without the prefix.
        """
        for name in self.texts:
            if name in self._names or name.startswith(PREFIX):
                continue
            if name in self._elsewhere:
                logger.debug("the option %r means nothing here", name)
                continue
            meant = self._nearest(name)
            if meant is not None:
                raise UsageError(f"unknown option '{name}'; did you mean '{meant}'?")
            _warn(name)

    def _nearest(self, name: str) -> str | None:
        """Return the option that a name was meant for; None: it is like none."""
        key = own_key(name)
        if key is not None:
            return PREFIX + key.name
        names = {**self._names, **{f"{PREFIX}{known}": f"{PREFIX}{known}" for known in KEYS}}
        near = difflib.get_close_matches(name, names, n=1, cutoff=MISSPELT)
        return names[near[0]] if near else None


@functools.lru_cache(maxsize=1000)  # Spark has a stream's options read for each micro-batch
def _warn(name: str) -> None:
    logger.warning("the option %r is not known and is ignored", name)


def text_of(name: str, text: str) -> str:
    """Return the value of an option that must not be empty."""
    if not text:
        raise UsageError(f"{name} is empty")
    return text


def number(name: str, text: str) -> int:
    """Return the value of an option as a number."""
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{name} must be a number, not '{text}'") from None


def milliseconds(name: str, text: str) -> float:
    """Return the value of an option in milliseconds, as seconds."""
    return number(name, text) / 1000


def positive(name: str, text: str) -> int:
    """Return the value of an option as a number above 0."""
    value = number(name, text)
    if value <= 0:
        raise UsageError(f"{name} must be positive")
    return value


def boolean(name: str, text: str) -> bool:
    """Return the value of an option that is true or false."""
    if text.lower() not in ("true", "false"):
        raise UsageError(f"{name} must be 'true' or 'false', not '{text}'")
    return text.lower() == "true"


def seconds(name: str, text: str) -> float:
    """Return the value of an option that is a time in Spark's form, in seconds."""
    match = TIME.fullmatch(text.lower())
    if match is None or match[2] not in UNITS:
        raise UsageError(f"{name} must be a time such as '30s', '15m' or '2h', not '{text}'")
    return int(match[1]) * UNITS[match[2]]
