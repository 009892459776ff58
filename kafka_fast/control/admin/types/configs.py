"""What topics, brokers, groups and other resources are set to."""

from __future__ import annotations

import enum

from kafka_fast.control.admin.types.open_numbers import OpenNumber
from kafka_fast.secret import HIDDEN, Secret
from kafka_fast.values import Value


class ConfigResourceType(OpenNumber):
    """What is configured."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    """The log levels of one broker. Needs Kafka 2.3 (KIP-412)."""
    CLIENT_METRICS = 16
    """A subscription to the metrics of clients. Needs Kafka 3.7 (KIP-714)."""
    GROUP = 32
    """A group. Needs Kafka 4.0 (KIP-848)."""


class ConfigResource(Value):
    """What is configured: a type and a name."""

    type: ConfigResourceType
    name: str
    """Of a broker its id, as text; "" is the default of all brokers of the cluster."""

    def __str__(self) -> str:
        """Return the resource as errors name it: "topic 'orders'"."""
        kind = self.type.name.lower().replace("_", " ")
        if self.type == ConfigResourceType.BROKER and not self.name:
            return "the default of all brokers"
        return f"{kind} {self.name!r}"


class ConfigSource(OpenNumber):
    """Where a value was set."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    """For this broker, while it ran."""
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    """For all brokers, while they ran."""
    STATIC_BROKER_CONFIG = 4
    """In the file with which the broker was started."""
    DEFAULT_CONFIG = 5
    """Nowhere: it is Kafka's default."""
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigType(OpenNumber):
    """Which values a setting takes."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSynonym(Value):
    """A place where the value of a setting may come from."""

    name: str
    """Of the setting there: a topic's retention.ms may come from log.retention.hours."""
    value: str | None
    """None: it is sensitive, or not set."""
    source: ConfigSource


class ConfigEntry(Value):
    """A setting of a resource."""

    name: str
    value: str | None
    """None: it is sensitive, or not set."""
    source: ConfigSource
    """Where the value was set."""
    is_read_only: bool
    """Only a restart changes it."""
    is_sensitive: bool
    """A password or the like: brokers do not tell its value."""
    synonyms: tuple[ConfigSynonym, ...] = ()
    """Where the value may come from, the strongest place first; empty unless asked for."""
    type: ConfigType = ConfigType.UNKNOWN
    """UNKNOWN: the broker is older than 2.6."""
    documentation: str | None = None
    """What the setting is for; None unless asked for."""

    @property
    def is_default(self) -> bool:
        """Whether nobody has set it."""
        return self.source == ConfigSource.DEFAULT_CONFIG


class AlterConfigOpType(enum.IntEnum):
    """What becomes of a setting."""

    SET = 0
    DELETE = 1
    """It goes back to its default."""
    APPEND = 2
    """Add values to a list."""
    SUBTRACT = 3
    """Remove values from a list."""


class AlterConfigOp(Value):
    """A change of one setting. Its value is not shown, because it may be a password."""

    name: str
    """Of the setting."""
    value: str | Secret | None = None
    """Of lists the values with commas between them; None for DELETE only."""
    op: AlterConfigOpType = AlterConfigOpType.SET

    def __repr__(self) -> str:
        shown = None if self.value is None else HIDDEN
        return f"AlterConfigOp(name={self.name!r}, value={shown}, op={self.op!r})"
