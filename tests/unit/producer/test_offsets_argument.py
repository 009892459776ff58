"""What `send_offsets_to_transaction` takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.producer.offsets_argument import group_of, offsets_of
from kafka_fast.types import GroupMetadata, OffsetAndMetadata, TopicPartition

HERE = TopicPartition("t", 1)


def test_a_mapping_is_what_it_says() -> None:
    noted = OffsetAndMetadata(7, 2, "note")
    assert offsets_of({HERE: 5}) == {HERE: OffsetAndMetadata(5)}
    assert offsets_of({HERE: noted}) == {HERE: noted}


def test_records_are_done_and_what_follows_them_is_read_next() -> None:
    record: Any = SimpleNamespace(topic="t", partition=1, offset=4, leader_epoch=3)
    assert offsets_of(record) == {HERE: OffsetAndMetadata(5, 3)}
    records: Any = SimpleNamespace(next_offsets=lambda: {HERE: OffsetAndMetadata(9, 3)})
    assert offsets_of(records) == {HERE: OffsetAndMetadata(9, 3)}


@pytest.mark.parametrize("wrong", [{HERE: -1}, {HERE: 2**63}, {("\udcff", 0): 1}])
def test_what_no_request_can_carry_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError):
        offsets_of(wrong)


@pytest.mark.parametrize("wrong", [None, 5, "t", HERE, [HERE], {"t": 1}, {HERE: "x"}, {HERE: None}])
def test_other_types_are_refused(wrong: Any) -> None:
    with pytest.raises(TypeError):
        offsets_of(wrong)


def test_a_groups_name_has_no_member() -> None:
    assert group_of("g") == GroupMetadata("g", -1, "", None)
    member = GroupMetadata("g", 3, "member", "instance")
    assert group_of(member) == member


@pytest.mark.parametrize(
    "wrong",
    [
        "\udcff",
        GroupMetadata("g", 2**31, "m", None),
        GroupMetadata("g", -2, "m", None),
        GroupMetadata("g", 1, "\udcff", None),
    ],
)
def test_a_group_that_no_request_can_carry_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError):
        group_of(wrong)


@pytest.mark.parametrize("wrong", [None, 5, b"g", ["g"], GroupMetadata("g", "1", "m", None)])  # type: ignore[arg-type]
def test_a_group_of_another_type_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError):
        group_of(wrong)
