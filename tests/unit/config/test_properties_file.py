"""Files of properties: Java's syntax, and what of it is for clients."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_fast import read_properties
from kafka_fast.config import consumer_settings, producer_settings
from kafka_fast.config._properties_file import parse_properties
from kafka_fast.errors import ConfigError

CONFLUENT_CLOUD = """\
# Required connection configs for Kafka producer, consumer, and admin
bootstrap.servers=pkc-1.eu-central-1.aws.confluent.cloud:9092
security.protocol=SASL_SSL
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username='KEY' \
password='canary/secret+==';
sasl.mechanism=PLAIN
# Required for correctness in Apache Kafka clients prior to 2.6
client.dns.lookup=use_all_dns_ips

# Best practice for higher availability in Apache Kafka clients prior to 3.0
session.timeout.ms=45000

# Best practice for Kafka producer to prevent data loss
acks=all

# Required connection configs for Confluent Cloud Schema Registry
schema.registry.url=https://psrc-1.eu-central-1.aws.confluent.cloud
basic.auth.credentials.source=USER_INFO
basic.auth.user.info=SRKEY:canary-registry
"""

LIBRDKAFKA = """\
bootstrap.servers=pkc-1.eu-central-1.aws.confluent.cloud:9092
security.protocol=SASL_SSL
sasl.mechanisms=PLAIN
sasl.username=KEY
sasl.password=canary/secret+==
session.timeout.ms=45000
client.id=ccloud-python-client-1
"""


@pytest.mark.parametrize("text", [CONFLUENT_CLOUD, LIBRDKAFKA])
def test_a_file_of_confluent_cloud_serves_every_client(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kafka_fast")
    path = tmp_path / "client.properties"
    path.write_text(text)
    for settings in (
        producer_settings(read_properties(path)),
        consumer_settings(read_properties(path), {"group_id": "g"}),
        consumer_settings(read_properties(path) | {"group.id": "g"}),
    ):
        assert settings.security_protocol == "SASL_SSL"
        assert settings.sasl is not None
        assert (settings.sasl.mechanism, settings.sasl.username) == ("PLAIN", "KEY")
        assert settings.sasl.password is not None
        assert settings.sasl.password.reveal() == "canary/secret+=="
    assert "canary" not in caplog.text
    assert "without meaning for a producer: session.timeout.ms" in caplog.text
    if text is CONFLUENT_CLOUD:
        assert "schema.registry.url, basic.auth.credentials.source, basic.auth.user.info" in (
            caplog.text
        )


def test_what_only_a_jvm_has_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kafka_fast")
    path = tmp_path / "client.properties"
    path.write_text(
        "key.serializer=org.apache.kafka.common.serialization.StringSerializer\n"
        "value.serializer=io.confluent.kafka.serializers.KafkaAvroSerializer\n"
        "metric.reporters=com.example.Reporter\n"
        "some.tool.of.ours=1\n"
        "ssl.keymanager.algorithm=SunX509\n"
    )
    properties = read_properties(path)
    assert sorted(properties) == ["key.serializer", "ssl.keymanager.algorithm"]
    assert "value.serializer, metric.reporters, some.tool.of.ours" in caplog.text
    producer_settings(properties, {"bootstrap_servers": "a:1"})
    assert "ssl.keymanager.algorithm is accepted and means nothing here" in caplog.text


@pytest.mark.parametrize(
    ("name", "meant"), [("sasl.passwordd", "sasl.password"), ("linger_mss", "linger.ms")]
)
def test_a_misspelt_name_is_an_error(tmp_path: Path, name: str, meant: str) -> None:
    path = tmp_path / "client.properties"
    path.write_text(f"{name}=canary\n")
    with pytest.raises(ConfigError, match=rf"unknown property '{name}'; did you mean '{meant}'"):
        read_properties(path)


def test_what_changes_records_is_refused_by_the_client(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("bootstrap.servers=a:1\ntransaction.two.phase.commit.enable=true\n")
    with pytest.raises(ConfigError, match=r"two\.phase\.commit\.enable: not supported yet"):
        producer_settings(read_properties(path))
    path.write_text("bootstrap.servers=a:1\nenable.auto.offset.store=false\n")
    with pytest.raises(ConfigError, match=r"enable\.auto\.commit=false"):
        consumer_settings(read_properties(path))


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("a=b", "a", "b"),
        ("a:b", "a", "b"),
        ("a b", "a", "b"),
        ("a\t=\t b ", "a", "b "),
        ("  a = b=c", "a", "b=c"),
        ("a ==b", "a", "=b"),
        ("a", "a", ""),
        ("a=", "a", ""),
        ("=b", "", "b"),
        (r"a\=\:\ b=c", "a=: b", "c"),
        ("a=\\\n   b", "a", "b"),
        ("a=x\\\r\n\ty", "a", "xy"),
        ("a=x\\\\\nb=c", "a", "x\\"),
        ("a=x\\\n\n", "a", "x"),
        ("a=x\\", "a", "x"),
        ("a=x\\\n#y", "a", "x#y"),
        ("# c\\\na=b", "a", "b"),
        (r"a=\t\n\r\f\q\"", "a", '\t\n\r\fq"'),
        (r"a=\u0041\uD83D\uDE00", "a", "A\U0001f600"),
        ("a=1\ra=2", "a", "2"),
    ],
)
def test_syntax(text: str, name: str, value: str) -> None:
    properties = parse_properties(text)
    assert isinstance(properties, dict)
    assert properties[name] == value


@pytest.mark.parametrize("text", ["", "\n \n", "#a=b", "  !a=b", "\f# c", "\\\n# c"])
def test_nothing_in_it(text: str) -> None:
    assert parse_properties(text) == {}


def test_malformed_escape_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("a=b\nsasl.password=canary\\u12\n")
    with pytest.raises(ConfigError, match="line 2: ") as caught:
        read_properties(path)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "iso-8859-1"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes("client.id=Zürich".encode(encoding))
    assert read_properties(str(path)) == {"client.id": "Zürich"}


def written(text: str, is_name: bool) -> str:
    """Return a text as java.util.Properties.store writes it."""
    out = []
    for pos, character in enumerate(text):
        if character in "\t\n\r\f":
            out.append("\\" + {"\t": "t", "\n": "n", "\r": "r", "\f": "f"}[character])
        elif character in "=:#!\\" or (character == " " and (is_name or pos == 0)):
            out.append("\\" + character)
        elif character < " " or character > "~":
            units = character.encode("utf-16-be").hex().upper()
            out.append("".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)))
        else:
            out.append(character)
    return "".join(out)


@given(st.dictionaries(st.text(), st.text(), max_size=5))
def test_what_java_writes_is_read(properties: dict[str, str]) -> None:
    lines = [f"{written(name, True)}={written(value, False)}" for name, value in properties.items()]
    assert parse_properties("#Mon Nov 23\n" + "\n".join(lines)) == properties


@given(st.text(alphabet="ab =:\\\n\r\t#!u0", max_size=40))
def test_any_text_is_read(text: str) -> None:
    properties = parse_properties(text)
    assert isinstance(properties, (dict, int))
