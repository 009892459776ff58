"""What a Fetch answer that is not plain success means for each partition: a pure function.

The data plane has stopped the streams concerned and knows their positions. `decide` returns how
each of them goes on; `Restarts` carries it out.
"""

from __future__ import annotations

import enum
import struct
from typing import NamedTuple

from kafka_fast.control.consumer.partition import NO_NODE, Position
from kafka_fast.control.diagnosis.permissions import described
from kafka_fast.errors import (
    ERRORS,
    BrokerError,
    ErrorCode,
    KafkaError,
    UnreadableBatchError,
    broker_error,
)
from kafka_fast.protocol.apis.records.fetch import PartitionData
from kafka_fast.protocol.schema import Buffer
from kafka_fast.types import TopicPartition

RETRY_CODES = frozenset(
    {ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.UNKNOWN_LEADER_EPOCH}
)
"""Tried again later, even if the error table does not call the code retriable: the broker has not
caught up, or had an unexpected problem."""

BATCH_FRONT = struct.Struct(">qi")
"""The first two fields of every batch: base offset, and the length of the rest."""

REFRESH_CODES = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH})


class FetchAction(enum.Enum):
    """How a partition goes on."""

    AGAIN = "start again from the same position, at once"
    LATER = "start again from the same position, after a backoff"
    REPLICA = "start again at another replica"
    OUT_OF_RANGE = "do what auto.offset.reset says"
    TRUNCATED = "the log was cut off"
    RAISE = "tell the user, and start again after a backoff"


class FetchDecision(NamedTuple):
    """What to do with one partition."""

    action: FetchAction
    refresh: bool = False
    """Ask for metadata as well."""
    replica: int = NO_NODE
    end: Position | None = None
    """With TRUNCATED: where the logs diverged."""
    error: KafkaError | None = None


def decide(
    partition: TopicPartition,
    code: int,
    data: PartitionData | None,
    *,
    position: int,
    at_replica: bool,
) -> FetchDecision:
    """Return how a partition goes on after this answer.

    Args:
        partition: which.
        code: its error code.
        data: its part of the answer; None if that cannot be read.
        position: the offset from which it was fetched.
        at_replica: whether it was fetched from a replica that is not its leader.
    """
    if code == 0 and data is not None:
        if data.diverging_epoch.end_offset >= 0:
            end = Position(data.diverging_epoch.end_offset, data.diverging_epoch.epoch)
            return FetchDecision(FetchAction.TRUNCATED, end=end)
        if data.preferred_read_replica >= 0:
            return FetchDecision(FetchAction.REPLICA, replica=data.preferred_read_replica)
        if data.records and data.current_leader.leader_id < 0:
            # The data plane found no whole batch in these bytes.
            if at_replica:
                return FetchDecision(FetchAction.REPLICA)
            return FetchDecision(
                FetchAction.RAISE, error=_leads_nowhere(partition, position, data.records)
            )
        return FetchDecision(FetchAction.AGAIN)
    if at_replica and code:
        # After any error of a follower, ask the leader.
        return FetchDecision(FetchAction.REPLICA, refresh=code != ErrorCode.OFFSET_OUT_OF_RANGE)
    if code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return FetchDecision(FetchAction.OUT_OF_RANGE)
    if code in RETRY_CODES or code in REFRESH_CODES:
        return FetchDecision(FetchAction.LATER, refresh=code in REFRESH_CODES)
    known = ERRORS.get(code)
    if known is not None and known.refresh_metadata:
        return FetchDecision(FetchAction.LATER, refresh=True)
    if known is not None and known.retriable and code != ErrorCode.CORRUPT_MESSAGE:
        return FetchDecision(FetchAction.LATER)
    return FetchDecision(FetchAction.RAISE, error=fetch_error(partition, code))


def fetch_error(partition: TopicPartition, code: int) -> BrokerError:
    """Return the error behind a code in an answer to Fetch."""
    return broker_error(code, f"Fetch of {partition}: {described(code, 'Fetch')}")


def _leads_nowhere(
    partition: TopicPartition, position: int, records: Buffer
) -> UnreadableBatchError:
    """Return the error for records without a whole batch at or after the position."""
    data = bytes(records[: BATCH_FRONT.size])
    what = f"{len(records)} bytes"
    if len(data) == BATCH_FRONT.size:
        offset, size = BATCH_FRONT.unpack(data)
        what = f"{what}, which begin with a batch of {size} bytes at offset {offset}"
    return UnreadableBatchError(
        f"{partition} at offset {position}: its leader sends {what}, and no whole batch to go on "
        "with; it is asked again until a seek() passes this place",
        topic=partition.topic,
        partition=partition.partition,
        offset=position,
        next_offset=None,
    )
