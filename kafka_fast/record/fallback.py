"""Codecs from the standard library and from Python packages, for builds without the C libraries.

Only `compression` calls this module, and only for a codec that `_compress` was built without. Every
function keeps the promises of its compiled twin. It fills a `Plain` up to the limit of that object,
takes at most 8 MiB of memory beside, and raises CorruptBatchError for bad input. The packages are
imported when first needed.
"""

from __future__ import annotations

import importlib
import importlib.util
import struct
import zlib
from types import ModuleType
from typing import cast

from kafka_fast.errors import CorruptBatchError, MissingPackageError
from kafka_fast.record._compress import OverLimitError, Plain
from kafka_fast.record.types import Codec

#: Package by codec; gzip needs none.
PACKAGES = {
    Codec.SNAPPY: "cramjam",
    Codec.LZ4: "lz4",
    Codec.ZSTD: "zstandard",
}

_XERIAL_HEADER = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_SIZE = 32 * 1024
# Output is copied from the pieces that a decoder returns, so a piece is small beside a batch.
_PIECE_OUT = 256 * 1024
_PIECE_IN = 64 * 1024
_ZSTD_WINDOW_MAX = 1 << 27
_ZSTD_BESIDE = 7 * 1024 * 1024  # memory that a window may take beside the output's limit
_ZSTD_MAGIC_SKIPPABLE = 0x184D2A50  # the last four bits are free
_ZSTD_BLOCK_RLE = 1
_ZSTD_HEADER_MAX = 18
_ZSTD_RATIO_LIKELY = 32  # a declared size is believed up to this ratio


def available(codec: Codec) -> bool:
    """Return whether the codec's package can be imported."""
    package = PACKAGES.get(codec)
    return package is None or importlib.util.find_spec(package) is not None


