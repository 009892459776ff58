"""The configuration: one table of properties, and all that is read from it.

    what the user gave ── normalize ──> Config (canonical names, checked values, defaults)
                       ── producer_settings ──> ProducerSettings (typed, without contradictions)
                       ── consumer_settings ──> ConsumerSettings
                       ── admin_settings ──> AdminSettings
    KEYS ── reference_page ──> docs/configuration.md

Names and defaults are those of Kafka's Java client 4.x; where ours differ, the table says why.
Standard library only: nothing here knows the client that it configures.
"""

from __future__ import annotations

from kafka_fast.config._address import Address, parse_addresses
from kafka_fast.config._admin_settings import AdminSettings, admin_settings
from kafka_fast.config._consumer_settings import (
    CLASSIC,
    CONSUMER_PROTOCOL,
    EARLIEST,
    LATEST,
    NONE,
    ConsumerSettings,
    OffsetReset,
    consumer_settings,
)
from kafka_fast.config._given import Properties, check_mapping, shown
from kafka_fast.config._key import Alias, Key, ValueKind
from kafka_fast.config._properties_file import read_properties
from kafka_fast.config._reference import as_written, reference_entry, reference_page
from kafka_fast.config._settings import (
    CommonSettings,
    Partitioner,
    ProducerSettings,
    producer_settings,
)
from kafka_fast.config._values import why_unsendable
from kafka_fast.config.security._resolve_security import warn_of_weakness
from kafka_fast.config.security._security_settings import (
    OidcSettings,
    SaslSettings,
    Store,
    TlsSettings,
)
from kafka_fast.config.spelling._names import ConsumerConfig, ProducerConfig
from kafka_fast.config.spelling._normalize import (
    KEYS,
    Config,
    conceal,
    find_key,
    normalize,
    own_key,
    peek,
)

__all__ = [
    "CLASSIC",
    "CONSUMER_PROTOCOL",
    "EARLIEST",
    "KEYS",
    "LATEST",
    "NONE",
    "Address",
    "AdminSettings",
    "Alias",
    "CommonSettings",
    "Config",
    "ConsumerConfig",
    "ConsumerSettings",
    "Key",
    "OffsetReset",
    "OidcSettings",
    "Partitioner",
    "ProducerConfig",
    "ProducerSettings",
    "Properties",
    "SaslSettings",
    "Store",
    "TlsSettings",
    "ValueKind",
    "admin_settings",
    "as_written",
    "check_mapping",
    "conceal",
    "consumer_settings",
    "find_key",
    "normalize",
    "own_key",
    "parse_addresses",
    "peek",
    "producer_settings",
    "read_properties",
    "reference_entry",
    "reference_page",
    "shown",
    "warn_of_weakness",
    "why_unsendable",
]
