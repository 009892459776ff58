"""Compress and decompress the records of a batch, with the libraries of this installation.

    compress / decompress ──▶ _compress   liblz4, libzstd, libdeflate or zlib, libsnappy
                          └─▶ fallback    lz4, zstandard, cramjam packages, zlib module

Each codec has one implementation: the compiled one if the build found its library. Both
implementations write bytes that every Kafka client reads. The data plane calls the compiled codecs
directly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_fast.errors import ConfigError, CorruptBatchError
from kafka_fast.record import _compress
from kafka_fast.record.types import Codec

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: Most bytes that decompression of one batch may give, unless the caller says otherwise. What real
#: batches give is in docs/deployment.md.
MAX_SIZE = 32 * 1024 * 1024

#: Up to this size a batch may grow by any factor: an honest batch of zeros shrinks 20,000 times.
RATIO_FREE_SIZE = 16 * 1024 * 1024

#: Beyond RATIO_FREE_SIZE, no batch may grow by more than this factor.
MAX_RATIO = 1024

#: Bytes that the places of a compressed batch's records may take beside its decompressed bytes and
#: what these are allowed: a record may have as few as 7 bytes, and its place takes 40.
PLACES_SIZE = 8 * 1024 * 1024

#: Defaults are low on purpose, see docs/record.md. 0 is lz4's fast mode.
DEFAULT_LEVELS = {Codec.GZIP: 1, Codec.SNAPPY: 0, Codec.LZ4: 0, Codec.ZSTD: 1}

_NATIVE = frozenset(codec for codec in Codec if _compress.library(codec) is not None)

#: Levels by codec, as in Java's configuration; gzip's -1 is zlib's default, 6.
LEVELS = {
    Codec.GZIP: (-1, *range(1, 10)),
    Codec.SNAPPY: (0,),
    Codec.LZ4: range(18),
    Codec.ZSTD: range(-131_072, 23),
}


def codecs_available() -> dict[str, str | None]:
    """Return the implementation of each codec: "native", "package", or None if there is none."""
    implementations: dict[str, str | None] = {}
    for codec in Codec:
        if codec is not Codec.NONE:
            by = "native" if codec in _NATIVE else _package_of(codec)
            implementations[codec.name.lower()] = by
    return implementations


def _package_of(codec: Codec) -> str | None:
    from kafka_fast.record import fallback  # here and below: most builds have all codecs

    return "package" if fallback.available(codec) else None


def check_level(codec: Codec, level: int | None) -> int:
    """Return the level to use; None is the codec's default.

    Raises:
        ConfigError: the codec has no such level.
    """
    if level is None:
        return DEFAULT_LEVELS.get(codec, 0)
    levels = LEVELS.get(codec, (0,))
    if level not in levels:
        raise ConfigError(
            f"{codec.name.lower()} has levels from {levels[0]} to {levels[-1]}, "
            f"{level} is none of them"
        )
    return level


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Return `data` compressed, in Kafka's framing.

    Args:
        codec: the codec; Codec.NONE returns the bytes unchanged.
        data: the bytes to compress.
        level: the codec's own level; None takes the default: gzip 1, lz4 0, zstd 1.

    Raises:
        ConfigError: the codec has no such level.
        MissingPackageError: neither a C library nor a package serves this codec.
    """
    codec = Codec(codec)
    level = check_level(codec, level)
    if codec in _NATIVE:
        return _compress.compress(codec, data, level)
    plain = data if isinstance(data, bytes) else bytes(memoryview(data))
    if codec is Codec.NONE:
        return plain
    from kafka_fast.record import fallback

    return fallback.compress(codec, plain, level)


