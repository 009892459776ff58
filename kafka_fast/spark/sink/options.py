"""The options of a query that writes, by Spark's names.

What is refused is what Spark's own sink refuses, in its words. `format_options` reads the texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_fast.errors import UsageError
from kafka_fast.spark.format_options import (
    SINK,
    SOURCE,
    SPARKS_OWN,
    FormatOptions,
    boolean,
    text_of,
)
from kafka_fast.spark.options import JobConfig

#: Properties that the sink sets itself, with the reasons that Spark gives.
REFUSED = {
    "key.serializer": (
        "Kafka option 'key.serializer' is not supported as keys are serialized with "
        "ByteArraySerializer."
    ),
    "value.serializer": (
        "Kafka option 'value.serializer' is not supported as value are serialized with "
        "ByteArraySerializer."
    ),
}


@dataclass(frozen=True)
class SinkOptions:
    """The options of a query, batch or stream. Plain data: they travel with each task."""

    config: JobConfig
    """The properties of the producers."""
    topic: str | None
    """Topic of all rows; None: column "topic" says it."""
    dedupe_headers: bool
    """Whether each record tells from which row of which task it comes."""
    job_id: str | None
    """Name of a batch write in these headers; None: one is made for each write."""


def sink_options(given: Mapping[str, str], *, stream: bool) -> SinkOptions:
    """Return the options of a query.

    Args:
        given: what the user gave; the case of the names has no meaning.
        stream: whether the query is a stream.

    Raises:
        UsageError: an option is misspelt, missing or malformed, or contradicts another.
        ConfigError: a property of Kafka's is unknown, or its value is wrong.
    """
    options = FormatOptions(given, SINK, (*SOURCE, *SPARKS_OWN))
    del given  # a traceback that has this frame shows no secret
    options.check_names()
    settings = SinkOptions(
        config=options.client_config("producer", REFUSED),
        topic=options.find("topic", text_of),
        dedupe_headers=options.take_option("dedupeHeaders", boolean, False),
        job_id=options.find("jobId", text_of),
    )
    if settings.job_id is not None and stream:
        raise UsageError("jobId is for batches: a stream is known by its query's own id")
    if settings.job_id is not None and not settings.dedupe_headers:
        raise UsageError("jobId is a part of the dedupe headers: set dedupeHeaders to 'true'")
    return settings
