"""What the errors of records say of a batch that its leader has refused."""

from __future__ import annotations

import pytest

from kafka_fast.control.producer.refusals import (
    ANY_RECORD,
    is_collateral,
    refusal_of,
    told,
    wrong_records,
)
from kafka_fast.errors import ErrorCode, InvalidRecord
from kafka_fast.protocol.apis.records.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
)
from kafka_fast.types import TopicPartition

T0 = TopicPartition("t", 0)
INVALID = ErrorCode.INVALID_RECORD
NODE = "node 1 at kafka:9092"


def detail(records: dict[int, str | None], message: str | None = "the batch is wrong") -> bytes:
    return refusal_of(T0, answer(records, message), NODE).detail


def answer(records: dict[int, str | None], message: str | None) -> PartitionProduceResponse:
    errors = [
        BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
        for index, text in records.items()
    ]
    return PartitionProduceResponse(
        index=0, error_code=INVALID, record_errors=errors, error_message=message
    )


def text(records: dict[int, str | None], index: int, **more: str | None) -> str:
    error = told(INVALID, T0, detail(records, **more), index, 10)
    assert isinstance(error, InvalidRecord)
    return str(error).removeprefix("INVALID_RECORD (87): ")


def test_a_record_that_is_named_hears_what_is_wrong_with_it() -> None:
    records: dict[int, str | None] = {3: "it has no key", 7: "it is too old"}
    assert text(records, 3) == f"a record of t-0 was refused, says {NODE}: it has no key"
    assert text(records, 7) == f"a record of t-0 was refused, says {NODE}: it is too old"
    assert text({3: None}, 3) == f"a record of t-0 was refused, says {NODE}: the batch is wrong"


def test_the_others_hear_that_they_were_refused_with_it() -> None:
    one = text({3: "it has no key"}, 0)
    assert one == (
        "a record of t-0 was refused with its batch of 10, because of another record, says "
        f"{NODE}: it has no key; sending it again may succeed"
    )
    assert "because of 2 other records" in text({3: "no key", 7: "too old"}, 0)


def test_what_stands_for_the_whole_batch_names_the_first_record() -> None:
    records: dict[int, str | None] = {7: "it is too old", 3: "it has no key"}
    assert text(records, ANY_RECORD).endswith("it has no key")


@pytest.mark.parametrize("index", [0, ANY_RECORD])
def test_without_names_all_hear_the_same(index: int) -> None:
    assert text({}, index) == f"a record of t-0 was refused, says {NODE}: the batch is wrong"
    assert "the broker" in text({}, index, message=None)


def test_who_is_collateral() -> None:
    named = detail({3: "it has no key", 7: None})
    assert [is_collateral(named, index) for index in (0, 3, 7, ANY_RECORD)] == [
        True,
        False,
        False,
        False,
    ]
    assert not is_collateral(detail({}), 0)
    assert not is_collateral(None, 0)
    assert wrong_records(named) == [3, 7]


def test_indices_that_make_no_sense_do_no_harm() -> None:
    """Bytes from the network are hostile."""
    named = detail({-5: "x", 2**31 - 1: "y"})
    assert is_collateral(named, 0)
    assert "because of 2 other records" in str(told(INVALID, T0, named, 0, 10))


def test_the_log_names_the_first_record() -> None:
    refusal = refusal_of(T0, answer({3: "it has no key"}, "one of many"), NODE)
    assert str(refusal.error) == f"INVALID_RECORD (87): t-0, says {NODE}: it has no key"
    whole = refusal_of(T0, answer({}, "one of many"), NODE)
    assert str(whole.error) == f"INVALID_RECORD (87): t-0, says {NODE}: one of many"