def decompress(codec: Codec, data: Buffer, *, max_size: int = MAX_SIZE, magic: int = 2) -> bytes:
    """Return `data` decompressed.

    No memory is sized by what the data declares, and a bomb is refused: at most `max_size` bytes
    come out, and beyond 16 MiB at most 1024 times the input. Decompression takes at most 8 MiB of
    memory beside the output.

    Args:
        codec: the codec of the data.
        data: one or more frames of the codec, with nothing after them.
        max_size: most bytes that may come out.
        magic: message format of the batch: in v0 the lz4 frame header's checksum is wrong.

    Raises:
        CorruptBatchError: the data is malformed, cut off, or too large when decompressed.
        MissingPackageError: neither a C library nor a package serves this codec.
    """
    codec = Codec(codec)
    for name, number in (("max_size", max_size), ("magic", magic)):
        if not isinstance(number, int):
            raise TypeError(f"{name} is an int, not {type(number).__name__}: {number!r}")
    view = memoryview(data).cast("B")
    limit = output_limit(len(view), max_size)
    try:
        if codec in _NATIVE:
            return _compress.decompress(codec, view, limit, magic)
        return unpack(codec, view, limit, magic).take()
    except _compress.OverLimitError as cause:
        raise CorruptBatchError(too_large(codec, view, max_size, "max_size")) from cause


def unpack(codec: Codec, view: memoryview, limit: int, magic: int) -> _compress.Plain:
    """Decompress without the compiled codecs, up to `limit` bytes; see `decompress`."""
    codec = Codec(codec)
    plain = _compress.Plain(limit)
    if codec is Codec.NONE:
        plain.append(view)
        return plain
    if codec is Codec.LZ4 and magic == 0:
        view = memoryview(_mend_lz4_header(view))
    from kafka_fast.record import fallback

    fallback.decompress(codec, view, plain)
    return plain


def output_limit(size: int, max_size: int) -> int:
    """Return the most bytes that `size` compressed bytes may give."""
    return max(0, min(max_size, max(RATIO_FREE_SIZE, MAX_RATIO * size)))


def too_large(codec: int, data: memoryview, max_size: int, limit_name: str) -> str:
    """Return what is said of data that decompress to more than is allowed.

    Args:
        codec: the codec of the data.
        data: the compressed bytes.
        max_size: most bytes that may come out.
        limit_name: what has set `max_size`.
    """
    size, limit = len(data), output_limit(len(data), max_size)
    declared = declared_size(codec, data)
    allowed = f"{limit_name} ({max_size}) allows"
    if limit < max_size:
        allowed = f"{limit}, or {MAX_RATIO} times their number: a decompression bomb"
    give = "give"
    if declared is not None and declared > limit:
        give = f"declare {declared} bytes, and give"
    codec_name = _compress.CODEC_NAMES.get(codec, "none")
    return f"{codec_name}: {size} bytes {give} more than {allowed}"


def declared_size(codec: int, data: memoryview) -> int | None:
    """Return how many bytes compressed data declare, as far as their first bytes, or last, say so.

    A declared size may be a lie; no memory is taken for it.
    """
    if codec == Codec.GZIP:  # of the last member, modulo 4 GiB
        return int.from_bytes(data[-4:], "little")
    if codec == Codec.LZ4 and len(data) >= 14 and data[4] & 0x08:
        return int.from_bytes(data[6:14], "little")
    if codec == Codec.ZSTD and len(data) >= 5:
        return _declared_by_zstd(data)
    return None


def _declared_by_zstd(data: memoryview) -> int | None:
    flags = data[4]
    is_single = bool(flags & 0x20)
    width = (1 if is_single else 0, 2, 4, 8)[flags >> 6]
    pos = 5 + (0 if is_single else 1) + (0, 1, 2, 4)[flags & 3]
    if width == 0 or len(data) < pos + width:
        return None
    declared = int.from_bytes(data[pos : pos + width], "little")
    return declared + 256 if width == 2 else declared


def _mend_lz4_header(data: memoryview) -> bytes:
    """Correct the header checksum, which writers of message format v0 got wrong (KIP-57)."""
    if len(data) < 7:
        raise CorruptBatchError("lz4: the data is cut off")
    flags = data[4]
    checksum_pos = 6 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    mended = bytearray(data)
    if checksum_pos < len(mended):
        mended[checksum_pos] = _compress.lz4_header_checksum(bytes(data[4:checksum_pos]))
    return bytes(mended)
