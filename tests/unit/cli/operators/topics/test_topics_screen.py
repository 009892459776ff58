"""Tables as a terminal shows them: colours, NO_COLOR, and what a narrow one makes of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.unit.cli.terminals import terminal

pytest.importorskip("rich")


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=2, auto_create=False) as kafka:
        kafka.create_topic("orders", 1)
        kafka.set_in_sync("orders", 0, [1])
        yield kafka


TABLE = [
    "TOPIC    PARTITION   LEADER   REPLICAS   ISR   OFFLINE",
    "──────────────────────────────────────────────────────",
    "orders           0        1   1,2        1     -",
]


def test_a_terminal_gets_a_table_with_colours(kafka: EmbeddedKafka) -> None:
    with terminal("topics", "describe", "-b", kafka.bootstrap) as screen:
        assert screen.end() == 0
    assert screen.lines() == TABLE
    cell = screen.screen().buffer[2][TABLE[0].index("ISR")]
    assert (cell.data, cell.fg) == ("1", "red")
    assert screen.screen().buffer[0][0].bold


def test_no_color(kafka: EmbeddedKafka) -> None:
    words = ["topics", "describe", "-b", kafka.bootstrap]
    with terminal(*words, environment={"NO_COLOR": "1"}) as screen:
        assert screen.end() == 0
    assert screen.lines() == TABLE
    assert {cell.fg for line in screen.screen().buffer.values() for cell in line.values()} <= {
        "default"
    }


def test_a_dumb_terminal(kafka: EmbeddedKafka) -> None:
    words = ["topics", "describe", "-b", kafka.bootstrap]
    with terminal(*words, environment={"TERM": "dumb"}) as screen:
        assert screen.end() == 0
    assert b"\x1b" not in screen.bytes


def test_a_narrow_terminal_loses_nothing(kafka: EmbeddedKafka) -> None:
    name = "a-topic-with-a-name-that-is-longer-than-the-screen"
    kafka.create_topic(name, 1)
    with terminal("topics", name, "-b", kafka.bootstrap, columns=30) as screen:
        assert screen.end() == 0
    lines = screen.lines(30)
    assert "".join(line.split()[0] for line in lines[2:]) == name
    kafka.delete_topic(name)


def test_text_on_a_terminal(kafka: EmbeddedKafka) -> None:
    with terminal("topics", "-o", "text", "-b", kafka.bootstrap) as screen:
        assert screen.end() == 0
    assert screen.text == "TOPIC     PARTITIONS\norders             1\n"
