"""The options of a query that reads, by Spark's names, and the rules between them.

Spark hands all options over as text, with names in lower case. What is refused is what Spark's own
source refuses, in its words. An option that is not known is ignored, as everywhere in Spark, with a
warning in the log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from kafka_fast.config import consumer_settings
from kafka_fast.errors import UsageError
from kafka_fast.logs import get_logger
from kafka_fast.spark.options import JobConfig, freeze
from kafka_fast.spark.source.subscription import STRATEGIES, SourceSubscription, subscription

logger = get_logger(__name__)

T = TypeVar("T")

PREFIX = "kafka."

#: Properties that the source sets itself, with the reasons that Spark gives.
REFUSED = {
    "auto.offset.reset": (
        "Kafka option 'auto.offset.reset' is not supported. Instead set the source option "
        "'startingOffsets' to 'earliest' or 'latest' to specify where to start. Note that "
        "'startingOffsets' only applies when a new streaming query is started, and that resuming "
        "will always pick up from where the query left off."
    ),
    "key.deserializer": (
        "Kafka option 'key.deserializer' is not supported as keys are deserialized as byte arrays. "
        "Use DataFrame operations to explicitly deserialize the keys."
    ),
    "value.deserializer": (
        "Kafka option 'value.deserializer' is not supported as values are deserialized as byte "
        "arrays. Use DataFrame operations to explicitly deserialize the values."
    ),
    "enable.auto.commit": "Kafka option 'enable.auto.commit' is not supported",
    "interceptor.classes": "Kafka option 'interceptor.classes' is not supported",
}

#: Options that are read elsewhere, or that Spark itself adds.
OTHERS = {
    *(name.lower() for name in STRATEGIES),
    *(
        f"{end}{what}"
        for end in ("starting", "ending")
        for what in ("offsets", "offsetsbytimestamp", "timestamp")
    ),
    "startingoffsetsbytimestampstrategy",
    "path",
}

DEFAULT_CLIENT_ID = "spark-kafka-source"
TIME = re.compile(r"(-?\d+)\s*([a-z]*)")
DAY = 86_400.0
#: Spark's units of time; a number without a unit is in milliseconds.
UNITS = {"us": 1e-6, "": 1e-3, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": DAY}


@dataclass(frozen=True)
class SourceOptions:
    """The options of a query, batch or stream. Plain data: they travel with each task."""

    config: JobConfig
    """The properties of the consumers."""
    subscription: SourceSubscription
    fail_on_data_loss: bool
    headers: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets: int | None
    """Most offsets of a micro-batch."""
    min_offsets: int | None
    """Fewest offsets of a micro-batch, unless it is late."""
    max_delay: float
    """Seconds after which a micro-batch is late."""
    poll_timeout: float
    """Seconds without any progress after which a task fails."""
    attempts: int
    """How often the ends of the logs are asked for, if they lie before what is known."""
    attempt_interval: float
    """Seconds between two such attempts."""
    group: str | None
    """The group to which a stream commits its progress, for others to see."""
    initial_offsets_location: str | None
    """The file in which a new stream keeps its first offsets."""
    allow_unsafe_latest: bool
    """Whether a new stream may begin at the ends of the logs without keeping these."""


def source_options(given: Mapping[str, str]) -> SourceOptions:
    """Return the options of a query.

    Args:
        given: What the user gave; the case of the names has no meaning.

    Raises:
        UsageError: An option is missing or malformed, or contradicts another.
        ConfigError: A property of Kafka's is unknown, or its value is wrong.
    """
    options = _Options(given)
    del given  # a traceback that has this frame shows no secret
    found = SourceOptions(
        subscription=subscription(options.texts),
        min_partitions=options.find("minPartitions", _positive),
        max_records_per_partition=options.find("maxRecordsPerPartition", _positive),
        config=_config(options),
        fail_on_data_loss=options.take("failOnDataLoss", _boolean, True),
        headers=options.take("includeHeaders", _boolean, False),
        max_offsets=options.find("maxOffsetsPerTrigger", _number),
        min_offsets=options.find("minOffsetsPerTrigger", _number),
        max_delay=options.take("maxTriggerDelay", _seconds, 900.0),
        poll_timeout=options.take("kafkaConsumer.pollTimeoutMs", _milliseconds, 120.0),
        attempts=options.take("fetchOffset.numRetries", _number, 3),
        attempt_interval=options.take("fetchOffset.retryIntervalMs", _milliseconds, 1.0),
        group=options.find("commitOffsetsToGroup", _text),
        initial_offsets_location=options.find("initialOffsetsLocation", _text),
        allow_unsafe_latest=options.take("allowUnsafeLatest", _boolean, False),
    )
    low, high = found.min_offsets, found.max_offsets
    if low is not None and high is not None and low > high:
        raise UsageError(
            f"The value of minOffsetPerTrigger({low}) is higher than the "
            f"maxOffsetsPerTrigger({high})."
        )
    options.warn_of_unknown()
    return found


class _Options:
    """The texts, and which of them were read."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.texts = {name.lower(): text for name, text in given.items()}
        self._known = {name: name for name in OTHERS}

    def find(self, name: str, read: Callable[[str, str], T]) -> T | None:
        """Return an option's value; None if it is not given."""
        self._known[name.lower()] = name
        text = self.texts.get(name.lower())
        return None if text is None else read(name, text.strip())

    def take(self, name: str, read: Callable[[str, str], T], default: T) -> T:
        """Return an option's value."""
        found = self.find(name, read)
        return default if found is None else found

    def properties(self) -> dict[str, str]:
        """Return Kafka's own properties."""
        return {
            name.removeprefix(PREFIX): text
            for name, text in self.texts.items()
            if name.startswith(PREFIX)
        }

    def warn_of_unknown(self) -> None:
        """Log the options that nobody has read."""
        import difflib

        for name in self.texts:
            if name not in self._known and not name.startswith(PREFIX):
                near = difflib.get_close_matches(name, self._known, n=1)
                meant = f"; did you mean {self._known[near[0]]!r}?" if near else ""
                logger.warning("the option %r is not known and is ignored%s", name, meant)


