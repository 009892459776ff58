"""`kafka-fast txn`: what it shows of a scripted client's answers, and when it asks.

The page command-line.md has what `test_the_page` compares.
"""

from __future__ import annotations

import json
import time

import pytest

from kafka_fast import TopicPartition
from kafka_fast.admin import (
    HangingTransaction,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kafka_fast.cli.main import main
from kafka_fast.errors import (
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    TransactionalIdNotFound,
    UnknownTopicOrPartition,
)
from tests.documentation.pages import blocks
from tests.unit.cli.operators.scripted_admin import ScriptedAdmin, answered, of_nodes, replace_admin

PARTITION = TopicPartition("orders", 0)
OPEN = ProducerState(12, 5, 7, 1_700_000_000_000, None, 100)
IDLE = ProducerState(13, 0, -1, -1, 2, None)
LISTED = [
    TransactionListing("billing-2", 13, TransactionState.COMPLETE_COMMIT),
    TransactionListing("billing-1", 12, TransactionState.ONGOING),
]

HOW = "elsewhere, tests/unit/cli/operators/test_txn.py"


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> ScriptedAdmin:
    return replace_admin(monkeypatch)


def test_the_page(admin: ScriptedAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.answers["list_transactions"] = of_nodes({one.transactional_id: one for one in LISTED})
    partitions = frozenset({TopicPartition("orders", 3), TopicPartition("orders", 0)})
    began = int(time.time() * 1000) - 600_000
    admin.answers["describe_transactions"] = answered(
        {"billing-1": TransactionDescription(TransactionState.ONGOING, 12, 3, 60_000, began,
                                             partitions)}
    )  # fmt: skip
    texts = [block.text for block in blocks("docs/command-line.md") if block.how == HOW]
    assert len(texts) == 4
    for command, shown in zip(texts[::2], texts[1::2], strict=True):
        assert main(command.split()[1:]) == 0
        assert capsys.readouterr().out == shown


def test_list(admin: ScriptedAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    odd = TransactionListing("odd", 1, TransactionState.UNKNOWN)
    down = CoordinatorNotAvailable("node 2 is down")
    admin.answers["list_transactions"] = of_nodes({"odd": odd}, {2: down})
    words = ["--state", "prepare-commit", "--producer-id", "12", "--open-for", "10m"]
    words += ["--pattern", "b.*", "-o", "json"]
    assert main(["txn", "list", *words]) == 1
    told = capsys.readouterr()
    report = json.loads(told.out)
    assert [error["broker"] for error in report.pop("errors")] == [2]
    assert report == {
        "transactions": [{"transactional_id": "odd", "state": None, "producer_id": 1}]
    }
    ((_, _, options),) = admin.calls
    assert options == {
        "states": [TransactionState.PREPARE_COMMIT],
        "producer_ids": [12],
        "min_duration_ms": 600_000,
        "transactional_id_pattern": "b.*",
    }
    admin.answers["list_transactions"] = of_nodes({})
    assert main(["txn"]) == 0
    assert "there is no such transaction" in capsys.readouterr().err


def test_each_state_is_one_of_kafkas() -> None:
    from kafka_fast.cli.operators.transactions.coordinated import _STATES

    assert {TransactionState[name] for name in _STATES.values()} == {*TransactionState} - {
        TransactionState.UNKNOWN
    }


def test_describe(admin: ScriptedAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    absent = TransactionalIdNotFound("nobody knows it")
    one = TransactionDescription(TransactionState.EMPTY, 12, 3, 60_000, None, frozenset())
    admin.answers["describe_transactions"] = answered({"a": one}, {"b": absent})
    assert main(["txn", "describe", "a", "b", "-o", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [error["transactional_id"] for error in report.pop("errors")] == ["b"]
    assert report == {
        "transactions": [
            {"transactional_id": "a", "state": "Empty", "producer_id": 12, "producer_epoch": 3,
             "timeout_ms": 60_000, "start_ms": None, "partitions": []}
        ]
    }  # fmt: skip
    assert main(["txn", "describe", "a", "b", "-o", "wide"]) == 1
    told = capsys.readouterr()
    row = ["a", "Empty", "12", "3", "-", "-", "-", "0:01:00"]
    assert told.out.splitlines()[1].split() == row
    assert told.err == f"kafka-fast: {absent}\n"


def test_hanging(admin: ScriptedAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.answers["find_hanging_transactions"] = [
        HangingTransaction(TopicPartition("orders", 1), OPEN),
        HangingTransaction(PARTITION, OPEN),
    ]
    assert main(["txn", "hanging", "--topic", "orders", "--max-timeout", "1h"]) == 0
    assert capsys.readouterr().out == (
        "TOPIC     PARTITION    START OFFSET    PRODUCER ID    EPOCH    LAST WRITTEN\n"
        "orders            0             100             12        5    2023-11-14T22:13:20Z\n"
        "orders            1             100             12        5    2023-11-14T22:13:20Z\n"
    )
    ((_, _, options),) = admin.calls
    assert options == {
        "topic": "orders",
        "partition": None,
        "broker_id": None,
        "max_transaction_timeout_ms": 3_600_000,
    }
    assert main(["txn", "hanging", "--broker", "1", "-o", "json"]) == 0
    first, _ = json.loads(capsys.readouterr().out)["transactions"]
    assert first == {
        "topic": "orders",
        "partition": 0,
        "start_offset": 100,
        "producer_id": 12,
        "producer_epoch": 5,
        "coordinator_epoch": None,
        "last_sequence": 7,
        "last_timestamp_ms": 1_700_000_000_000,
    }
    admin.answers["find_hanging_transactions"] = []
    assert main(["txn", "hanging", "--broker", "1"]) == 0
    assert capsys.readouterr().err == "kafka-fast: no transaction hangs there\n"
    for words in ([], ["--broker", "1", "--partition", "1"]):
        assert main(["txn", "hanging", *words]) == 2


# ---- abort ----


@pytest.mark.parametrize("which", ["--start-offset 100", "--producer-id 12"])
def test_abort(admin: ScriptedAdmin, capsys: pytest.CaptureFixture[str], which: str) -> None:
    admin.answers["describe_producers"] = answered({PARTITION: (IDLE, OPEN)})
    admin.answers["abort_transaction"] = None
    words = ["txn", "abort", "orders", "0", *which.split()]
    assert main(words) == 2
    assert "give --yes" in capsys.readouterr().err
    assert main([*words, "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("would be aborted")
    assert [name for name, *_ in admin.calls] == ["describe_producers"]
    assert main([*words, "--yes", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "dry_run": False,
        "transactions": [
            {"topic": "orders", "partition": 0, "outcome": "aborted", "start_offset": 100,
             "producer_id": 12, "producer_epoch": 5}
        ],
    }  # fmt: skip
    assert admin.calls[-1] == (
        "abort_transaction",
        (PARTITION,),
        {"producer_id": 12, "producer_epoch": 5, "coordinator_epoch": 0},
    )


def test_nothing_to_abort(admin: ScriptedAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.answers["describe_producers"] = answered({PARTITION: (IDLE,)})
    words = ["txn", "abort", "orders", "0", "--yes"]
    assert main([*words, "--producer-id", "13", "-o", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["transactions"] == []
    assert report["errors"][0]["partition"] == 0
    assert main([*words, "--start-offset", "7"]) == 1
    assert "has no open transaction that began at offset 7" in capsys.readouterr().err
    admin.answers["describe_producers"] = answered({}, {PARTITION: UnknownTopicOrPartition("gone")})
    assert main([*words, "--start-offset", "7"]) == 1
    assert capsys.readouterr().err.count("gone") == 1
    admin.answers["describe_producers"] = answered({PARTITION: (OPEN,)})
    admin.answers["abort_transaction"] = InvalidProducerEpoch("a higher epoch")
    assert main([*words, "--start-offset", "100"]) == 1
    assert "a higher epoch" in capsys.readouterr().err
