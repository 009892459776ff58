"""What calls about several things return."""

from __future__ import annotations

import gc

import pytest

from kafka_fast.admin.result import AdminResult, NodesResult
from kafka_fast.control.admin.operation import OperationResults
from kafka_fast.errors import KafkaError, KafkaTimeoutError, UsageError


def results() -> OperationResults[str, int]:
    return OperationResults(
        ["b", "a", "c"],
        values={"a": 1, "b": 2},
        errors={"c": UsageError("no c")},
        client_id="client",
        throttle_time_ms=7,
    )


def test_a_value_is_returned_and_an_error_raised() -> None:
    result = AdminResult("count", results())
    assert (result["a"], result["b"]) == (1, 2)
    with pytest.raises(UsageError, match="no c"):
        result["c"]
    with pytest.raises(KeyError):
        result["d"]


def test_it_is_a_mapping_of_all_items_in_their_order() -> None:
    result = AdminResult("count", results())
    assert list(result) == ["b", "a", "c"]
    assert len(result) == 3
    assert "c" in result
    assert "d" not in result
    with pytest.raises(UsageError):
        dict(result)


def test_values_and_errors_are_told_apart() -> None:
    result = AdminResult("count", results())
    assert result.succeeded == {"b": 2, "a": 1}
    assert list(result.succeeded) == ["b", "a"]
    assert {key: str(error) for key, error in result.errors.items()} == {"c": "no c"}
    assert result.throttle_time_ms == 7
    assert repr(result) == "<AdminResult of count: 2 values, 1 failed>"


def test_the_first_error_is_raised_anew_each_time() -> None:
    result = AdminResult("count", results())
    raised: list[KafkaError] = []
    for _ in range(2):
        with pytest.raises(UsageError) as caught:
            result.raise_first()
        raised.append(caught.value)
    assert raised[0] is not raised[1]
    good: OperationResults[str, int] = OperationResults(["a"], values={"a": 1})
    assert AdminResult("count", good).raise_first()["a"] == 1


@pytest.mark.parametrize("look", ["errors", "raise_first", "bad item", "good item", "nothing"])
def test_errors_that_nobody_looks_for_are_logged(
    look: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = AdminResult("count", results())
    assert len(result) == 3
    assert repr(result)
    match look:
        case "errors":
            assert result.errors
        case "raise_first":
            with pytest.raises(UsageError):
                result.raise_first()
        case "bad item":
            with pytest.raises(UsageError):
                result["c"]
        case "good item":
            assert result["a"] == 1  # says nothing of the others
    del result
    gc.collect()
    told = [record.getMessage() for record in caplog.records]
    text = "count: 1 of 3 failed, and nobody has looked for the errors: no c"
    assert [text in line for line in told] == ([True] if look in ("nothing", "good item") else [])


def test_what_nodes_answer_is_one_mapping() -> None:
    late = KafkaTimeoutError("node 2")
    asked: OperationResults[int, dict[str, int]] = OperationResults(
        [1, 2], values={1: {"g": 1}}, errors={2: late}
    )
    result = NodesResult("count", {"g": 1}, asked)
    assert dict(result) == {"g": 1}
    assert result.errors == {2: late}
    with pytest.raises(KeyError):
        result["h"]
    with pytest.raises(KafkaTimeoutError):
        result.raise_first()
