"""The settings of topics: their names, types, defaults and bounds, as Kafka 4.4 has them.

The broker takes all of them. Few change what it does (`topics.TopicConfig`); the others are kept,
so that clients can read what they have set.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka_fast.errors import InvalidConfig


class Kind(enum.IntEnum):
    """The type of a setting, as Kafka's `config_type`."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


_DYNAMIC_TOPIC_CONFIG, _DEFAULT_CONFIG = 1, 5

_LIMITS = {Kind.INT: 2**31, Kind.LONG: 2**63}
_LONG_MAX = str(2**63 - 1)
_WHOLE = re.compile(r"[+-]?[0-9]{1,50}", re.ASCII)  # Python refuses to read thousands of digits
_THROTTLED = re.compile(r"\*|([0-9]+:[0-9]+(,[0-9]+:[0-9]+)*)?", re.ASCII)


class TopicSetting(NamedTuple):
    """A setting of topics."""

    kind: Kind
    default: str
    low: float | None = None
    """The least number; None: any."""
    high: float | None = None
    words: tuple[str, ...] = ()
    """The values, or the elements of a list; none: any."""


_BOOLEAN = TopicSetting(Kind.BOOLEAN, "false", words=("true", "false"))
_THROTTLE = TopicSetting(Kind.LIST, "")
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

TOPIC_SETTINGS: Mapping[str, TopicSetting] = {
    "cleanup.policy": TopicSetting(Kind.LIST, "delete", words=("compact", "delete")),
    "compression.gzip.level": TopicSetting(Kind.INT, "-1", -1, 9),
    "compression.lz4.level": TopicSetting(Kind.INT, "9", 1, 17),
    "compression.type": TopicSetting(Kind.STRING, "producer", words=_CODECS),
    "compression.zstd.level": TopicSetting(Kind.INT, "3", -131072, 22),
    "delete.retention.ms": TopicSetting(Kind.LONG, "86400000", 0),
    "errors.deadletterqueue.group.enable": _BOOLEAN,
    "file.delete.delay.ms": TopicSetting(Kind.LONG, "60000", 0),
    "flush.messages": TopicSetting(Kind.LONG, _LONG_MAX, 1),
    "flush.ms": TopicSetting(Kind.LONG, _LONG_MAX, 0),
    "follower.replication.throttled.replicas": _THROTTLE,
    "index.interval.bytes": TopicSetting(Kind.INT, "4096", 0),
    "leader.replication.throttled.replicas": _THROTTLE,
    "local.retention.bytes": TopicSetting(Kind.LONG, "-2", -2),
    "local.retention.ms": TopicSetting(Kind.LONG, "-2", -2),
    "max.compaction.lag.ms": TopicSetting(Kind.LONG, _LONG_MAX, 1),
    "max.decompressed.message.bytes": TopicSetting(Kind.INT, "2147483639", 1),
    "max.message.bytes": TopicSetting(Kind.INT, "1048588", 0),
    "message.timestamp.after.max.ms": TopicSetting(Kind.LONG, "3600000", 0),
    "message.timestamp.before.max.ms": TopicSetting(Kind.LONG, _LONG_MAX, 0),
    "message.timestamp.type": TopicSetting(
        Kind.STRING, "CreateTime", words=("CreateTime", "LogAppendTime")
    ),
    "min.cleanable.dirty.ratio": TopicSetting(Kind.DOUBLE, "0.5", 0, 1),
    "min.compaction.lag.ms": TopicSetting(Kind.LONG, "0", 0),
    "min.insync.replicas": TopicSetting(Kind.INT, "1", 1),
    "preallocate": _BOOLEAN,
    "remote.copy.lag.bytes": TopicSetting(Kind.LONG, "-1", -1),
    "remote.copy.lag.ms": TopicSetting(Kind.LONG, "0", -1),
    "remote.log.copy.disable": _BOOLEAN,
    "remote.log.delete.on.disable": _BOOLEAN,
    "remote.storage.enable": _BOOLEAN,
    "retention.bytes": TopicSetting(Kind.LONG, "-1"),
    "retention.ms": TopicSetting(Kind.LONG, "604800000", -1),
    "segment.bytes": TopicSetting(Kind.INT, "1073741824", 1048576),
    "segment.index.bytes": TopicSetting(Kind.INT, "10485760", 4),
    "segment.jitter.ms": TopicSetting(Kind.LONG, "0", 0),
    "segment.ms": TopicSetting(Kind.LONG, "604800000", 1),
    "unclean.leader.election.enable": _BOOLEAN,
}


def read_settings(given: Mapping[str, str | None]) -> dict[str, str]:
    """Return all settings of a topic: those of a request over the defaults.

    Raises:
        InvalidConfig: Kafka does not know a setting, or does not take its value.
    """
    texts = {name: setting.default for name, setting in TOPIC_SETTINGS.items()}
    for name, value in given.items():
        setting = TOPIC_SETTINGS.get(name)
        if setting is None:
            raise InvalidConfig(f"Kafka has no topic setting {name!r}")
        if value is None:
            raise InvalidConfig(f"null value for the topic setting {name!r}")
        texts[name] = value.strip()
        problem = _problem_of(name, setting, texts[name])
        if problem is not None:
            raise InvalidConfig(f"{name}={texts[name]!r} {problem}")
    if texts["remote.storage.enable"].lower() == "true":
        raise InvalidConfig("this broker has no remote storage (remote.storage.enable)")
    if int(texts["min.compaction.lag.ms"]) > int(texts["max.compaction.lag.ms"]):
        raise InvalidConfig("min.compaction.lag.ms is above max.compaction.lag.ms")
    return texts


def config_source(name: str, value: str) -> int:
    """Return where a topic's value for a setting comes from, as Kafka's `config_source`."""
    return _DEFAULT_CONFIG if value == TOPIC_SETTINGS[name].default else _DYNAMIC_TOPIC_CONFIG


def elements_of(text: str) -> list[str]:
    """Return the elements of a list."""
    return [element.strip() for element in text.split(",")] if text else []


def _problem_of(name: str, setting: TopicSetting, text: str) -> str | None:
    """Return why Kafka does not take a value, None: it does."""
    match setting.kind:
        case Kind.BOOLEAN:
            return _strange_to([text.lower()], setting)
        case Kind.STRING:
            return _strange_to([text], setting)
        case Kind.LIST if setting is _THROTTLE:
            return None if _THROTTLED.fullmatch(text) else "is no list of partition:node"
        case Kind.LIST:
            return _strange_to(elements_of(text), setting)
    number = _number_of(setting.kind, text)
    if number is None:
        return "is not a number"
    if setting.low is not None and number < setting.low:
        return f"is below {setting.low}"
    if setting.high is not None and number > setting.high:
        return f"is above {setting.high}"
    if name == "compression.gzip.level" and number == 0:
        return "is neither -1 nor 1 to 9"
    return None


def _strange_to(elements: Iterable[str], setting: TopicSetting) -> str | None:
    strange = [element for element in elements if element not in setting.words]
    return f"is not one of {', '.join(setting.words)}" if strange else None


def _number_of(kind: Kind, text: str) -> float | None:
    """Return the number that a text stands for; None: none of its kind."""
    if kind is Kind.DOUBLE:
        try:
            return float(text)
        except ValueError:
            return None
    number = int(text) if _WHOLE.fullmatch(text) else None
    limit = _LIMITS[kind]
    return None if number is None or not -limit <= number < limit else number
