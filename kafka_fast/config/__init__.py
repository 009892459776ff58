"""The configuration: one table of properties, and all that is read from it.

    what the user gave ── normalize ──> Config (canonical names, checked values, defaults)
                       ── producer_settings ──> ProducerSettings (typed, without contradictions)
    KEYS ── reference_page ──> docs/configuration.md

Names and defaults are those of Kafka's Java client 4.x; where ours differ, the table says why.
Standard library only: nothing here knows the client that it configures.
"""

from __future__ import annotations

from kafka_fast.config._address import Address, parse_addresses
from kafka_fast.config._key import Alias, Key, Kind
from kafka_fast.config._names import ConsumerConfig, ProducerConfig
from kafka_fast.config._normalize import KEYS, Config, find_key, normalize, redacted
from kafka_fast.config._reference import as_written, reference_entry, reference_page
from kafka_fast.config._settings import (
    CommonSettings,
    Partitioner,
    ProducerSettings,
    producer_settings,
)

__all__ = [
    "KEYS",
    "Address",
    "Alias",
    "CommonSettings",
    "Config",
    "ConsumerConfig",
    "Key",
    "Kind",
    "Partitioner",
    "ProducerConfig",
    "ProducerSettings",
    "as_written",
    "find_key",
    "normalize",
    "parse_addresses",
    "producer_settings",
    "redacted",
    "reference_entry",
    "reference_page",
]
