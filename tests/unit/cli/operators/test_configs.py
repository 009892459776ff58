"""`kafka-fast configs` and `topics alter`; the embedded broker alters nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka_fast.admin import (
    AlterConfigOp,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
)
from kafka_fast.cli.main import main
from kafka_fast.errors import InvalidConfig, UnknownTopicOrPartition
from kafka_fast.secret import Secret
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.unit.cli.operators.scripted_admin import ScriptedAdmin, answered, replace_admin

ORDERS, AUDIT = (ConfigResource(ConfigResourceType.TOPIC, name) for name in ("orders", "audit"))
DEFAULTS = ConfigResource(ConfigResourceType.BROKER, "")
RETENTION = ConfigEntry(
    "retention.ms",
    "1000",
    ConfigSource.DYNAMIC_TOPIC_CONFIG,
    is_read_only=False,
    is_sensitive=False,
    synonyms=(
        ConfigSynonym("retention.ms", "1000", ConfigSource.DYNAMIC_TOPIC_CONFIG),
        ConfigSynonym("log.retention.hours", None, ConfigSource.DEFAULT_CONFIG),
    ),
    type=ConfigType.LONG,
)
POLICY = ConfigEntry("cleanup.policy", "delete", ConfigSource.DEFAULT_CONFIG, False, False)
SECRET = ConfigEntry("ssl.key.password", None, ConfigSource.STATIC_BROKER_CONFIG, True, True)


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> ScriptedAdmin:
    return replace_admin(monkeypatch)


def test_describe(admin: ScriptedAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    entries = {"retention.ms": RETENTION, "cleanup.policy": POLICY}
    gone = UnknownTopicOrPartition("there is no such topic")
    admin.answers["describe_configs"] = answered({ORDERS: entries}, {AUDIT: gone})
    words = ["configs", "describe", "topics", "orders", "audit"]
    assert main(words) == 1
    told = capsys.readouterr()
    assert told.out == (
        "NAME      SETTING         VALUE    SOURCE\n"
        "orders    retention.ms    1000     DYNAMIC_TOPIC_CONFIG\n"
    )
    assert told.err == f"kafka-fast: {gone}\n"
    assert admin.calls == [("describe_configs", ([ORDERS, AUDIT],), {"include_synonyms": True})]
    assert main([*words, "--all", "--setting", "cleanup.policy"]) == 1
    assert capsys.readouterr().out.splitlines()[1].split() == [
        "orders", "cleanup.policy", "delete", "DEFAULT_CONFIG",
    ]  # fmt: skip
    assert main([*words, "-o", "wide"]) == 1
    assert (
        capsys.readouterr()
        .out.splitlines()[1]
        .endswith(
            "LONG    no           DYNAMIC_TOPIC_CONFIG:retention.ms=1000 "
            "DEFAULT_CONFIG:log.retention.hours=****"
        )
    )
    assert main([*words, "-o", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [error["name"] for error in report.pop("errors")] == ["audit"]
    synonyms = [
        {"name": "retention.ms", "value": "1000", "source": "DYNAMIC_TOPIC_CONFIG"},
        {"name": "log.retention.hours", "value": None, "source": "DEFAULT_CONFIG"},
    ]
    setting = {
        "name": "retention.ms",
        "value": "1000",
        "source": "DYNAMIC_TOPIC_CONFIG",
        "type": "LONG",
        "read_only": False,
        "sensitive": False,
        "synonyms": synonyms,
    }
    assert report == {"kind": "topic", "resources": [{"name": "orders", "configs": [setting]}]}


def test_what_is_secret(admin: ScriptedAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    broker = ConfigResource(ConfigResourceType.BROKER, "1")
    admin.answers["describe_configs"] = answered({broker: {"ssl.key.password": SECRET}})
    assert main(["configs", "describe", "broker", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[2] == "****"


def test_where_nothing_is_set(admin: ScriptedAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.answers["describe_configs"] = answered({DEFAULTS: {"cleanup.policy": POLICY}})
    assert main(["configs", "describe", "broker-defaults"]) == 0
    assert capsys.readouterr().err == "kafka-fast: nothing is set there\n"
    assert main(["configs", "describe", "broker-defaults", "--all"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("broker-defaults    cleanup.policy")


def test_all_of_a_kind(admin: ScriptedAdmin) -> None:
    group = ConfigResource(ConfigResourceType.GROUP, "audit")
    admin.answers |= {
        "list_topics": {"orders": None, "audit": None},
        "list_config_resources": [group],
        "describe_configs": answered({}),
    }
    assert main(["configs", "describe", "topic"]) == 0
    assert main(["configs", "describe", "group"]) == 0
    assert [args[0] for name, args, _ in admin.calls if name == "describe_configs"] == [
        [AUDIT, ORDERS],
        [group],
    ]


def test_a_topic_of_the_embedded_broker(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedKafka(auto_create=False) as kafka:
        kafka.create_topic("orders", 1)
        words = ["configs", "describe", "topic", "--all", "-b", kafka.bootstrap, "-o", "json"]
        assert main(words) == 0
        (resource,) = json.loads(capsys.readouterr().out)["resources"]
        assert "retention.ms" in {entry["name"] for entry in resource["configs"]}
        assert main(["configs", "describe", "broker", "-b", kafka.bootstrap]) in (0, 1)


# ---- alter ----


def test_alter(admin: ScriptedAdmin, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "secret"
    file.write_text("hidden\n")
    refused = InvalidConfig("not a number")
    admin.answers["incremental_alter_configs"] = answered({ORDERS: None}, {AUDIT: refused})
    words = ["configs", "alter", "topic", "orders", "audit", "--set", "a=1", "--set", "b=x=y"]
    words += ["--delete", "c", "--append", "d=1,2", "--subtract", "e=3"]
    words += ["--set-from", f"x.password={file}"]
    assert main(words) == 1
    told = capsys.readouterr()
    assert [line.split() for line in told.out.splitlines()] == [
        ["NAME", "SETTINGS", "OUTCOME"],
        ["orders", "a,b,c,d,e,x.password", "altered"],
    ]
    assert told.err == f"kafka-fast: {refused}\n"
    ((_, (changes,), options),) = admin.calls
    assert options == {"validate_only": False}
    assert changes[ORDERS] == changes[AUDIT]
    read = changes[ORDERS].pop(2)
    assert isinstance(read.value, Secret)
    assert (read.name, read.value.reveal()) == ("x.password", "hidden")
    kinds = AlterConfigOpType
    assert changes[ORDERS] == [
        AlterConfigOp("a", "1"),
        AlterConfigOp("b", "x=y"),
        AlterConfigOp("c", None, kinds.DELETE),
        AlterConfigOp("d", "1,2", kinds.APPEND),
        AlterConfigOp("e", "3", kinds.SUBTRACT),
    ]


def test_alter_the_defaults(admin: ScriptedAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.answers["incremental_alter_configs"] = answered({DEFAULTS: None})
    words = ["configs", "alter", "broker-defaults", "--set", "a=1", "--dry-run", "-o", "json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out) == {
        "dry_run": True,
        "kind": "broker-defaults",
        "resources": [{"name": "broker-defaults", "outcome": "altered", "configs": ["a"]}],
    }
    ((_, _, options),) = admin.calls
    assert options == {"validate_only": True}


def test_alter_topics(admin: ScriptedAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    gone = UnknownTopicOrPartition("there is no such topic")
    admin.answers["incremental_alter_configs"] = answered({ORDERS: None}, {AUDIT: gone})
    words = ["topics", "alter", "orders", "audit", "--config", "a=1", "--delete-config", "b"]
    assert main([*words, "-o", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [error["topic"] for error in report.pop("errors")] == ["audit"]
    assert report == {
        "dry_run": False,
        "topics": [{"topic": "orders", "outcome": "altered", "configs": ["a", "b"]}],
    }
    ((_, (changes,), _),) = admin.calls
    assert changes[ORDERS] == [
        AlterConfigOp("a", "1"),
        AlterConfigOp("b", None, AlterConfigOpType.DELETE),
    ]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("describe broker one", "'one' is no broker"),
        ("describe broker-defaults 1", "they take no name"),
        ("describe topic a*", "'a*' is no name of a topic"),
        ("alter topic --set a=1", "kafka-fast configs alter topic NAME"),
        ("alter topic orders", "say what is to become of which settings"),
        ("alter topic orders --set a=1 --delete a", "a is given twice"),
        ("alter broker 1 --set ssl.key.password=x", "--set-from ssl.key.password=FILE"),
        ("alter broker 1 --set listener.name.a.sasl.jaas.config=x", "put listener.name.a"),
    ],
)
def test_bad_arguments(
    admin: ScriptedAdmin, words: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["configs", *words.split()]) == 2
    assert text in capsys.readouterr().err
    assert admin.calls == []


def test_an_unknown_kind(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["configs", "describe", "users"])
    assert caught.value.code == 2
    assert "broker-defaults" in capsys.readouterr().err
