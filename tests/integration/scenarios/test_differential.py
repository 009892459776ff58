"""Random requests, the same to real Kafka and to the embedded broker: the answers must agree."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from kafka_fast._wire._checksum import crc32c
from kafka_fast.record import Codec
from kafka_fast.testing._kafka.real_kafka import RealKafka
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.integration.scenarios.steps import list_offset, new_producer, new_topic
from tests.integration.scenarios.wire import WireClient, batch, changed, connected

SEEDS = range(4)
STEPS = 150


class Side(NamedTuple):
    """One broker and what the test has there."""

    client: WireClient
    topic: str
    producers: list[int]  # ids differ between the brokers, their order does not


@pytest.fixture(scope="module")
def addresses(real_kafka: RealKafka) -> Iterator[list[str]]:
    """Real Kafka and ours."""
    with EmbeddedKafka(auto_create=False) as kafka:
        yield [real_kafka.bootstrap, kafka.bootstrap]


@pytest.fixture
def sides(addresses: list[str]) -> Iterator[list[Side]]:
    """A new topic and two producers on each broker."""
    made = []
    for address in addresses:
        client = WireClient(address)
        producers = [new_producer(client) for _ in range(2)]
        made.append(Side(client, new_topic(client), producers))
    yield made
    for side in made:
        side.client.close()


def produced(side: Side, records: bytes, partition: int = 0) -> tuple[int, int, int]:
    """Produce and return what must agree."""
    answer = side.client.produce(side.topic, records, partition=partition)
    return answer.error_code, answer.base_offset, answer.log_start_offset


@pytest.mark.parametrize("seed", SEEDS)
def test_sequences_and_epochs(sides: list[Side], seed: int) -> None:
    source = random.Random(seed)
    position = {0: (3, 0), 1: (3, 0)}  # producer -> epoch and next sequence, as it should be
    agreed: list[tuple[int, ...]] = []
    for _ in range(STEPS):
        producer = source.randrange(2)
        epoch, sequence = position[producer]
        count = source.randint(1, 4)
        epoch += source.choices([0, 1, -1], [20, 1, 1])[0]
        sequence += source.choices([0, -1, -4, 1, -10], [12, 2, 2, 1, 1])[0]
        if source.random() < 0.05:
            sequence = 0
        if source.random() < 0.02:
            sequence = 2**31 - source.randint(1, 4)
        epoch, sequence = max(epoch, 0), max(sequence, 0)
        answers = {
            produced(side, batch(count, producer=(side.producers[producer], epoch, sequence)))
            for side in sides
        }
        assert len(answers) == 1, (producer, epoch, sequence, count, agreed[-10:])
        code = answers.pop()[0]
        agreed.append((producer, epoch, sequence, count, code))
        if code == 0:
            position[producer] = (epoch, (sequence + count) % 2**31)
    assert len({code for *_, code in agreed}) >= 3


# Field -> values that somebody may write there.
VALUES = {
    "length": [-1, 0, 3, 13, 14, 48, 49, 50, 2**30],
    "magic": [-1, 0, 1, 2, 3, 127],
    "attributes": [0, 1, 2, 3, 4, 5, 6, 7, 0x20, 0x40, 0x80, 0x27],
    "last_offset_delta": [-1, 0, 1, 2, 3, 2**31 - 1],
    "record_count": [-1, 0, 1, 2, 3, 4, 2**31 - 1],
    "first_record_byte": [0, 1, 2, 20, 24, 60, 127, 128, 255],
}


@pytest.mark.parametrize("seed", SEEDS)
def test_headers_with_wrong_fields(sides: list[Side], seed: int) -> None:
    source = random.Random(seed)
    codes = set()
    for _ in range(STEPS):
        plain = batch(3, timestamp=1000, codec=source.choice([Codec.NONE, Codec.NONE, Codec.GZIP]))
        names = source.sample(sorted(VALUES), source.choice([1, 1, 2]))
        fields = {name: source.choice(VALUES[name]) for name in names}
        records = changed(plain, **fields)
        theirs, ours = (produced(side, records) for side in sides)
        if len(fields) == 1:
            assert theirs == ours, fields
        assert (theirs[0] == 0) == (ours[0] == 0), fields  # of two faults either may be found
        codes.add(theirs[0])
    assert len(codes) >= 3


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("repair", [False, True], ids=["corrupt", "repaired"])
def test_bytes_that_changed(sides: list[Side], seed: int, repair: bool) -> None:
    source = random.Random(seed)
    plain = batch(3, timestamp=1000, value=b"some value")
    for _ in range(STEPS):
        records = bytearray(plain)
        pos = source.randrange(len(records))
        flipped = 1 << source.randrange(8)
        if pos == 22 and flipped & 0x18:
            continue  # append time and transactions, where the embedded broker is stricter
        records[pos] ^= flipped
        if repair:
            struct.pack_into(">I", records, 17, crc32c(records[21:]))
        theirs, ours = (produced(side, bytes(records))[0] for side in sides)
        # Kafka does not look at the offset deltas of records that are not compressed.
        assert theirs == ours or (theirs == 0 and repair), (pos, flipped, theirs, ours)


@pytest.mark.parametrize("seed", SEEDS)
def test_reading(sides: list[Side], seed: int) -> None:
    source = random.Random(seed)
    for _ in range(20):
        count, timestamp = source.randint(1, 5), source.randrange(10_000)
        codec = source.choice([Codec.NONE, Codec.LZ4])
        records = batch(count, timestamp=timestamp, codec=codec, value=b"x" * source.randrange(99))
        assert len({produced(side, records) for side in sides}) == 1
    for _ in range(STEPS):
        offset = source.randrange(-1, 80)
        limits = {
            "partition_max_bytes": source.randrange(3000),
            "max_bytes": source.randrange(3000),
        }
        answers = [side.client.fetch(side.topic, offset, **limits) for side in sides]
        seen = {
            (one.error_code, one.high_watermark, one.log_start_offset, bytes(one.records or b""))
            for one in answers
        }
        assert len(seen) == 1, (offset, limits)
        timestamp = source.randrange(-6, 11_000)
        listed = [list_offset(side.client, side.topic, timestamp) for side in sides]
        assert listed[0] == listed[1], timestamp


def test_frames_cut_and_stretched(addresses: list[str]) -> None:
    source = random.Random(1)
    for _ in range(60):
        body = struct.pack(
            ">hhih", source.choice([0, 1, 2, 3, 18, 22]), source.randrange(14), 5, -1
        )
        body += source.randbytes(source.randrange(12))
        ends = []
        for address in addresses:
            with connected(address) as client:
                client.send_bytes(struct.pack(">i", len(body)) + body)
                ends.append(client.is_closed())
        # Kafka leaves bytes at the end unread; the embedded broker may be stricter, never laxer.
        assert ends != [True, False], body
