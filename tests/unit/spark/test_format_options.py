"""Options as texts: values, properties, and names that nobody knows."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_fast.config import consumer_settings
from kafka_fast.errors import ConfigError, UsageError
from kafka_fast.spark.format_options import (
    FormatOptions,
    boolean,
    milliseconds,
    number,
    positive,
    seconds,
    text_of,
)


def test_names_have_no_case_and_values_no_spaces_around() -> None:
    options = FormatOptions({"SomeNumber": " 7 "}, ["someNumber", "Other"])
    assert options.find("someNumber", number) == 7
    assert options.find("other", number) is None
    assert options.take_option("other", number, 3) == 3


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (text_of, "x", "x"),
        (number, "-1", -1),
        (positive, "1", 1),
        (milliseconds, "1500", 1.5),
        (boolean, "True", True),
        (boolean, "false", False),
        (seconds, "15m", 900),
        (seconds, "2 min", 120),
        (seconds, "250", 0.25),
    ],
)
def test_values(read: Callable[[str, str], Any], text: str, value: object) -> None:
    assert FormatOptions({"it": text}, ["it"]).find("it", read) == value


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (text_of, "", "it is empty"),
        (number, "many", "it must be a number, not 'many'"),
        (positive, "0", "it must be positive"),
        (boolean, "yes", "it must be 'true' or 'false', not 'yes'"),
        (seconds, "soon", "it must be a time such as '30s', '15m' or '2h', not 'soon'"),
    ],
)
def test_what_is_no_value(read: Callable[[str, str], Any], text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        FormatOptions({"it": text}, ["it"]).find("it", read)
    assert str(raised.value) == said


NAMES = ("topic", "propertiesFile", "startingOffsets")
SERVERS = {"Kafka.Bootstrap.Servers": "a:1"}


def test_properties() -> None:
    texts = {**SERVERS, "kafka.linger.ms": "5", "topic": "t"}
    options = FormatOptions(texts, NAMES)
    properties = options.client_config("producer", {}).properties()
    assert properties == {"bootstrap.servers": "a:1", "linger.ms": "5"}
    with pytest.raises(UsageError, match="not here"):
        options.client_config("producer", {"linger.ms": "not here"})
    with pytest.raises(UsageError, match="must be specified for configuring Kafka producer"):
        FormatOptions({"topic": "t"}, NAMES).client_config("producer", {})


def test_what_is_ignored_is_told(caplog: pytest.LogCaptureFixture) -> None:
    options = FormatOptions({**SERVERS, "kafka.group.id": "g"}, NAMES)
    with caplog.at_level(logging.WARNING, "kafka_fast"):
        config = options.client_config("consumer", {}, ignored={"group.id": "no effect"})
    assert config.properties() == {"bootstrap.servers": "a:1"}
    assert [record.getMessage() for record in caplog.records] == ["no effect"]


LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "u",
    "sasl.password": "hush",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    properties = {
        "bootstrap.servers": "b:1",
        "client.id": "file",
        "group.id": "g",
        "linger.ms": "7",
    }
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in (properties | LOGIN).items()))
    return file


def test_properties_of_a_file(file: Path) -> None:
    options = FormatOptions({"propertiesFile": str(file), "kafka.fetch.min.bytes": "9"}, NAMES)
    config = options.client_config(
        "consumer",
        {},
        ignored={"group.id": ""},
        defaults={"client.id": "ours", "check.crcs": "false"},
    )
    shipped = pickle.dumps(config)
    assert b"hush" not in shipped
    assert "hush" not in repr(config)
    there = pickle.loads(shipped)
    assert there == config
    settings = consumer_settings(there.properties())
    assert settings.sasl is not None
    assert settings.sasl.password is not None
    assert settings.sasl.password.reveal() == "hush"
    assert there.properties() | {"sasl.password": "hush"} == {
        **LOGIN,
        "bootstrap.servers": "b:1",
        "client.id": "file",
        "check.crcs": "false",
        "fetch.min.bytes": "9",
    }
    file.write_text("bootstrap.servers=c:1\n")  # as after a renewed password
    assert there.properties()["bootstrap.servers"] == "c:1"


def test_options_win_over_the_file(file: Path) -> None:
    texts = {**SERVERS, "propertiesFile": str(file), "kafka.client.id": "option"}
    options = FormatOptions(texts, NAMES)
    properties = options.client_config("producer", {}).properties()
    assert (properties["bootstrap.servers"], properties["client.id"]) == ("a:1", "option")
    assert properties["linger.ms"] == "7"


def test_what_is_wrong_with_the_file(file: Path) -> None:
    options = FormatOptions({"propertiesFile": str(file)}, NAMES)
    with pytest.raises(UsageError, match="not here"):
        options.client_config("producer", {"linger.ms": "not here"})
    file.write_text("linger.ms=7\n")
    with pytest.raises(UsageError, match="must be specified"):
        options.client_config("producer", {})
    file.write_text("bootstrap.servers=b:1\nlinger.ms=soon\n")
    with pytest.raises(ConfigError, match=r"linger\.ms"):
        options.client_config("producer", {})
    file.unlink()
    with pytest.raises(ConfigError, match=r"file cannot be read on .*No such file"):
        options.client_config("producer", {})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("startingOffset", "startingOffsets"),
        ("topik", "topic"),
        ("propertyFile", "propertiesFile"),
        ("bootstrap.servers", "kafka.bootstrap.servers"),
        ("security_protocol", "kafka.security.protocol"),
        ("kafak.bootstrap.servers", "kafka.bootstrap.servers"),
    ],
)
def test_a_misspelt_name_is_refused(name: str, meant: str) -> None:
    with pytest.raises(UsageError) as raised:
        FormatOptions({**SERVERS, name: "x"}, NAMES, ["path"]).check_names()
    assert str(raised.value) == f"unknown option '{name.lower()}'; did you mean '{meant}'?"


def test_a_name_that_nobody_knows_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    texts = {"zzzzz": "1", "checkpointLocation": "x", "topic": "t"}
    with caplog.at_level(logging.DEBUG, "kafka_fast"):
        for _ in range(2):
            FormatOptions(texts, NAMES, ["checkpointLocation", "topic"]).check_names()
    assert {(record.levelname, record.getMessage()) for record in caplog.records} == {
        ("WARNING", "the option 'zzzzz' is not known and is ignored"),
        ("DEBUG", "the option 'checkpointlocation' means nothing here"),
    }
    assert sum(record.levelname == "WARNING" for record in caplog.records) == 1


def test_only_the_options_of_a_query_are_read() -> None:
    with pytest.raises(LookupError):
        FormatOptions({}, NAMES).find("other", text_of)
