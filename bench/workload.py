"""What is sent and read: the scenarios, and the values that all contenders send alike.

Values look like small JSON events, so that a codec finds in them what it would find in real ones.
A thousand distinct values, and a thousand distinct keys, are used in turn: enough that nothing
can be remembered, few enough that they stay in the cache. For the codecs there are many more,
because zstd finds a value again after a thousand others, and would reward large batches alone.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

DISTINCT = 1000
DISTINCT_COMPRESSED = 50_000
LATENCY_TURNS = 3
"""Runs with one record in flight in each round: where the system puts threads decides much."""
LATENCY_ONCE = ("aiokafka", "kafka-python")
"""Those that are too far behind for that to matter: one run."""
MAX_BLOCK_MS = 10_000
"""max.block.ms of the producer whose loop is watched."""
CITIES = ("Amsterdam", "Berlin", "Cape Town", "Dhaka", "Edmonton", "Fukuoka", "Guayaquil", "Hanoi")


Security: TypeAlias = Mapping[str, str]
"""Properties of TLS and SASL, in names that kafka_fast and librdkafka both take."""

NO_SECURITY: Security = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to produce.

    Attributes:
        name: what the table calls it.
        mode: the call: send, handle (its result kept), nowait, callback, many, table.
        partitions: of the topic.
        value_size: bytes of each value.
        keyed: give each record a key of 8 bytes, which chooses the partition.
        codec: none, gzip, snappy, lz4 or zstd.
    """

    name: str
    mode: str = "send"
    partitions: int = 16
    value_size: int = 100
    keyed: bool = False
    codec: str = "none"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a process of its own."""
        return asdict(self)


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("send"),
        Scenario("send, 1 partition", partitions=1),
        Scenario("handle kept", mode="handle"),
        Scenario("send_nowait", mode="nowait"),
        Scenario("list", mode="many"),
        Scenario("Arrow", mode="table"),
        Scenario("keyed", keyed=True, partitions=64),
        Scenario("callback", mode="callback"),
        Scenario("lz4", codec="lz4"),
        Scenario("zstd", codec="zstd"),
        Scenario("gzip", codec="gzip"),
        Scenario("1000 B", value_size=1000),
    )
}


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to consume.

    Attributes:
        name: what the table calls it.
        mode: the call: poll (many at a time), each (one at a time), values (a list of values),
            arrow (columns, copied), views (columns that refer to what was fetched).
        value_size: bytes of each value.
        codec: none, lz4 or zstd.
    """

    name: str
    mode: str = "poll"
    value_size: int = 100
    codec: str = "none"


READ_PARTITIONS = 16
READINGS = {
    reading.name: reading
    for reading in (
        Reading("poll(500)"),
        Reading("one by one", mode="each"),
        Reading("values()", mode="values"),
        Reading("Arrow copy", mode="arrow"),
        Reading("Arrow view", mode="views"),
        Reading("lz4, poll(500)", codec="lz4"),
        Reading("zstd, poll(500)", codec="zstd"),
        Reading("1000 B, poll(500)", value_size=1000),
        Reading("1000 B, Arrow copy", mode="arrow", value_size=1000),
        Reading("1000 B, Arrow view", mode="views", value_size=1000),
    )
}


def values(size: int, count: int = DISTINCT) -> list[bytes]:
    """Return `count` distinct values, each of exactly `size` bytes."""
    chance = random.Random(20)
    made = []
    for i in range(count):
        text = ""
        while len(text) < size:
            text += (
                f'{{"id":{chance.getrandbits(40)},"n":{i},"city":"{chance.choice(CITIES)}",'
                f'"price":{chance.random():.6f},"ok":{chance.random() < 0.5}}}'
            )
        made.append(text[:size].encode())
    return made


def read_topic(reading: Reading, records: int) -> str:
    """Return the name of the topic that has so many records of this kind, and no more."""
    return f"read-{reading.codec}-{reading.value_size}-{records}"


def values_of(reading: Reading) -> list[bytes]:
    """Return the distinct values of what is read."""
    count = DISTINCT if reading.codec == "none" else DISTINCT_COMPRESSED
    return values(reading.value_size, count)


def keys() -> list[bytes]:
    """Return the distinct keys of eight bytes."""
    chance = random.Random(8)
    return [chance.randbytes(8) for _ in range(DISTINCT)]


def cycled(items: list[bytes], count: int) -> list[bytes]:
    """Return `count` items, the given ones in turn."""
    return (items * (count // len(items) + 1))[:count]
