"""Nodes that go and come back: told once each time."""

from __future__ import annotations

import logging

import pytest

from kafka_fast.control.connections.connection_key import (
    BOOTSTRAP,
    SECOND_BOOTSTRAP,
    ConnectionKey,
    Role,
)
from kafka_fast.control.diagnosis.outages import FIRST_LOOK, LASTING, QUIET, STANDS
from kafka_fast.control.diagnosis.troubles import Troubles
from kafka_fast.errors import (
    AuthenticationError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    MalformedError,
)
from kafka_fast.instants import NEVER

DATA, CONTROL, COORDINATOR = (
    ConnectionKey(role, 2) for role in (Role.DATA, Role.CONTROL, Role.COORDINATOR)
)
CLOSED = KafkaConnectionError("node 2 closed the connection instead of an answer to Produce")
REFUSED = KafkaConnectionError("node 2: Connection refused")
SILENT = KafkaTimeoutError("node 2 did not accept the connection within 10 s")


@pytest.fixture(name="log")
def everything_from_info_on(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


@pytest.fixture
def troubles() -> Troubles:
    return Troubles(logging.getLogger("kafka_fast.test"))


def lines(log: pytest.LogCaptureFixture) -> list[str]:
    return [f"{record.levelname} {record.getMessage()}" for record in log.records]


def reached(troubles: Troubles) -> None:
    for key in (DATA, CONTROL, COORDINATOR):
        troubles.pass_by(key, 0.0)
    troubles.outages.tick(STANDS)


def back(troubles: Troubles, at: float) -> None:
    troubles.pass_by(DATA, at)
    troubles.outages.tick(at + STANDS)


def test_all_that_the_connections_to_a_node_meet_is_one_warning(
    troubles: Troubles, log: pytest.LogCaptureFixture
) -> None:
    """Regression: an orderly restart gave a WARNING for each connection, and each new cause."""
    reached(troubles)
    for number, key in enumerate((DATA, CONTROL, COORDINATOR)):
        troubles.note_failure(key, CLOSED, 10.0)
        for error in (REFUSED, SILENT, REFUSED):
            troubles.note_failure(key, error, 10.1 + number)
    back(troubles, 13.1)
    assert lines(log) == [f"WARNING {CLOSED}", "INFO node 2 is back, 3.1 s"]


@pytest.mark.parametrize("error", [AuthenticationError("denied"), MalformedError("nonsense")])
def test_what_does_not_pass_with_the_outage_is_told(
    troubles: Troubles, log: pytest.LogCaptureFixture, error: KafkaError
) -> None:
    reached(troubles)
    troubles.note_failure(DATA, REFUSED, 10.0)
    troubles.note_failure(DATA, error, 11.0)
    assert lines(log) == [f"WARNING {REFUSED}", f"WARNING {error}"]


def test_an_outage_that_lasts_is_told_once_more(
    troubles: Troubles, log: pytest.LogCaptureFixture
) -> None:
    reached(troubles)
    for second in range(int(3 * LASTING) + 1):
        troubles.note_failure(DATA, REFUSED, 10.0 + second)
    assert lines(log) == [f"WARNING {REFUSED}", f"WARNING {REFUSED} (31 times in 30 s)"]


def test_a_link_that_breaks_at_once_is_not_back(
    troubles: Troubles, log: pytest.LogCaptureFixture
) -> None:
    reached(troubles)
    for tenth in range(50):
        at = 10.0 + tenth / 10
        troubles.note_failure(DATA, CLOSED, at)
        troubles.pass_by(DATA, at + 0.05)
        troubles.outages.tick(at + 0.05)
    assert lines(log) == [f"WARNING {CLOSED}"]
    deadline = troubles.outages.next_deadline()
    assert deadline == pytest.approx(14.95 + STANDS)
    troubles.outages.tick(deadline)
    assert lines(log)[1:] == ["INFO node 2 is back, 4.95 s"]
    assert troubles.outages.next_deadline() == NEVER


def test_a_node_that_comes_and_goes_is_told_of_once_in_a_while(
    troubles: Troubles, log: pytest.LogCaptureFixture
) -> None:
    reached(troubles)
    for number in range(10):
        troubles.note_failure(DATA, CLOSED, 10.0 + 5 * number)
        back(troubles, 12.0 + 5 * number)
    assert lines(log) == [f"WARNING {CLOSED}", "INFO node 2 is back, 2 s"]
    log.clear()
    troubles.note_failure(DATA, CLOSED, 55.0 + QUIET)
    assert lines(log) == [f"WARNING {CLOSED}"]


def test_metadata_tell_that_a_node_is_back_to_which_nobody_connects(
    troubles: Troubles, log: pytest.LogCaptureFixture
) -> None:
    reached(troubles)
    outages = troubles.outages
    troubles.note_failure(DATA, CLOSED, 10.0)
    outages.handle_nodes({1, 2, 3}, 10.1)  # it has not gone yet
    outages.handle_nodes({1, 3}, 10.5)
    asked = []
    while (at := outages.look_at()) < 60.0:
        asked.append(at - 10.0)
        outages.note_look(at)
        outages.handle_nodes({1, 3}, at)
    assert asked == pytest.approx([FIRST_LOOK * 1.5**number for number in range(8)])
    outages.handle_nodes({1, 2, 3}, 61.0)
    assert lines(log)[1:] == ["INFO node 2 is back, 51 s"]
    assert outages.look_at() == NEVER


def test_of_a_node_that_was_never_reached_each_cause_is_told(
    troubles: Troubles, log: pytest.LogCaptureFixture
) -> None:
    for at, error in enumerate((REFUSED, SILENT, REFUSED)):
        troubles.note_failure(DATA, error, 10.0 + at)
    assert troubles.outages.look_at() == NEVER, "metadata have just named it"
    back(troubles, 13.0)
    assert lines(log) == [
        f"WARNING {REFUSED}",
        f"WARNING {SILENT}",
        f"WARNING {REFUSED}",
        "INFO node 2 answers, after 3 s",
    ]


def test_that_a_bootstrap_server_answers_at_last_is_told(
    troubles: Troubles, log: pytest.LogCaptureFixture
) -> None:
    for key in (BOOTSTRAP, SECOND_BOOTSTRAP):
        troubles.note_failure(key, KafkaConnectionError("h:9092: Connection refused"), 10.0)
    troubles.pass_by(SECOND_BOOTSTRAP, 22.0)
    troubles.outages.tick(22.0 + STANDS)
    assert lines(log) == [
        "WARNING h:9092: Connection refused",
        "INFO a bootstrap server answers, after 12 s",
    ]
    troubles.outages.handle_nodes({1, 2}, 30.0)


def test_metadata_tell_that_nobody_asks_for_a_bootstrap_server_any_more(
    troubles: Troubles, log: pytest.LogCaptureFixture
) -> None:
    """Regression: the link broke before there was another, and was never made again."""
    troubles.pass_by(BOOTSTRAP, 0.0)
    troubles.note_failure(BOOTSTRAP, KafkaConnectionError("h:9092 closed the connection"), 0.1)
    troubles.outages.handle_nodes({1, 2}, 0.4)
    troubles.outages.handle_nodes({1, 2}, 0.6)
    assert lines(log) == [
        "WARNING h:9092 closed the connection",
        "INFO a node answers, after 0.3 s",
    ]
    assert troubles.outages.next_deadline() == NEVER


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (CLOSED, "DEBUG"),
        (SILENT, "DEBUG"),
        (AuthenticationError("denied"), "WARNING"),
        (MalformedError("nonsense"), "WARNING"),
    ],
)
def test_the_end_of_a_link_that_nobody_needs(
    troubles: Troubles, log: pytest.LogCaptureFixture, error: KafkaError, level: str
) -> None:
    log.set_level(logging.DEBUG)
    troubles.pass_by(BOOTSTRAP, 0.0)
    troubles.note_failure(BOOTSTRAP, error, 0.1, is_spare=True)
    assert lines(log) == [f"{level} {error}"]
    assert troubles.failures == 1
    assert troubles.last(0.0) is not None, "a wait that times out names it"


def test_what_was_never_told_is_not_over_either(
    troubles: Troubles, log: pytest.LogCaptureFixture
) -> None:
    troubles.pass_by(DATA, 0.0)
    troubles.outages.tick(STANDS)
    assert troubles.outages.next_deadline() == NEVER
    assert lines(log) == []
