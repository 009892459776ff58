"""The typed settings: the same as the table, in seconds, and without contradictions."""

from __future__ import annotations

import logging
import math
import pickle

import pytest

from kafka_fast.config import (
    KEYS,
    CommonSettings,
    Key,
    ProducerSettings,
    ValueKind,
    admin_settings,
    consumer_settings,
    producer_settings,
)
from kafka_fast.errors import ConfigError
from kafka_fast.serialization import IntegerSerializer, StringSerializer
from kafka_fast.values import Value, field_names

BOOTSTRAP = {"bootstrap.servers": "localhost:9092"}


def _fields(settings: type[Value]) -> set[str]:
    return set(field_names(settings))


def means_something(key: Key) -> bool:
    return not (key.pending or key.ignored or (key.refused and not key.choices))


def test_fields_are_the_table() -> None:
    supported = [key for key in KEYS.values() if means_something(key)]
    common = {key.field or key.field_name for key in supported if len(key.clients) == 3}
    producer = {key.field or key.field_name for key in supported if "producer" in key.clients}
    assert _fields(CommonSettings) == common
    assert _fields(ProducerSettings) == producer


def test_an_admin_client_asks_brokers_or_controllers() -> None:
    controllers = {"bootstrap.controllers": "c:9093,d"}
    settings = admin_settings(controllers)
    assert settings.bootstrap_servers == (("c", 9093), ("d", 9092))
    assert settings.uses_controllers
    assert not admin_settings(BOOTSTRAP).uses_controllers
    with pytest.raises(ConfigError, match="takes one of them"):
        admin_settings({**BOOTSTRAP, **controllers})
    with pytest.raises(ConfigError, match=r"bootstrap\.servers or bootstrap\.c"):
        admin_settings({})
    for settings_of in (producer_settings, consumer_settings):
        with pytest.raises(ConfigError, match=r"bootstrap\.servers is required"):
            settings_of(controllers)


def test_every_duration_is_there_in_seconds() -> None:
    settings = producer_settings(BOOTSTRAP)
    for name in _fields(ProducerSettings):
        if name.endswith("_ms"):
            assert getattr(settings, name.removesuffix("_ms")) == getattr(settings, name) / 1000


def test_for_ever() -> None:
    settings = producer_settings(BOOTSTRAP, {"connections_max_idle_ms": -1})
    assert settings.connections_max_idle == math.inf


def test_types_of_the_fields_fit_the_kinds() -> None:
    settings = producer_settings(BOOTSTRAP)
    types = {
        ValueKind.BOOLEAN: bool,
        ValueKind.INT: int,
        ValueKind.STRING: str,
        ValueKind.ADDRESSES: tuple,
    }
    for key in KEYS.values():
        if key.name == "transactional.id":
            assert settings.transactional_id is None  # the one text that may be missing
        elif key.kind in types and key.field_name in _fields(ProducerSettings):
            assert type(getattr(settings, key.field_name)) is types[key.kind], key.name


def test_frozen_and_picklable() -> None:
    settings = producer_settings(BOOTSTRAP, {"value_serializer": "LongSerializer"})
    assert pickle.loads(pickle.dumps(settings)) == settings
    with pytest.raises(AttributeError, match="linger_ms of ProducerSettings cannot be set"):
        settings.linger_ms = 5  # type: ignore[misc]
    assert not hasattr(settings, "__dict__")


def test_bootstrap_servers_are_required() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is required"):
        producer_settings({"linger.ms": 1})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"acks": 1}, "acks=1"),
        ({"acks": 0}, "acks=0"),
        ({"retries": 0}, "retries=0"),
        ({"max.in.flight": 6}, "connection=6"),
    ],
)
def test_idempotence_yields_or_refuses(
    given: dict[str, object], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "kafka_fast.config"):
        assert not producer_settings({**BOOTSTRAP, **given}).enable_idempotence
    assert len(caplog.records) == 1
    assert text in caplog.text
    with pytest.raises(ConfigError, match=r"enable\.idempotence=true contradicts") as caught:
        producer_settings({**BOOTSTRAP, **given, "enable.idempotence": True})
    assert text in str(caught.value)
    off = producer_settings({**BOOTSTRAP, **given, "enable.idempotence": False})
    assert not off.enable_idempotence


def test_idempotent_by_default() -> None:
    assert producer_settings(BOOTSTRAP).enable_idempotence


def test_delivery_timeout(caplog: pytest.LogCaptureFixture) -> None:
    raised = producer_settings(BOOTSTRAP, {"linger_ms": 100_000})
    assert raised.delivery_timeout == 130.0
    assert len(caplog.records) == 1
    with pytest.raises(ConfigError, match=r"delivery\.timeout\.ms=9.*5 \+ 30000 = 30005"):
        producer_settings(BOOTSTRAP, {"delivery_timeout_ms": 9})
    exact = producer_settings(BOOTSTRAP, {"delivery_timeout_ms": 30_005})
    assert exact.delivery_timeout_ms == 30_005


def test_backoff(caplog: pytest.LogCaptureFixture) -> None:
    constant = producer_settings(BOOTSTRAP, {"reconnect_backoff_ms": 20})
    assert constant.reconnect_backoff_max_ms == 20
    both = producer_settings(BOOTSTRAP, {"reconnect_backoff_ms": 20, "reconnect_backoff_max_ms": 9})
    assert both.reconnect_backoff_max_ms == 20
    assert "reconnect.backoff.ms=20" in caplog.text
    assert producer_settings(BOOTSTRAP, {"retry_backoff_ms": 5000}).retry_backoff_max_ms == 5000


def test_serializers() -> None:
    settings = producer_settings(
        {
            **BOOTSTRAP,
            "key.serializer": "org.apache.kafka.common.serialization.StringSerializer",
            "value.serializer": str.encode,
            "serializer.encoding": "latin-1",
        }
    )
    assert settings.key_serializer == StringSerializer("latin-1")
    assert settings.value_serializer is not None
    assert settings.value_serializer.serialize("t", "ä", None) == "ä".encode()
    mine = IntegerSerializer()
    assert producer_settings(BOOTSTRAP, {"key_serializer": mine}).key_serializer is mine
    with pytest.raises(ConfigError, match=r"key\.serializer: 'FloatSerializer' is not one of Str"):
        producer_settings(BOOTSTRAP, {"key_serializer": "FloatSerializer"})
    with pytest.raises(ConfigError, match=r"key\.serializer: expected a callable"):
        producer_settings(BOOTSTRAP, {"key_serializer": StringSerializer})


def test_level_of_the_chosen_codec() -> None:
    assert producer_settings(BOOTSTRAP).compression_level == 0
    zstd = producer_settings(BOOTSTRAP, {"compression_type": "zstd", "compression_zstd_level": -5})
    assert zstd.compression_level == -5
    for properties, level in (
        ({"compression.type": "gzip", "compression.gzip.level": -1}, 6),
        ({"compression.type": "gzip"}, 1),
        ({"compression.type": "lz4", "compression.lz4.level": 17}, 12),
        ({"compression.type": "zstd", "compression.zstd.level": -99}, -7),
        ({"compression.type": "snappy"}, 0),
    ):
        assert producer_settings({**BOOTSTRAP, **properties}).compression_level == level