def _package(codec: Codec, module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackageError(
            f"{codec.name.lower()} needs a library: this build of kafka_fast has none compiled in, "
            f"and the Python package is not installed (pip install {PACKAGES[codec]})",
            package=PACKAGES[codec],
            extra="codecs",
            name=module,
        ) from error


def compress(codec: Codec, data: bytes, level: int) -> bytes:
    """Compress `data` into a form that other Kafka clients read."""
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


def decompress(codec: Codec, data: memoryview, plain: Plain) -> None:
    """Decompress `data` into `plain`; raise CorruptBatchError beyond the limit of `plain`."""
    unpack = {
        Codec.GZIP: _decompress_gzip,
        Codec.SNAPPY: _decompress_snappy,
        Codec.LZ4: _decompress_lz4,
        Codec.ZSTD: _decompress_zstd,
    }[codec]
    unpack(data, plain)


def _compress_xerial(data: bytes) -> bytes:
    snappy = _package(Codec.SNAPPY, "cramjam").snappy
    out = bytearray(_XERIAL_HEADER)
    for start in range(0, len(data), _XERIAL_BLOCK_SIZE):
        block = bytes(snappy.compress_raw(data[start : start + _XERIAL_BLOCK_SIZE]))
        out += struct.pack(">i", len(block)) + block
    return bytes(out)


def _decompress_snappy(data: memoryview, plain: Plain) -> None:
    if not data[: len(_XERIAL_HEADER)].tobytes().startswith(_XERIAL_HEADER[:8]):
        _decompress_snappy_block(data, plain)
        return
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
        _decompress_snappy_block(data[pos : pos + size], plain)
        pos += size


def _decompress_snappy_block(block: memoryview, plain: Plain) -> None:
    snappy = _package(Codec.SNAPPY, "cramjam").snappy
    # A block must have the size that it declares, so a block with an impossible size is refused
    # before it is read. The most is 64 times the block: no element of the format gives more than 64
    # bytes for three.
    declared, shift = 0, 0
    for byte in block[:5]:
        declared |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    else:
        raise CorruptBatchError("snappy: a block's length is malformed")
    if declared > 64 * len(block) and declared <= plain.room:
        raise CorruptBatchError(f"snappy: {len(block)} bytes cannot hold the {declared} declared")
    view = plain.reserve(declared)
    try:
        written = snappy.decompress_raw_into(block, view)
    except Exception as error:  # cramjam's own class; nothing else is raised by it
        raise CorruptBatchError(f"snappy: {error}") from error
    if written != declared:
        raise CorruptBatchError(f"snappy: {written} bytes where {declared} were declared")


def _decompress_gzip(data: memoryview, plain: Plain) -> None:
    pos = 0
    while pos < len(data):
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            piece = data[pos : pos + _PIECE_IN]
            pos += len(piece)
            # A piece that gives more than _PIECE_OUT is not used up: its rest is the next piece.
            try:
                output = member.decompress(piece, _PIECE_OUT)
            except zlib.error as error:
                raise CorruptBatchError(f"gzip: {error}") from error
            plain.append(output)
            pos -= len(member.unused_data if member.eof else member.unconsumed_tail)
            if not (piece or output or member.eof):
                raise CorruptBatchError("gzip: the data is cut off")


def _decompress_lz4(data: memoryview, plain: Plain) -> None:
    frame = _package(Codec.LZ4, "lz4.frame")
    pos = 0
    while pos < len(data):
        decoder = frame.LZ4FrameDecompressor()
        while not decoder.eof:
            # If a piece gives more than _PIECE_OUT, the decoder keeps the piece's rest.
            hungry = decoder.needs_input
            piece = data[pos : pos + _PIECE_IN].tobytes() if hungry else b""
            pos += len(piece)
            try:
                output = decoder.decompress(piece, max_length=_PIECE_OUT)
            except RuntimeError as error:
                raise CorruptBatchError(f"lz4: {error}") from error
            plain.append(output)
            if hungry and not (piece or output or decoder.eof):
                raise CorruptBatchError("lz4: the data is cut off")
        pos -= len(decoder.unused_data or b"")


def _decompress_zstd(data: memoryview, plain: Plain) -> None:
    zstandard = _package(Codec.ZSTD, "zstandard")
    left = data
    try:
        while len(left):
            left = left[_decompress_zstd_frame(zstandard, left, plain) :]
    except zstandard.ZstdError as error:
        raise CorruptBatchError(f"zstd: {error}") from error


def _decompress_zstd_frame(zstandard: ModuleType, data: memoryview, plain: Plain) -> int:
    """Decompress the frame that `data` begins with; return its size."""
    if int.from_bytes(data[:4], "little") & ~0xF == _ZSTD_MAGIC_SKIPPABLE:
        return _zstd_frame_there(data, 8 + int.from_bytes(data[4:8], "little"))
    frame = zstandard.get_frame_parameters(data[:_ZSTD_HEADER_MAX])
    # The reader cannot tell a cut-off frame from a complete one, so the size is checked first.
    size = _zstd_frame_size(data, zstandard.frame_header_size(data), frame.has_checksum)
    decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_MAX)
    reader = decoder.stream_reader(data[:size])
    begin, declared = len(plain), frame.content_size
    if 0 < declared <= min(plain.room, _ZSTD_RATIO_LIKELY * size):
        # If all declared bytes fit in, the decoder needs no window.
        if reader.readinto(plain.reserve(declared)) != declared or reader.readinto(bytearray(1)):
            raise CorruptBatchError("zstd: a frame does not give what it declares")
        return size
    piece = min(max(4 * size, _PIECE_IN), 4 * _PIECE_OUT)
    while True:
        room = min(piece, plain.room)
        window = min(frame.window_size, len(plain) - begin + room)
        if len(plain) + room + window > plain.limit + _ZSTD_BESIDE:
            raise OverLimitError(
                f"{len(plain)} bytes, and the frame's window of {frame.window_size} beside them, "
                f"take more memory than {plain.limit} bytes"
            )
        written = reader.readinto(plain.reserve(room) if room else bytearray(1))
        if written == 0:
            plain.shorten(room)
            return size
        if room == 0:
            plain.reserve(1)  # raises: there is no room, but more to come
        plain.shorten(room - written)


def _zstd_frame_size(data: memoryview, pos: int, has_checksum: bool) -> int:
    """Return the size of a frame whose blocks begin at `pos`."""
    last = False
    while not last:
        block = int.from_bytes(data[pos : pos + 3], "little")
        last = bool(block & 1)
        stored = 1 if block >> 1 & 3 == _ZSTD_BLOCK_RLE else block >> 3
        pos = _zstd_frame_there(data, pos + 3 + stored)
    return _zstd_frame_there(data, pos + 4 if has_checksum else pos)


def _zstd_frame_there(data: memoryview, end: int) -> int:
    if end > len(data):
        raise CorruptBatchError("zstd: the data is cut off")
    return end
