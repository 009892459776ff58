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

from functools import lru_cache
from typing import NamedTuple

from kafka_fast.control.diagnosis.permissions import described
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
