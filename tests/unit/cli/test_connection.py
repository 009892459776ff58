"""The options of commands that connect: what wins over what, and where a password comes from."""

from __future__ import annotations

import argparse
import getpass
import io
import re
import shlex
from pathlib import Path

import pytest

from kafka_fast.cli.commands import whole_parser
from kafka_fast.cli.connection import add_connection, configuration, reader_configuration
from kafka_fast.cli.main import main
from kafka_fast.cli.secure_connection import PASSWORD_VARIABLE
from kafka_fast.config import (
    CommonSettings,
    admin_settings,
    consumer_settings,
    producer_settings,
)
from kafka_fast.errors import ConfigError

FILE = """\
bootstrap.servers=broker:9093
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.username=filed
sasl.password=canary-of-file
session.timeout.ms=45000
acks=all
schema.registry.url=http://registry
value.serializer=org.apache.kafka.common.serialization.StringSerializer
"""


@pytest.fixture(autouse=True)
def nobody_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSWORD_VARIABLE, raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO())


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "client.properties"
    path.write_text(FILE)
    return str(path)


def config_of(*options: str) -> dict[str, object]:
    parser = argparse.ArgumentParser()
    add_connection(parser, "producer")
    return configuration(parser.parse_args(options), "producer")


def settings_of(*options: str) -> CommonSettings:
    return producer_settings(config_of(*options))


def password_of(settings: CommonSettings) -> str:
    assert settings.sasl is not None
    assert settings.sasl.password is not None
    return settings.sasl.password.reveal()


def test_a_file_is_enough(file: str) -> None:
    config = config_of("--config", file)
    assert "canary" not in repr(config)
    assert not {"session.timeout.ms", "schema.registry.url", "value.serializer"} & set(config)
    settings = producer_settings(config)
    assert [str(server) for server in settings.bootstrap_servers] == ["broker:9093"]
    assert settings.security_protocol == "SASL_SSL"
    assert password_of(settings) == "canary-of-file"


