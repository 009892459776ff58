"""What a consumer's memory rises by when it meets a batch that decompresses to far too much.

Each consumer is a process of its own. Its memory before the bomb is what it has when it has read a
sound batch of the same codec; the peak since then is the kernel's own count.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from kafka_fast._wire._checksum import crc32c
from kafka_fast.record import Codec, RecordBatchBuilder, compress
from kafka_fast.testing.broker.partitions.log import StoredBatch
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.processes import run

cramjam = pytest.importorskip("cramjam")
lz4_frame = pytest.importorskip("lz4.frame")
zstandard = pytest.importorskip("zstandard")

MIB = 1 << 20
LIMIT = 32 * MIB
"""The default of max.decompressed.batch.bytes."""

BESIDE = 16 * MIB
"""What the consumer may take beside that: the fetched bytes, a decoder's state, its own objects."""

HEADER_SIZE = 61
CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.not_under("address", "its own memory counts as well"),
    pytest.mark.not_under("thread", "its own memory counts as well"),
]

READER = """
import json

def status(name):
    with open("/proc/self/status") as file:
        (line,) = [line for line in file if line.startswith(name + ":")]
    return int(line.split()[1]) * 1024

def outcome_of(consumer):
    try:
        return len(consumer.poll(60))
    except UnreadableBatchError as error:
        return str(error)

found = []
consumer = Consumer(bootstrap_servers=sys.argv[1], auto_offset_reset="earliest")
count = int(sys.argv[3])
consumer.assign([TopicPartition(sys.argv[2], count)])
assert outcome_of(consumer) == 1  # what is loaded at the first use is no batch's
for partition in range(count):
    consumer.assign([])
    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew
    before = status("VmRSS")
    consumer.assign([TopicPartition(sys.argv[2], partition)])
    found.append((outcome_of(consumer), status("VmHWM") - before))
print(json.dumps(found))
consumer.close(0)
"""


class Bomb(NamedTuple):
    """Compressed records, how many they are, and whether they are refused."""

    name: str
    records: bytes
    count: int = 1
    is_refused: bool = True


def stretch(size: int) -> bytes:
    """Bytes that shrink to a sixtieth."""
    noise = random.Random(7)
    return b"".join(noise.randbytes(1024) + bytes(63 * 1024) for _ in range(size // 65536))


def tiny_records(size: int) -> tuple[bytes, int]:
    """Sound records without key and value, as many as fit, and how many they are."""
    out, count = bytearray(), 0
    while len(out) < size - 16:
        delta = varint(count)
        body = b"\0\0" + delta + b"\x01\x01\0"
        out += varint(len(body)) + body
        count += 1
    return bytes(out), count


def varint(value: int) -> bytes:
    value, out = value << 1, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def bombs(codec: Codec) -> Iterator[Bomb]:
    """Batches of all shapes: they give too much, or what is allowed, in a great many records."""
    large = stretch(2 * LIMIT)
    made = compress(codec, large)
    yield Bomb("usual", made)
    for size, is_refused in ((LIMIT // 2, True), (LIMIT // 5, False)):
        records, count = tiny_records(size)
        yield Bomb(f"tiny records, {size}", compress(codec, records), count, is_refused)
    match codec:
        case Codec.GZIP:
            yield Bomb("it declares little", made[:-4] + struct.pack("<I", 1000))
            yield Bomb("it declares much", made[:-4] + b"\xff" * 4)
            yield Bomb("many members", compress(codec, stretch(MIB)) * 200)
        case Codec.SNAPPY:
            yield Bomb("one block", bytes(cramjam.snappy.compress_raw(large)))
            yield Bomb("it declares much", b"\xff\xff\xff\xff\x07" + bytes(1000))
        case Codec.LZ4:
            for linked in (True, False):
                yield Bomb(
                    f"blocks of 4 MiB, linked: {linked}",
                    lz4_frame.compress(
                        large, block_size=lz4_frame.BLOCKSIZE_MAX4MB, block_linked=linked
                    ),
                )
            yield Bomb("it declares its size", lz4_frame.compress(large, store_size=True))
            yield Bomb("many frames", compress(codec, stretch(MIB)) * 200)
        case Codec.ZSTD:
            wide = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
            yield Bomb(
                "a window of 128 MiB",
                zstandard.ZstdCompressor(compression_params=wide).compress(large),
            )
            lies = bytearray(zstandard.ZstdCompressor().compress(large))
            assert struct.unpack_from("<I", lies, 6) == (len(large),)
            struct.pack_into("<I", lies, 6, 1000)
            yield Bomb("it declares little", bytes(lies))
            struct.pack_into("<I", lies, 6, LIMIT)
            yield Bomb("it declares what is allowed", bytes(lies))
            yield Bomb("many frames", compress(codec, stretch(MIB)) * 200)


def batch_of(codec: Codec, bomb: Bomb) -> bytes:
    """Return a batch whose header is sound."""
    builder = RecordBatchBuilder()
    builder.append(None, b"", 0)
    head = bytearray(builder.build()[:HEADER_SIZE])
    struct.pack_into(">i", head, 8, HEADER_SIZE - 12 + len(bomb.records))
    struct.pack_into(">h", head, 21, codec)
    struct.pack_into(">i", head, 23, bomb.count - 1)  # lastOffsetDelta
    struct.pack_into(">i", head, 57, bomb.count)
    struct.pack_into(">I", head, 17, crc32c(bytes(head[21:]) + bomb.records))
    return bytes(head) + bomb.records


def sound(codec: Codec) -> bytes:
    builder = RecordBatchBuilder(codec=codec)
    builder.append(None, b"sound" * 1000, 0)
    return builder.build()


def put(kafka: EmbeddedKafka, topic: str, partition: int, data: bytes, count: int) -> None:
    def write(cluster: object) -> None:
        log = cluster.state.partition(topic, partition).log  # type: ignore[attr-defined]
        log.append(StoredBatch(0, count - 1, -1, data))
        cluster.state.changes += 1  # type: ignore[attr-defined]

    kafka.on_cluster(write)


@pytest.fixture(name="kafka", scope="module")
def broker() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=1) as kafka:
        yield kafka


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name.lower())
def test_a_bomb_takes_what_a_batch_may_and_16_mib(kafka: EmbeddedKafka, codec: Codec) -> None:
    topic = f"bombs-{codec.name}"
    made = list(bombs(codec))
    kafka.create_topic(topic, len(made) + 1)
    for number, bomb in enumerate(made):
        put(kafka, topic, number, batch_of(codec, bomb), bomb.count)
    put(kafka, topic, len(made), sound(codec), 1)
    done = run(READER, kafka.bootstrap, topic, str(len(made)), timeout=110)
    assert done.returncode == 0, done.stderr
    for bomb, (outcome, rise) in zip(made, json.loads(done.stdout), strict=True):
        assert rise <= LIMIT + BESIDE, f"{bomb.name}: {rise / MIB:.1f} MiB"
        assert isinstance(outcome, str) == bomb.is_refused, f"{bomb.name}: {outcome}"
    usual, _ = json.loads(done.stdout)[0]
    assert f"max.decompressed.batch.bytes ({LIMIT})" in usual
    assert f"{len(made[0].records)} bytes" in usual
