"""The frame of the command line: parsing, exit statuses, the small commands."""

from __future__ import annotations

import gc
import json
import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_fast import __version__
from kafka_fast.cli import info
from kafka_fast.cli.commands import COMMANDS, commands_below, whole_parser
from kafka_fast.cli.main import main, run_process
from kafka_fast.config import KEYS
from kafka_fast.errors import (
    ClusterAuthorizationFailed,
    KafkaConnectionError,
    MissingPackageError,
    UsageError,
)
from tests.unit.cli.operators.fake_admin import faked

ROOT = Path(__file__).parents[3]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"kafka-fast {__version__}\n"


def test_a_process_ends_without_a_last_look_for_garbage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    thresholds = gc.get_threshold()
    monkeypatch.setattr(sys, "argv", ["kafka-fast", "config", "--no-such-option"])
    try:
        with pytest.raises(SystemExit) as caught:
            run_process()
        assert caught.value.code == 2
        assert gc.get_freeze_count() > 0
        monkeypatch.setattr(sys, "argv", ["kafka-fast", "config", "bootstrap.servers"])
        assert run_process() == 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
    assert "bootstrap.servers" in capsys.readouterr().out


def test_no_command_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 2
    assert "COMMAND" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UsageError("no"), 2),
        (KafkaConnectionError("no"), 1),
        (OSError("no"), 1),
        (OSError(5, "no"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_statuses(
    error: BaseException,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(args: object) -> int:
        raise error

    monkeypatch.setattr(info, "run", fail)
    assert main(["info"]) == status
    assert capsys.readouterr().err == ("" if status == 130 else "kafka-fast: no\n")


@pytest.mark.parametrize(
    ("error", "status", "name"),
    [
        (UsageError("no"), 2, "UsageError"),
        (MissingPackageError("no", package="p", extra="cli"), 2, "MissingPackageError"),
        (ClusterAuthorizationFailed("no"), 1, "CLUSTER_AUTHORIZATION_FAILED"),
        (FileNotFoundError(2, "no"), 1, "FileNotFoundError"),
    ],
)
def test_programs_get_an_object_of_a_command_that_fails(
    error: Exception,
    status: int,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Regression: standard output was empty, which is no JSON."""
    faked(monkeypatch, describe_cluster=error)
    assert main(["cluster", "-o", "json"]) == status
    shown = capsys.readouterr()
    text = shown.err.removeprefix("kafka-fast: ").rstrip("\n")
    assert json.loads(shown.out) == {"errors": [{"error": name, "message": text}]}
    assert main(["cluster", "-o", "yaml"]) == status
    assert f"error: {name}" in capsys.readouterr().out
    assert main(["cluster", "-o", "wide"]) == status
    assert capsys.readouterr().out == ""


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["produce", "t", "-f", "/no/such/file"]) == 1
    assert capsys.readouterr().err == "kafka-fast: /no/such/file: No such file or directory\n"


@pytest.mark.parametrize("arguments", [["-v", "info"], ["info", "-v"], ["info", "-vv"]])
def test_verbose_before_or_after_the_command(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def log(args: object) -> int:
        logging.getLogger("kafka_fast.test").info("an event")
        return 0

    monkeypatch.setattr(info, "run", log)
    assert main(arguments) == 0
    assert capsys.readouterr().err.endswith(" INFO kafka_fast.test: an event\n")
    assert main(["info"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("time", ["-1x", "-1"])
def test_a_wrong_time_is_named(time: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It looks like an option, and the parser would say that --from has no argument."""
    with pytest.raises(SystemExit) as caught:
        main(["consume", "t", "--from", time])
    assert caught.value.code == 2
    assert f"--from: {time!r} is neither beginning, end" in capsys.readouterr().err


VERBS = [
    command.prog.removeprefix("kafka-fast ")
    for command in commands_below(whole_parser())
    if " " in command.prog.removeprefix("kafka-fast ")
]


@pytest.mark.parametrize("command", [*COMMANDS, *VERBS])
def test_every_command_has_help(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as caught:
        main([*command.split(), "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    _, *lines = text.partition("\n\n")[2].splitlines()
    assert max(len(line) for line in lines if "{" not in line) <= 80  # choices are not folded
    described, *_ = text.split("\noptions:")
    assert described.count("\n\n") >= 1, "a description"
    for line in described.split("positional arguments:")[-1].splitlines():
        assert not re.fullmatch(r"  \w+", line), f"{line.strip()} is not explained"
    assert not re.search(MARKDOWN, text)


MARKDOWN = re.compile(r"`|\*\*\w|]\(|^#", re.MULTILINE)


def test_help_is_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert not MARKDOWN.search(text)
    assert all(f"\n    {command} " in text for command in COMMANDS)
    assert main(["config", *KEYS]) == 0
    assert not MARKDOWN.search(capsys.readouterr().out)


def test_config_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--markdown"]) == 0
    assert capsys.readouterr().out == (ROOT / "docs/configuration.md").read_text(encoding="utf-8")


def test_config_list_is_properties(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "linger.ms=5" in lines
    assert "acks=all" in lines
    assert "key.serializer=" in lines
    assert "enable.idempotence=true" in lines
    assert "security.protocol=PLAINTEXT" in lines
    assert not any(line.startswith(("ssl.provider", "group.id")) for line in lines)
    assert main(["config", "--client", "consumer"]) == 0
    assert "partition.assignment.strategy=range,cooperative-sticky" in capsys.readouterr().out


def test_config_of_one_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "queue_buffering_max_ms", "partitioner.rack.aware"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("linger.ms\n")
    assert "Not supported yet: this version has no rack-aware partitioning." in out
    assert main(["config", "group.id"]) == 0
    assert capsys.readouterr().out.startswith("group.id\n"), "whichever client has it"
    assert main(["config", "lingr"]) == 2
    assert "unknown property 'lingr'" in capsys.readouterr().err


def test_info(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    facts = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines())
    assert facts["kafka_fast"].strip() == __version__
    assert "table" in facts["crc32c"]
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        assert f"{codec} (" in facts["codecs"]


def test_info_says_what_is_slow_and_how_to_mend_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = {"gzip": "native", "snappy": "package", "lz4": None, "zstd": "native"}
    monkeypatch.setattr("kafka_fast.record.codecs_available", lambda: served)
    assert main(["info"]) == 0
    facts = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines())
    assert facts["codecs"].strip() == "gzip (native), snappy (package), lz4 (none), zstd (native)"
    assert "snappy, lz4: this build found no C library" in facts["slow"]
    assert "apt-get install libsnappy-dev liblz4-dev)" in facts["to mend it"]
    assert "pip install --no-cache-dir --force-reinstall" in facts["to mend it"]
    monkeypatch.setattr("kafka_fast.record.codecs_available", lambda: {"lz4": "native"})
    assert main(["info"]) == 0
    assert "slow" not in capsys.readouterr().out


def test_as_a_module_into_a_closed_pipe() -> None:
    run = subprocess.Popen(
        [sys.executable, "-m", "kafka_fast", "config", "--markdown"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert run.stdout is not None
    run.stdout.close()
    _, err = run.communicate(timeout=60)
    assert (run.returncode, err) == (0, b"")