def test_the_command_line_wins_over_the_file(file: str, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("of option\r\nsecond line\n")
    options = ("--username", "me", "--password-file", str(tmp_path / "password"), "-b", "other")
    more = ("--sasl-mechanism", "scram-sha-512", "-X", "linger_ms=7", "--ca", "/ca.pem")
    settings = settings_of("--config", file, *options, *more)
    assert [str(server) for server in settings.bootstrap_servers] == ["other:9092"]
    assert settings.sasl is not None
    assert (settings.sasl.mechanism, settings.sasl.username) == ("SCRAM-SHA-512", "me")
    assert password_of(settings) == "of option"
    assert settings.tls is not None
    assert settings.tls.truststore is not None
    assert settings.tls.truststore.location == "/ca.pem"
    assert settings_of("--config", file, "-X", "metadata.broker.list=x:1").bootstrap_servers == (
        ("x", 1),
    )


def whom_an_admin_asks(*options: str) -> tuple[list[str], bool]:
    parser = argparse.ArgumentParser()
    add_connection(parser, "admin", asks_controllers=True)
    settings = admin_settings(configuration(parser.parse_args(options), "admin"))
    return [str(server) for server in settings.bootstrap_servers], settings.uses_controllers


def test_controllers_are_asked_in_place_of_brokers(file: str, tmp_path: Path) -> None:
    quorum = tmp_path / "quorum.properties"
    quorum.write_text("bootstrap.controllers=q:9093\n")
    assert whom_an_admin_asks() == (["localhost:9092"], False)
    assert whom_an_admin_asks("--controllers", "c:1,d:2") == (["c:1", "d:2"], True)
    assert whom_an_admin_asks("-X", "bootstrap.controllers=c:1") == (["c:1"], True)
    assert whom_an_admin_asks("--config", str(quorum)) == (["q:9093"], True)
    assert whom_an_admin_asks("--config", file, "--controllers", "c:1") == (["c:1"], True)
    assert whom_an_admin_asks("--config", str(quorum), "-b", "b:1") == (["b:1"], False)
    for more in (("-b", "b:1"), ("-X", "bootstrap.controllers=d:1")):
        with pytest.raises(ConfigError, match=r"bootstrap\.controllers"):
            whom_an_admin_asks("--controllers", "c:1", *more)


@pytest.mark.parametrize(
    ("options", "protocol"),
    [
        ((), "PLAINTEXT"),
        (("--tls",), "SSL"),
        (("--ca", "/ca"), "SSL"),
        (("--cert", "/c", "--key", "/k"), "SSL"),
        (("--sasl-mechanism", "gssapi"), "SASL_PLAINTEXT"),
        (("--tls", "--sasl-mechanism", "gssapi"), "SASL_SSL"),
        (("-X", "security.protocol=ssl", "--sasl-mechanism", "gssapi"), "SASL_SSL"),
        (("-X", "security_protocol=SASL_PLAINTEXT", "--tls"), "SASL_SSL"),
    ],
)
def test_options_make_the_protocol(options: tuple[str, ...], protocol: str) -> None:
    assert settings_of(*options).security_protocol == protocol


USER = ("--tls", "--sasl-mechanism", "PLAIN", "--username", "me")


def test_the_password_from_the_environment(monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, "of environment")
    assert password_of(settings_of(*USER)) == "of environment"
    assert password_of(settings_of("--config", file)) == "canary-of-file"


def test_the_password_from_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    asked = []

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return "typed"

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr(getpass, "getpass", ask)
    assert password_of(settings_of(*USER)) == "typed"
    assert asked == ["password of me: "]


def test_nobody_to_ask() -> None:
    with pytest.raises(ConfigError, match=rf"--password-file FILE, .*{PASSWORD_VARIABLE}"):
        config_of(*USER)


def test_no_option_takes_a_password(capsys: pytest.CaptureFixture[str]) -> None:
    for options in (("--password", "canary"), ("--password=canary",)):
        with pytest.raises(SystemExit) as caught:
            main(["lag", "g", *USER, *options])
        assert caught.value.code == 2
        said = capsys.readouterr().err
        assert f"give --password-file, or set {PASSWORD_VARIABLE}" in said
        assert "canary" not in said


def test_given_twice(file: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.username is given twice: by an option and by -X"):
        config_of("-X", "sasl_plain_username=you", *USER, "-X", "sasl.password=p")
    with pytest.raises(ConfigError, match=r"sasl\.password is given twice") as caught:
        config_of("-X", "sasl.password=canary-1", "-X", "sasl.password=canary-2")
    assert "canary" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is given twice"):
        config_of("-b", "a", "-X", "bootstrap_servers=b", "--config", file)


def test_config_shows_what_a_client_gets(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--config", file, "-X", "linger.ms=9"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "sasl.password=****" in lines
    assert {"sasl.username=filed", "linger.ms=9", "bootstrap.servers=broker:9093"} <= set(lines)
    assert "canary" not in "".join(lines)


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lag", "g", "--config", "/no/such.properties"]) == 1
    assert "/no/such.properties: No such file" in capsys.readouterr().err


def test_the_pages_commands(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of docs/command-line.md."""
    page = (Path(__file__).parents[3] / "docs" / "command-line.md").read_text(encoding="utf-8")
    commands = re.findall(
        r"^kafka-fast (.* (?:--config \S+\.properties|--username) .*)$", page, re.MULTILINE
    )
    monkeypatch.setenv(PASSWORD_VARIABLE, "canary")
    mechanisms = []
    for command in commands:
        words = shlex.split(command.replace("client.properties", file))
        sasl = consumer_settings(reader_configuration(whole_parser().parse_args(words))).sasl
        assert sasl is not None
        mechanisms.append(sasl.mechanism)
    assert mechanisms == ["PLAIN", "SCRAM-SHA-512"]
