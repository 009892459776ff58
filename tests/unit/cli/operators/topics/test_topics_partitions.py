"""`kafka-fast topics partitions`: its arguments; real Kafka has the rest."""

from __future__ import annotations

import pytest

from kafka_fast.cli.main import main
from kafka_fast.cli.operators.topics.extension import _brokers
from kafka_fast.errors import UsageError


@pytest.mark.parametrize("count", ["0", "-1", "+1", "1.5", "many"])
def test_no_number(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["topics", "partitions", "orders", "--", count])
    assert caught.value.code == 2
    assert "expected a number from 1 on" in capsys.readouterr().err


def test_the_brokers_of_new_partitions() -> None:
    assert _brokers({}, 4) is None
    assert _brokers({2: (1, 2), 3: (2, 1)}, 4) == [(1, 2), (2, 1)]
    with pytest.raises(UsageError, match="of 4 partitions the last 2 have the numbers 2 to 3"):
        _brokers({1: (1,), 2: (1,)}, 4)
