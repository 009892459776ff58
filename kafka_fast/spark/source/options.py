"""The options of a query that reads, by Spark's names, and the rules between them.

What is refused is what Spark's own source refuses, in its words. `format_options` reads the texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_fast.errors import UsageError
from kafka_fast.logs import get_logger
from kafka_fast.spark.format_options import (
    SINK,
    SOURCE,
    SPARKS_OWN,
    FormatOptions,
    boolean,
    milliseconds,
    number,
    positive,
    seconds,
    text_of,
)
from kafka_fast.spark.options import JobConfig
from kafka_fast.spark.source.planning.subscription import SourceSubscription, subscription

logger = get_logger(__name__)

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

#: Properties that have no effect, with what the log says of them.
IGNORED = {
    "group.id": (
        "kafka.group.id has no effect: the source reads without a group. To show a stream's "
        "progress as that of a group, set 'commitOffsetsToGroup'"
    )
}

DEFAULT_CLIENT_ID = "spark-kafka-source"


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
        given: what the user gave; the case of the names has no meaning.

    Raises:
        UsageError: an option is misspelt, missing or malformed, or contradicts another.
        ConfigError: a property of Kafka's is unknown, or its value is wrong.
    """
    options = FormatOptions(given, SOURCE, (*SINK, *SPARKS_OWN))
    del given  # a traceback that has this frame shows no secret
    options.check_names()
    settings = SourceOptions(
        subscription=subscription(options.texts),
        min_partitions=options.find("minPartitions", positive),
        max_records_per_partition=options.find("maxRecordsPerPartition", positive),
        config=options.client_config(
            "consumer",
            REFUSED,
            ignored=IGNORED,
            defaults={
                "client.id": options.take_option("groupIdPrefix", text_of, DEFAULT_CLIENT_ID)
            },
        ),
        fail_on_data_loss=options.take_option("failOnDataLoss", boolean, True),
        headers=options.take_option("includeHeaders", boolean, False),
        max_offsets=options.find("maxOffsetsPerTrigger", number),
        min_offsets=options.find("minOffsetsPerTrigger", number),
        max_delay=options.take_option("maxTriggerDelay", seconds, 900.0),
        poll_timeout=options.take_option("kafkaConsumer.pollTimeoutMs", milliseconds, 120.0),
        attempts=options.take_option("fetchOffset.numRetries", number, 3),
        attempt_interval=options.take_option("fetchOffset.retryIntervalMs", milliseconds, 1.0),
        group=options.find("commitOffsetsToGroup", text_of),
        initial_offsets_location=options.find("initialOffsetsLocation", text_of),
        allow_unsafe_latest=options.take_option("allowUnsafeLatest", boolean, False),
    )
    low, high = settings.min_offsets, settings.max_offsets
    if low is not None and high is not None and low > high:
        raise UsageError(
            f"The value of minOffsetPerTrigger({low}) is higher than the "
            f"maxOffsetsPerTrigger({high})."
        )
    return settings
