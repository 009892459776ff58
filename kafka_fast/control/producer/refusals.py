"""What leaders say of batches that they refuse, and of single records in them (KIP-467).

    Produce answer ─► Refusal ─► the verdict: FailBatch(…, detail) ─► the batch, with its detail
                                                                             │
    the error of a record ◄── told ◄── Causes ◄── index of the record ◄──────┘

A broker refuses a batch as a whole, even if only one of its records is wrong. It names these. Their
errors say what is wrong with them. The others only were in the same batch, and may be sent again.

The data plane keeps the detail as bytes, as long as anybody may ask for the batch's outcome.

Thread: control for refusals; any for what is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from kafka_fast.control.diagnosis.permissions import described
from kafka_fast.control.producer.producer_messages import BatchRow, ProducePunt
from kafka_fast.errors import BrokerError, broker_error
from kafka_fast.protocol.apis.records.produce import PartitionProduceResponse
from kafka_fast.types import TopicPartition

ANY_RECORD = -1
"""In place of a record's index: the error that tells most of the batch."""


class Refusal(NamedTuple):
    """The refusal of one batch."""

    error: BrokerError
    """In the broker's words."""
    detail: bytes
    """The same for the errors of its records."""


NO_REFUSALS: Mapping[tuple[int, int], Refusal] = MappingProxyType({})


class Detail(NamedTuple):
    """A refusal as the errors of records tell it."""

    who: str
    """The node that refused."""
    said: str
    """What it said of the batch."""
    records: dict[int, str]
    """What it said of records, by their index in the batch."""


def refusal_of(where: TopicPartition, answer: PartitionProduceResponse, who: str) -> Refusal:
    """Return the refusal of a partition's batch.

    Args:
        where: the partition.
        answer: its part of the answer.
        who: the node that has answered, for people.
    """
    import json  # here: few producers ever have a batch refused

    said = described(answer.error_code, "Produce", answer.error_message)
    records = {
        record.batch_index: record.batch_index_error_message or ""
        for record in answer.record_errors
    }
    first = next(iter(records.values()), "")
    error = broker_error(answer.error_code, f"{where}, says {who}: {first or said}")
    return Refusal(error, json.dumps([who, said, records]).encode())


def rows_of(
    punt: ProducePunt, place_of: Callable[[int], TopicPartition]
) -> tuple[dict[TopicPartition, BatchRow], dict[int, BatchRow]]:
    """Return the batches that an answer refuses, by partition, and by the partition's number alone.

    An answer names a topic by the id that its request had. The metadata may have another by now;
    then only the number tells.

    Args:
        punt: the answer.
        place_of: returns the partition of a queue, by its id.
    """
    by_place: dict[TopicPartition, BatchRow] = {}
    by_number: dict[int, BatchRow] = {}
    for row in punt.batches:
        place = place_of(row.queue_id)
        by_place[place] = row
        by_number.setdefault(place.partition, row)
    return by_place, by_number


class RefusedBatches:
    """What leaders have said of batches whose queues wait for a verdict. Control thread only."""

    def __init__(self) -> None:
        self._refusals: dict[int, dict[tuple[int, int], Refusal]] = {}  # by queue, then batch

    def keep_refusal(self, row: BatchRow, refusal: Refusal) -> None:
        """Keep the refusal of a batch, until its queue is judged."""
        self._refusals.setdefault(row.queue_id, {})[row.serial, row.slice] = refusal

    def of_queue(self, queue_id: int) -> Mapping[tuple[int, int], Refusal]:
        """Return what was said of a queue's batches, by serial and slice."""
        return self._refusals.get(queue_id, NO_REFUSALS)

    def of_batch(self, row: BatchRow) -> Refusal | None:
        """Return what was said of a batch."""
        return self.of_queue(row.queue_id).get((row.serial, row.slice))

    def take_queue(self, queue_id: int) -> Mapping[tuple[int, int], Refusal]:
        """Return the same as `of_queue`, and forget it: the queue is judged."""
        return self._refusals.pop(queue_id, NO_REFUSALS)


@lru_cache(maxsize=8)
def read_detail(detail: bytes) -> Detail:
    """Return what `refusal_of` put into a detail; each record of the batch asks."""
    import json  # as above

    who, said, records = json.loads(detail)
    return Detail(who, said, {int(index): text for index, text in records.items()})


def wrong_records(detail: bytes) -> list[int]:
    """Return the indices of the records that the leader has named."""
    return sorted(read_detail(detail).records)


def is_collateral(detail: bytes | None, index: int) -> bool:
    """Tell whether a record was refused only because of others in its batch."""
    if detail is None or index == ANY_RECORD:
        return False
    records = read_detail(detail).records
    return bool(records) and index not in records


def told(code: int, where: TopicPartition, detail: bytes, index: int, count: int) -> BrokerError:
    """Return the error of a record in a batch that was refused.

    Args:
        code: the error code of the batch.
        where: the partition.
        detail: of the refusal.
        index: the record's place in the batch, or ANY_RECORD.
        count: the number of records in the batch.
    """
    who, said, records = read_detail(detail)
    first = min(records, default=ANY_RECORD)
    wrong = first if index == ANY_RECORD else index
    if not records:
        text = f"a record of {where} was refused, says {who}: {said}"
    elif wrong in records:
        text = f"a record of {where} was refused, says {who}: {records[wrong] or said}"
    else:
        others = "another record" if len(records) == 1 else f"{len(records)} other records"
        text = (
            f"a record of {where} was refused with its batch of {count}, because of {others}, says "
            f"{who}: {records[first] or said}; sending it again may succeed"
        )
    return broker_error(code, text)
