"""Loggers that say the same thing only so often."""

from __future__ import annotations

import logging
import threading

import pytest

from kafka_fast.logs import (
    BURST,
    LONG,
    NAMED,
    PERIOD,
    TEXTS_MAX,
    WAIT,
    ClientLog,
    LongWait,
    RateLimit,
    Waiting,
    all_of,
    get_logger,
    in_seconds,
    keep_name,
    name_thread,
    naming,
    some_of,
)
from kafka_fast.types import TopicPartition


def say(limit: RateLimit, at: float, text: str, *args: object) -> str | None:
    """Return what is said, if anything is."""
    record = logging.LogRecord("n", logging.WARNING, "p", 1, text, args, None)
    record.created = at
    return record.getMessage() if limit.filter(record) else None


def test_a_burst_passes_and_the_rest_is_counted() -> None:
    limit = RateLimit()
    heard = [say(limit, 1.0 + at, "node %d is gone", at) for at in range(30)]
    assert heard == [f"node {at} is gone" for at in range(BURST)] + [None] * 10
    assert say(limit, 1.0 + PERIOD, "node %d is gone", 7) == "node 7 is gone (and 10 times before)"
    assert say(limit, 2.0 + PERIOD, "node %d is gone", 8) == "node 8 is gone"


def test_texts_and_levels_are_counted_apart() -> None:
    limit = RateLimit()
    for _ in range(BURST + 1):
        say(limit, 1.0, "one")
    assert say(limit, 1.0, "one") is None
    assert say(limit, 1.0, "two") == "two"


def test_texts_that_never_come_again_take_no_memory_for_ever() -> None:
    limit = RateLimit()
    for number in range(3 * TEXTS_MAX):
        say(limit, 1.0, f"text {number}")
    assert len(limit._said) <= TEXTS_MAX


def test_loggers_have_one_limit(caplog: pytest.LogCaptureFixture) -> None:
    logger = get_logger("kafka_fast.tests")
    assert get_logger("kafka_fast.tests") is logger
    for _ in range(2 * BURST):
        logger.warning("again")
    assert len(caplog.records) == BURST


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 partitions"),
        (1, "1 partition (t-0)"),
        (2, "2 partitions (t-0, t-1)"),
        (12, "12 partitions (t-0, t-1, t-2, t-3, t-4, t-5, t-6, t-7, t-8, t-9 and 2 more)"),
    ],
)
def test_partitions_are_counted_and_named(count: int, text: str) -> None:
    partitions = {TopicPartition("t", number) for number in range(count)}
    assert all_of(partitions) == text


def test_things_are_named_without_holding_all_of_them() -> None:
    assert some_of(iter(())) == ""
    assert some_of(iter(range(NAMED))) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    assert some_of(iter(range(1_000))) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 990 more"


class TestTheClientOfALine:
    """Every line about a client names it, on whichever thread it is logged."""

    @pytest.fixture(autouse=True)
    def hear(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG, logger="kafka_fast")
        self.log = caplog

    def lines(self) -> list[tuple[str, str]]:
        return [(record.getMessage(), record.client_id) for record in self.log.records]  # type: ignore[attr-defined]

    def test_a_clients_own_log(self) -> None:
        log = ClientLog("kafka_fast.test", "100%")
        log.info("no arguments: 100%")
        log.warning("%s of %d", "one", 2, extra=WAIT)
        assert self.lines() == [
            ("[100%] no arguments: 100%", "100%"),
            ("[100%] one of 2", "100%"),
        ]
        assert self.log.records[1].kind == "wait"  # type: ignore[attr-defined]
        assert self.log.records[0].module == "test_logs", "where it was said, not where it passed"

    def test_what_an_error_tracker_groups_by_stays_a_template(self) -> None:
        ClientLog("kafka_fast.test", "me").warning("node %d is gone", 7)
        assert self.log.records[0].msg == "[%s] node %d is gone"

    def test_the_threads_of_a_client(self) -> None:
        logger = get_logger("kafka_fast.test")

        def inner() -> None:
            logger.info("of a thread that it has started")

        def run() -> None:
            name_thread("mine")
            logger.info("of its thread")
            ClientLog("kafka_fast.test", "other").info("of another client, on its thread")
            started = threading.Thread(target=keep_name(inner))
            started.start()
            started.join()

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        logger.info("of nobody")
        assert self.lines() == [
            ("[mine] of its thread", "mine"),
            ("[other] of another client, on its thread", "other"),
            ("[mine] of a thread that it has started", "mine"),
            ("of nobody", ""),
        ]

    def test_a_client_that_is_being_made(self) -> None:
        logger = get_logger("kafka_fast.test")
        with naming("new"):
            logger.info("while it is made")
        logger.info("after that")
        assert [line for line, _ in self.lines()] == ["[new] while it is made", "after that"]

    def test_the_limit_is_one_for_all_clients(self) -> None:
        for number in range(BURST):
            ClientLog("kafka_fast.test", f"client-{number}").warning("again")
        ClientLog("kafka_fast.test", "last").warning("again")
        assert len(self.lines()) == BURST


