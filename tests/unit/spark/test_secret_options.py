"""Secrets among the options of a source or a sink: written as for Java, shown by nobody."""

from __future__ import annotations

import functools
import pickle
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kafka_fast.config import consumer_settings, producer_settings
from kafka_fast.errors import ConfigError, UsageError
from kafka_fast.spark.sink.options import SinkOptions, sink_options
from kafka_fast.spark.source.options import SourceOptions, source_options

LEAST = {"kafka.bootstrap.servers": "a:9092", "subscribe": "t"}
READERS = [source_options, functools.partial(sink_options, stream=True)]

Read = Callable[[Mapping[str, str]], SourceOptions | SinkOptions]


@pytest.mark.parametrize("prefix", ["", "kafkashaded."])
@pytest.mark.parametrize(
    ("read", "settings_of"),
    list(zip(READERS, (consumer_settings, producer_settings), strict=True)),
)
def test_security_is_written_as_for_java(
    read: Read, settings_of: Callable[[Mapping[str, object]], Any], prefix: str
) -> None:
    module = f"{prefix}org.apache.kafka.common.security.plain.PlainLoginModule"
    options = read(
        {
            **LEAST,
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": f'{module} required username="u" password="hush";',
        }
    )
    settings = settings_of(options.config.properties())
    assert settings.sasl is not None
    assert settings.sasl.username == "u"
    assert "hush" not in repr(options)
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize("wrong", [{"kafka.sasl.mechanism": "NO"}, {"propertiesFile": ""}])
@pytest.mark.parametrize("read", READERS)
def test_no_error_shows_a_secret(read: Read, wrong: dict[str, str]) -> None:
    with pytest.raises((ConfigError, UsageError)) as raised:
        read({**LEAST, "kafka.sasl.password": "hush", **wrong})
    lines = traceback.TracebackException.from_exception(raised.value, capture_locals=True).format()
    frames = [line for line in lines if "/kafka_fast/" in line]
    assert frames
    assert not any("hush" in frame for frame in frames)
