"""What happens when records that a query was to read are gone: failOnDataLoss decides.

The sentences are those of Spark's own source.
"""

from __future__ import annotations

from kafka_fast.logs import get_logger
from kafka_fast.spark.errors import DataLossError

logger = get_logger(__name__)

GONE = (
    "Some data may have been lost because they are not available in Kafka any more; either the "
    "data was aged out by Kafka or the topic may have been deleted before all the data in the "
    "topic was processed."
)


def of_another_topic(topic: str, before: str, now: str) -> DataLossError:
    """Return the error of a query whose topic was deleted and created again.

    Args:
        topic: its name.
        before: the id of the topic to which the query's offsets belong.
        now: the id of the topic that has the name now.
    """
    return DataLossError(
        f"Topic {topic} was deleted and created again while the query was reading it: its id was "
        f"{before} and is {now} now. The query's offsets are those of the old topic, and mean "
        "nothing in the new one. To read the new topic, start a query with a new checkpoint."
    )


def report(reason: str, *, fail: bool, cause: BaseException | None = None) -> None:
    """Raise, or log, that records are gone.

    Args:
        reason: what is gone, as a sentence.
        fail: failOnDataLoss.
        cause: the error that showed it.

    Raises:
        DataLossError: if the query is to fail.
    """
    if fail:
        raise DataLossError(
            f"{GONE} If you don't want your streaming query to fail on such cases, set the source "
            f"option failOnDataLoss to false. Reason: {reason}"
        ) from cause
    logger.warning("%s Reason: %s", GONE, reason)