def _config(options: _Options) -> JobConfig:
    """Return the consumers' properties, once they are valid."""
    properties = options.properties()
    try:
        for name, why in REFUSED.items():
            if name in properties:
                raise UsageError(why)
        if "bootstrap.servers" not in properties:
            raise UsageError(
                "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer"
            )
        prefix = options.take("groupIdPrefix", _text, DEFAULT_CLIENT_ID)
        if properties.pop("group.id", None) is not None:
            logger.warning(
                "kafka.group.id has no effect: the source reads without a group. To show a "
                "stream's progress as that of a group, set 'commitOffsetsToGroup'"
            )
        config = freeze({"client.id": prefix, **properties}, "consumer")
        consumer_settings(config.properties())
    finally:
        del properties, options  # a traceback that has this frame shows no secret
    return config


def _text(name: str, text: str) -> str:
    if not text:
        raise UsageError(f"{name} is empty")
    return text


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{name} must be a number, not '{text}'") from None


def _milliseconds(name: str, text: str) -> float:
    return _number(name, text) / 1000


def _positive(name: str, text: str) -> int:
    number = _number(name, text)
    if number <= 0:
        raise UsageError(f"{name} must be positive")
    return number


def _boolean(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise UsageError(f"{name} must be 'true' or 'false', not '{text}'")
    return text.lower() == "true"


def _seconds(name: str, text: str) -> float:
    match = TIME.fullmatch(text.lower())
    if match is None or match[2] not in UNITS:
        raise UsageError(f"{name} must be a time such as '30s', '15m' or '2h', not '{text}'")
    return int(match[1]) * UNITS[match[2]]
