"""Codecs from the standard library and from Python packages, for builds without the C libraries.

Only `compression` calls this module, and only for a codec that `_compress` was built without. Every
function keeps the same promise as its compiled twin: it gives at most `limit` bytes, and whatever
is wrong with the input ends in CorruptBatchError. The packages are imported when first needed.
"""

from __future__ import annotations

import importlib
import importlib.util
import struct
import zlib
from types import ModuleType
from typing import cast

from kafka_fast.errors import CorruptBatchError, UsageError
from kafka_fast.record.types import Codec

#: Codec -> the package that serves it; gzip needs none.
PACKAGES = {
    Codec.SNAPPY: "cramjam",
    Codec.LZ4: "lz4",
    Codec.ZSTD: "zstandard",
}

_XERIAL_HEADER = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_SIZE = 32 * 1024
_ZSTD_WINDOW_MAX = 1 << 27
# A call of zstandard's decoder cannot be bounded, so it gets little at a time: a block takes at
# least 4 bytes and gives at most 128 KiB, so this piece gives at most 8 MiB more than allowed.
_ZSTD_PIECE = 256


def available(codec: Codec) -> bool:
    """Return whether the codec's package can be imported."""
    package = PACKAGES.get(codec)
    return package is None or importlib.util.find_spec(package) is not None


def _package(codec: Codec, module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"{codec.name.lower()} needs a library: this build of kafka_fast has none compiled in, "
            f"and the Python package is not installed (pip install {PACKAGES[codec]})"
        ) from error


def compress(codec: Codec, data: bytes, level: int) -> bytes:
    """Compress `data` into what other Kafka clients read."""
    if codec is Codec.GZIP:
        packer = zlib.compressobj(level, wbits=31)
        return packer.compress(data) + packer.flush()
    if codec is Codec.SNAPPY:
        return _compress_xerial(data)
    if codec is Codec.LZ4:
        frame = _package(codec, "lz4.frame")
        packed = frame.compress(
            data,
            compression_level=level,
            block_size=frame.BLOCKSIZE_MAX64KB,
            block_linked=False,
            content_checksum=False,
            store_size=False,
        )
    else:
        packed = _package(codec, "zstandard").ZstdCompressor(level=level).compress(data)
    return cast(bytes, packed)


def decompress(codec: Codec, data: memoryview, limit: int) -> bytes:
    """Decompress `data`; more than `limit` bytes are an error."""
    if codec is Codec.GZIP:
        return _decompress_gzip(data, limit)
    if codec is Codec.SNAPPY:
        return _decompress_snappy(data, limit)
    if codec is Codec.LZ4:
        return _decompress_lz4(data, limit)
    return _decompress_zstd(data, limit)


def too_large(limit: int) -> CorruptBatchError:
    """Return the error for output beyond the limit."""
    return CorruptBatchError(f"decompression gives more than the {limit} bytes allowed")


def _compress_xerial(data: bytes) -> bytes:
    snappy = _package(Codec.SNAPPY, "cramjam").snappy
    out = bytearray(_XERIAL_HEADER)
    for start in range(0, len(data), _XERIAL_BLOCK_SIZE):
        block = bytes(snappy.compress_raw(data[start : start + _XERIAL_BLOCK_SIZE]))
        out += struct.pack(">i", len(block)) + block
    return bytes(out)


def _decompress_snappy(data: memoryview, limit: int) -> bytes:
    if not data[: len(_XERIAL_HEADER)].tobytes().startswith(_XERIAL_HEADER[:8]):
        return _decompress_snappy_block(data, limit, limit)
    out = bytearray()
    pos = len(_XERIAL_HEADER)
    if len(data) < pos:
        raise CorruptBatchError("snappy: the xerial header is cut off")
    while pos < len(data):
        if len(data) - pos < 4:
            raise CorruptBatchError("snappy: a block length is cut off")
        (size,) = struct.unpack_from(">i", data, pos)
        pos += 4
        if size <= 0 or size > len(data) - pos:
            raise CorruptBatchError(f"snappy: a block of {size} bytes, {len(data) - pos} are left")
        out += _decompress_snappy_block(data[pos : pos + size], limit - len(out), limit)
        pos += size
    return bytes(out)


def _decompress_snappy_block(block: memoryview, room: int, limit: int) -> bytes:
    snappy = _package(Codec.SNAPPY, "cramjam").snappy
    # The size a block declares is the size it must have, so it can be refused unseen. It is at
    # most 64 times the block: no element of the format gives more than 64 bytes for three.
    declared, shift = 0, 0
    for byte in block[:5]:
        declared |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    else:
        raise CorruptBatchError("snappy: a block's length is malformed")
    if declared > room:
        raise too_large(limit)
    if declared > 64 * len(block):
        raise CorruptBatchError(f"snappy: {len(block)} bytes cannot hold the {declared} declared")
    try:
        return bytes(snappy.decompress_raw(block.tobytes()))
    except Exception as error:  # cramjam's own class; nothing else is raised by it
        raise CorruptBatchError(f"snappy: {error}") from error


def _decompress_gzip(data: memoryview, limit: int) -> bytes:
    out = bytearray()
    left: bytes | memoryview = data
    while len(left):
        member = zlib.decompressobj(wbits=31)
        try:
            out += member.decompress(left, limit - len(out) + 1)
        except zlib.error as error:
            raise CorruptBatchError(f"gzip: {error}") from error
        if len(out) > limit:
            raise too_large(limit)
        if not member.eof:
            raise CorruptBatchError("gzip: the data is cut off")
        left = member.unused_data
    return bytes(out)


def _decompress_lz4(data: memoryview, limit: int) -> bytes:
    frame = _package(Codec.LZ4, "lz4.frame")
    out = bytearray()
    left = data.tobytes()
    while left:
        decoder = frame.LZ4FrameDecompressor()
        try:
            out += decoder.decompress(left, max_length=limit - len(out) + 1)
            if len(out) <= limit and not decoder.eof:
                raise CorruptBatchError("lz4: the data is cut off")
        except RuntimeError as error:
            raise CorruptBatchError(f"lz4: {error}") from error
        if len(out) > limit:
            raise too_large(limit)
        left = decoder.unused_data or b""
    return bytes(out)


def _decompress_zstd(data: memoryview, limit: int) -> bytes:
    zstandard = _package(Codec.ZSTD, "zstandard")
    out = bytearray()
    left = data
    while len(left):
        decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_MAX).decompressobj()
        pos = 0
        try:
            while pos < len(left) and not decoder.eof:
                out += decoder.decompress(left[pos : pos + _ZSTD_PIECE])
                pos += _ZSTD_PIECE
                if len(out) > limit:
                    raise too_large(limit)
        except zstandard.ZstdError as error:
            raise CorruptBatchError(f"zstd: {error}") from error
        if not decoder.eof:
            raise CorruptBatchError("zstd: the data is cut off")
        left = left[min(pos, len(left)) - len(decoder.unused_data) :]
    return bytes(out)