class Waits:
    """A wait, and what it says."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.log = caplog
        self.wait = LongWait(get_logger("kafka_fast.test"))
        self.looks = 0

    def look(self, now: float, waiting: Waiting | None) -> list[str]:
        """Look once; return what is logged."""

        def describe(at: float) -> Waiting | None:
            assert at == now
            self.looks += 1
            return waiting

        self.log.clear()
        self.wait.log_if_long(now, describe)
        return [f"{record.levelname} {record.getMessage()}" for record in self.log.records]


@pytest.fixture
def waits(caplog: pytest.LogCaptureFixture) -> Waits:
    caplog.set_level(logging.INFO)
    return Waits(caplog)


def test_a_wait_is_told_once_when_it_is_long(waits: Waits) -> None:
    said = [waits.look(tenth / 10, Waiting("no leader")) for tenth in range(200)]
    assert [lines for lines in said if lines] == [["WARNING no leader"]]
    assert said[int(LONG * 10)] != []
    assert waits.looks < 20, "what it costs to find out is not paid in each slice"
    assert waits.wait.deadline < 21.0
    waits.wait.end_wait()
    assert waits.wait.deadline == float("inf")
    assert waits.look(21.0, Waiting("no leader")) == []
    assert waits.look(24.0, Waiting("no leader")) == ["WARNING no leader"]


def test_a_wait_for_something_else_is_another_wait(waits: Waits) -> None:
    joins = Waiting("joins", logging.INFO, "join")
    syncs = Waiting("syncs", logging.INFO, "sync")
    assert waits.look(0.0, joins) == []
    assert waits.look(3.0, joins) == ["INFO joins"]
    assert waits.look(4.0, syncs) == []
    assert waits.look(6.0, syncs) == []
    assert waits.look(7.0, syncs) == ["INFO syncs"]
    assert waits.look(20.0, joins) == [], "that was told"


def test_what_passes_soon_is_not_told_when_it_comes_again(waits: Waits) -> None:
    """Regression: of two leaders that moved an hour apart the second was told of at once."""
    end, held = Waiting("at the end", logging.INFO, "end"), Waiting("held up", key="held")
    assert waits.look(0.0, end) == []
    assert waits.look(3.0, end) == ["INFO at the end"]
    for again in (4.0, 3604.0):
        assert waits.look(again, held) == []
        assert waits.look(again + 3.0, end if again == 4.0 else None) == []
    assert waits.look(7204.0, held) == []


def test_what_need_not_be_said_is_looked_at_again(waits: Waits) -> None:
    assert waits.look(0.0, None) == []
    assert waits.look(3.0, None) == []
    assert waits.look(4.0, Waiting("no leader")) == ["WARNING no leader"]


def test_who_waits_while_a_wait_is_told_says_nothing(waits: Waits) -> None:
    """Regression: a handler that sends to Kafka waited for the same, told of it, waited ..."""

    class Waiter(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            inner = LongWait(get_logger("kafka_fast.test"))
            for now in (0.0, LONG):
                inner.log_if_long(now, lambda _: Waiting("and me"))

    handler = Waiter()
    logging.getLogger("kafka_fast").addHandler(handler)
    try:
        waits.look(0.0, Waiting("no leader"))
        assert waits.look(LONG, Waiting("no leader")) == ["WARNING no leader"]
    finally:
        logging.getLogger("kafka_fast").removeHandler(handler)
    waits.wait.end_wait()
    waits.look(10.0, Waiting("no leader"))
    assert waits.look(10.0 + LONG, Waiting("no leader")) == ["WARNING no leader"]


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (0.0, "0 s"),
        (0.0008, "0.8 ms"),
        (0.0997, "99.7 ms"),
        (0.3, "0.3 s"),
        (2.346, "2.35 s"),
        (60.0, "60 s"),
        (3600.4, "3600 s"),
    ],
)
def test_durations_in_messages(duration: float, text: str) -> None:
    assert in_seconds(duration) == text


def test_what_is_all_argument_is_known_by_its_kind() -> None:
    limit = RateLimit()

    def heard(kind: object) -> bool:
        record = logging.LogRecord("n", logging.WARNING, "p", 1, "%s", ("text",), None)
        record.created = 1.0
        record.kind = kind
        return limit.filter(record)

    assert [heard("a") for _ in range(BURST + 1)] == [True] * BURST + [False]
    assert heard("b")
