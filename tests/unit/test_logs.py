"""Loggers that say the same thing only so often."""

from __future__ import annotations

import logging

import pytest

from kafka_fast.logs import BURST, PERIOD, TEXTS_MAX, RateLimit, get_logger


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
