"""What is said on standard error: messages, log records, warnings."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator

import pytest

from kafka_fast.cli.showing.standard_error import LogLines, say, showing_logs
from kafka_fast.logs import RECOVERY, ClientLog, RateLimit

LOG = logging.getLogger("kafka_fast.cli_test")


@pytest.fixture(autouse=True)
def no_other_handlers() -> Iterator[None]:
    """Let records end where they are handled."""
    logger = logging.getLogger("kafka_fast")
    propagate, level = logger.propagate, logger.level
    logger.propagate = False
    yield
    logger.propagate = propagate
    assert logger.level == level
    assert not [handler for handler in logger.handlers if isinstance(handler, LogLines)]


def test_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    say("hello")
    assert capsys.readouterr() == ("", "kafka-fast: hello\n")


def test_warnings_and_waits_are_for_everybody(capsys: pytest.CaptureFixture[str]) -> None:
    with showing_logs(0):
        LOG.warning("no broker at %s", "h:1")
        LOG.info("at the end of the log, waiting for new records")
        LOG.info("%s", "flush() waits; 5 records are not delivered yet")
        LOG.info("group g: epoch 5")
        LOG.info("node 2 is back, 3.1 s", extra=RECOVERY)
        LOG.info("node 1 has this client wait for 5 ms: a quota")
        LOG.debug("waiting for nothing")
        LOG.error("lost")
        logging.getLogger("somebody.else").warning("not ours")
    assert capsys.readouterr().err.splitlines() == [
        "kafka-fast: no broker at h:1",
        "kafka-fast: at the end of the log, waiting for new records",
        "kafka-fast: flush() waits; 5 records are not delivered yet",
        "kafka-fast: node 2 is back, 3.1 s",
        "kafka-fast: lost",
    ]


def test_the_one_client_of_a_command_is_named_only_to_those_who_ask(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = ClientLog("kafka_fast.cli_test", "consumer-1")
    with showing_logs(0):
        log.warning("no broker at %s", "h:1")
    with showing_logs(1):
        log.warning("no broker at %s", "h:1")
    plain, detailed = capsys.readouterr().err.splitlines()
    assert plain == "kafka-fast: no broker at h:1"
    assert detailed.endswith("WARNING kafka_fast.cli_test: [consumer-1] no broker at h:1")


def test_a_traceback_is_for_those_who_ask(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        try:
            raise ValueError("oh")
        except ValueError:
            LOG.warning("it failed", exc_info=True)

    with showing_logs(0):
        fail()
    assert capsys.readouterr().err == "kafka-fast: it failed\n"
    with showing_logs(1):
        fail()
    assert "Traceback" in capsys.readouterr().err


def test_what_others_named_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Anybody who may join a group gives it a name."""
    say("Group \x1b[2J\x1b]0;title\x07 not found.\n  \tsecond line\r\u202e")
    shown = r"Group \x1b[2J\x1b]0;title\x07 not found." + "\n  \tsecond line" + r"\r\u202e"
    assert capsys.readouterr().err == f"kafka-fast: {shown}\n"


@pytest.mark.parametrize(("verbosity", "shown"), [(1, ["INFO"]), (2, ["INFO", "DEBUG"])])
def test_verbose(verbosity: int, shown: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with showing_logs(verbosity):
        LOG.info("an event")
        LOG.debug("a detail")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(shown)
    for line, level in zip(lines, shown, strict=True):
        assert line.startswith("kafka-fast: 20")
        assert f" {level} kafka_fast.cli_test: " in line


def test_the_limit_of_the_clients_loggers_holds(capsys: pytest.CaptureFixture[str]) -> None:
    limit = RateLimit()
    LOG.addFilter(limit)
    try:
        with showing_logs(0):
            for _ in range(1000):
                LOG.warning("again")
    finally:
        LOG.removeFilter(limit)
    assert len(capsys.readouterr().err.splitlines()) < 50


def test_pythons_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    with showing_logs(0):
        warnings.simplefilter("always")
        warnings.warn("this build has no library for lz4", RuntimeWarning, stacklevel=1)
    assert capsys.readouterr().err == "kafka-fast: this build has no library for lz4\n"
