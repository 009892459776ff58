"""Codecs: round trips, hostile input, and both ways to serve them."""

from __future__ import annotations

import gzip
import random
import struct
import sys
from collections.abc import Callable

import pytest

from kafka_fast.errors import ConfigError, CorruptBatchError, MissingPackageError
from kafka_fast.record import (
    Codec,
    _compress,
    codecs_available,
    compress,
    compression,
    decompress,
    fallback,
)

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
TEXT = b"".join(b"flight %d from JFK to LAX;" % i for i in range(20_000))
NOISE = random.Random(3).randbytes(300_000)


@pytest.fixture(autouse=True, params=["as built", "packages"])
def served_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test with the codecs of this build, and as a build without any would."""
    if request.param == "packages":
        monkeypatch.setattr("kafka_fast.record.compression._NATIVE", frozenset())


def packed_by_package(codec: Codec, data: bytes) -> bytes:
    return fallback.compress(codec, data, {Codec.GZIP: 1, Codec.ZSTD: 3}.get(codec, 0))


def unpacked_by_package(codec: Codec, data: bytes) -> bytes:
    plain = _compress.Plain(1 << 24)
    fallback.decompress(codec, memoryview(data), plain)
    return plain.take()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"", b"a", TEXT[:100], TEXT, NOISE, bytes(70_000)])
@pytest.mark.parametrize(
    ("pack", "unpack"),
    [(compress, decompress), (compress, unpacked_by_package), (packed_by_package, decompress)],
)
def test_round_trip(
    codec: Codec,
    data: bytes,
    pack: Callable[[Codec, bytes], bytes],
    unpack: Callable[[Codec, bytes], bytes],
) -> None:
    packed = pack(codec, data)
    assert unpack(codec, packed) == data
    if len(data) > 1000 and data is not NOISE:
        assert len(packed) < len(data) / 2


@pytest.mark.parametrize(
    ("codec", "level"),
    [(Codec.GZIP, n) for n in (-1, *range(1, 10))]
    + [(Codec.LZ4, n) for n in (0, 1, 3, 9, 12, 17)]
    + [(Codec.ZSTD, n) for n in (-131_072, -7, -1, 1, 3, 9, 22)],
)
def test_every_kind_of_level(codec: Codec, level: int) -> None:
    assert decompress(codec, compress(codec, TEXT[:50_000], level)) == TEXT[:50_000]


@pytest.mark.parametrize(
    ("codec", "level"),
    [
        (Codec.GZIP, 0),
        (Codec.GZIP, 10),
        (Codec.SNAPPY, 1),
        (Codec.LZ4, -1),
        (Codec.LZ4, 18),
        (Codec.ZSTD, 23),
    ],
)
def test_unknown_level(codec: Codec, level: int) -> None:
    with pytest.raises(ConfigError, match=f"{codec.name.lower()} has levels from"):
        compress(codec, b"", level)


def test_none_passes_bytes_through() -> None:
    assert compress(Codec.NONE, bytearray(b"abc")) == b"abc"
    assert decompress(Codec.NONE, b"abc") == b"abc"
    with pytest.raises(CorruptBatchError, match="more than max_size"):
        decompress(Codec.NONE, b"abc", max_size=2)


@pytest.mark.parametrize("codec", CODECS)
def test_takes_any_buffer(codec: Codec) -> None:
    packed = compress(codec, memoryview(bytearray(b"x" + TEXT[:999]))[1:])
    assert decompress(codec, memoryview(bytearray(b"y" + packed))[1:]) == TEXT[:999]


@pytest.mark.parametrize("codec", CODECS)
def test_limit_is_exact(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, max_size=len(TEXT)) == TEXT
    for limit in (len(TEXT) - 1, 1, 0):
        with pytest.raises(CorruptBatchError, match=rf"more than max_size \({limit}\) allows"):
            decompress(codec, packed, max_size=limit)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_bomb(codec: Codec) -> None:
    bomb = compress(codec, bytes(100_000_000))
    assert len(bomb) < 1_000_000
    with pytest.raises(CorruptBatchError) as caught:
        decompress(codec, bomb, max_size=50_000_000)
    declares = "" if codec is Codec.LZ4 else "declare 100000000 bytes, and "
    assert str(caught.value).startswith(
        f"{codec.name.lower()}: {len(bomb)} bytes {declares}give more than "
    )
    if codec is not Codec.ZSTD:
        assert str(caught.value).endswith("more than max_size (50000000) allows")
    else:  # the only one that shrinks zeros by more than the ratio
        with pytest.raises(CorruptBatchError, match="more than 16777216, or 1024 times"):
            decompress(codec, bomb)


@pytest.mark.parametrize("codec", CODECS)
def test_truncated_at_every_byte(codec: Codec) -> None:
    packed = compress(codec, TEXT[:700])
    assert len(packed) < 700
    # A xerial stream may end after any of its blocks; this one has a single block.
    whole = 16 if codec is Codec.SNAPPY else 0
    for cut in range(len(packed)):
        if cut == whole:
            assert decompress(codec, packed[:cut]) == b""
            continue
        with pytest.raises(CorruptBatchError):
            decompress(codec, packed[:cut])


@pytest.mark.parametrize("codec", CODECS)
def test_bit_flips_never_give_anything_but_bytes_or_a_typed_error(codec: Codec) -> None:
    packed = bytearray(compress(codec, TEXT[:700]))
    for position in range(len(packed)):
        for bit in range(8):
            packed[position] ^= 1 << bit
            try:
                decompress(codec, packed, max_size=100_000)
            except CorruptBatchError:
                pass
            packed[position] ^= 1 << bit


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_several_frames(codec: Codec) -> None:
    packed = compress(codec, TEXT[:500]) + compress(codec, b"") + compress(codec, TEXT[500:900])
    assert decompress(codec, packed) == TEXT[:900]
    with pytest.raises(CorruptBatchError, match="more than max_size"):
        decompress(codec, packed, max_size=899)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("garbage", [b"x", b"\0\0\0\0", b"garbage after the last frame"])
def test_trailing_garbage(codec: Codec, garbage: bytes) -> None:
    with pytest.raises(CorruptBatchError):
        decompress(codec, compress(codec, TEXT[:500]) + garbage)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"x", b"not compressed at all", b"\xff" * 40])
def test_not_compressed_at_all(codec: Codec, data: bytes) -> None:
    with pytest.raises(CorruptBatchError):
        decompress(codec, data)


def skippable(data: bytes) -> bytes:
    return struct.pack("<II", 0x184D2A5C, len(data)) + data


@pytest.mark.parametrize("codec", [Codec.LZ4, Codec.ZSTD])
def test_skippable_frames_are_skipped(codec: Codec) -> None:
    packed = skippable(b"note") + compress(codec, TEXT[:500]) + skippable(b"")
    assert decompress(codec, packed) == TEXT[:500]
    assert decompress(codec, skippable(b"alone")) == b""
    for cut in range(1, 12):
        with pytest.raises(CorruptBatchError):
            decompress(codec, packed[:cut])


@pytest.mark.parametrize("block_size", ["64KB", "256KB", "1MB", "4MB"])
@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("data", [TEXT * 10, NOISE * 20, NOISE + TEXT * 9 + NOISE])
def test_every_kind_of_lz4_frame(block_size: str, linked: bool, data: bytes) -> None:
    frame = pytest.importorskip("lz4.frame")
    size = getattr(frame, f"BLOCKSIZE_MAX{block_size}")
    for size_known, checksums in ((False, False), (True, True)):
        packed = frame.compress(
            data,
            block_size=size,
            block_linked=linked,
            store_size=size_known,
            content_checksum=checksums,
            block_checksum=checksums,
        )
        assert decompress(Codec.LZ4, packed) == data
        with pytest.raises(CorruptBatchError):
            decompress(Codec.LZ4, packed[:-1])


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("data", [TEXT * 10, NOISE * 20, b"\0" * 3_000_000])
def test_zstd_frames_that_declare_no_size(data: bytes, checksum: bool) -> None:
    zstandard = pytest.importorskip("zstandard")
    packer = zstandard.ZstdCompressor(write_checksum=checksum, write_content_size=False)
    packed = packer.compress(data)
    assert decompress(Codec.ZSTD, packed) == data
    assert decompress(Codec.ZSTD, packed + packed) == data + data
    with pytest.raises(CorruptBatchError, match="zstd"):
        decompress(Codec.ZSTD, packed[:-1])
    with pytest.raises(CorruptBatchError, match=rf"max_size \({len(data) - 1}\)"):
        decompress(Codec.ZSTD, packed, max_size=len(data) - 1)
    if checksum:
        wrong = packed[:-1] + bytes([packed[-1] ^ 1])
        with pytest.raises(CorruptBatchError, match="zstd"):
            decompress(Codec.ZSTD, wrong)


def test_a_zstd_frame_that_lies_about_its_size() -> None:
    zstandard = pytest.importorskip("zstandard")
    packed = bytearray(zstandard.ZstdCompressor().compress(TEXT))
    (declared,) = struct.unpack_from("<I", packed, 5)
    assert declared == len(TEXT)
    for lie in (0, 1, len(TEXT) - 1, len(TEXT) + 1, 2**32 - 1):
        struct.pack_into("<I", packed, 5, lie)
        with pytest.raises(CorruptBatchError):
            decompress(Codec.ZSTD, packed)


def test_a_zstd_window_that_takes_too_much_is_refused_by_the_package() -> None:
    zstandard = pytest.importorskip("zstandard")
    wide = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
    packed = zstandard.ZstdCompressor(compression_params=wide).compress(bytes(12 << 20))
    plain = _compress.Plain(12 << 20)
    with pytest.raises(CorruptBatchError, match=r"window of \d+ beside them"):
        fallback.decompress(Codec.ZSTD, memoryview(packed), plain)
    plain = _compress.Plain(24 << 20)
    fallback.decompress(Codec.ZSTD, memoryview(packed), plain)
    assert plain.take() == bytes(12 << 20)


def test_gzip_of_the_standard_library() -> None:
    assert decompress(Codec.GZIP, gzip.compress(TEXT)) == TEXT
    assert gzip.decompress(compress(Codec.GZIP, TEXT)) == TEXT


XERIAL = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)


def test_snappy_is_framed_as_java_does() -> None:
    packed = compress(Codec.SNAPPY, TEXT[:40_000])
    assert packed.startswith(XERIAL)
    (size,) = struct.unpack_from(">i", packed, 16)
    assert decompress(Codec.SNAPPY, packed[20 : 20 + size]) == TEXT[:32768]  # raw is read too


@pytest.mark.parametrize(
    "blocks",
    [
        struct.pack(">i", 0),
        struct.pack(">i", -1) + b"\x01\x00a",
        struct.pack(">i", -(2**31)),
        struct.pack(">i", 4) + b"\x01\x00a",
        struct.pack(">i", 2**31 - 1) + b"\x01\x00a",
        b"\0\0\0",
    ],
)
def test_xerial_block_lengths(blocks: bytes) -> None:
    with pytest.raises(CorruptBatchError, match="snappy: "):
        decompress(Codec.SNAPPY, XERIAL + blocks)


@pytest.mark.parametrize("declared", [b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x01", b"\xff" * 9])
@pytest.mark.parametrize("frame", [False, True])
def test_snappy_size_that_lies(declared: bytes, frame: bool) -> None:
    block = declared + b"\x00a"
    data = XERIAL + struct.pack(">i", len(block)) + block if frame else block
    with pytest.raises(CorruptBatchError):
        decompress(Codec.SNAPPY, data)


def test_lz4_frame_is_what_java_reads() -> None:
    packed = compress(Codec.LZ4, TEXT)
    assert packed[:4] == b"\x04\x22\x4d\x18"
    flags = packed[4]
    assert flags >> 6 == 1  # version
    assert flags & 0x20  # independent blocks: Java reads no others
    assert not flags & 0x1C  # no checksums of blocks or content, no content size
    assert packed[5] >> 4 in (4, 5, 6, 7)


def test_names_who_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    served = codecs_available()
    assert list(served) == ["gzip", "snappy", "lz4", "zstd"]
    for codec in CODECS:
        native = _compress.library(codec) is not None and compression._NATIVE
        assert served[codec.name.lower()] == ("native" if native else "package")
    monkeypatch.setattr(compression, "_NATIVE", frozenset())
    monkeypatch.setitem(fallback.PACKAGES, Codec.ZSTD, "no_such_package")
    assert codecs_available()["zstd"] is None


@pytest.mark.parametrize("codec", [Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_missing_package_is_named(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    package = fallback.PACKAGES[codec]
    monkeypatch.setattr(compression, "_NATIVE", frozenset())
    for module in (package, f"{package}.frame"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPackageError, match=f"pip install {package}"):
        compress(codec, b"x")
    with pytest.raises(MissingPackageError, match=f"pip install {package}"):
        decompress(codec, b"\x01\x00x")


# The same frame with the checksum that Kafka 0.8 and 0.9 gave it (KIP-57).
LZ4_FRAME = bytes.fromhex("04224d18 6040 82") + struct.pack("<I", 0x80000003) + b"abc" + bytes(4)


def test_lz4_header_checksum_of_message_format_v0() -> None:
    assert decompress(Codec.LZ4, LZ4_FRAME) == b"abc"
    wrong = bytearray(LZ4_FRAME)
    wrong[6] ^= 0x55
    with pytest.raises(CorruptBatchError):
        decompress(Codec.LZ4, wrong)
    assert decompress(Codec.LZ4, wrong, magic=0) == b"abc"


def test_lz4_v0_cut_off_at_every_byte() -> None:
    for cut in range(1, len(LZ4_FRAME)):
        with pytest.raises(CorruptBatchError):
            decompress(Codec.LZ4, LZ4_FRAME[:cut], magic=0)


def test_lz4_header_checksum_of_known_frames() -> None:
    frame = pytest.importorskip("lz4.frame")
    for size in (False, True):
        for block in (frame.BLOCKSIZE_MAX64KB, frame.BLOCKSIZE_MAX4MB):
            packed = frame.compress(b"x" * 100_000, store_size=size, block_size=block)
            end = 14 if size else 6
            assert _compress.lz4_header_checksum(packed[4:end]) == packed[end]
    with pytest.raises(ValueError, match="at most 14 bytes"):
        _compress.lz4_header_checksum(bytes(15))
