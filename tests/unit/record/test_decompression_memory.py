"""What decompression takes at its peak, and what of it is left, in a process for each measurement.

No codec may take more than the most that it may give and 8 MiB, in either way to serve it, whether
the data fits or is a bomb. What the process of the measurement had before does not count.
"""

from __future__ import annotations

import json
import random
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka_fast.record import Codec, compress

cramjam = pytest.importorskip("cramjam")
lz4_frame = pytest.importorskip("lz4.frame")
zstandard = pytest.importorskip("zstandard")

ROOT = Path(__file__).parents[3]
MIB = 1 << 20
pytestmark = pytest.mark.slow  # 25 seconds of processors together

CAP = 40 * MIB
"""`max.decompressed.batch.bytes`; malloc maps what is larger than 32 MiB, and keeps the rest."""

BESIDE = 8 * MIB
LEFT = 8 * MIB
"""What malloc may keep of the libraries' working memory."""

# A forked child's peak begins with what it shares with its parent, so that is taken away.
SCRIPT = """
import ctypes, json, os, resource, struct, sys
from kafka_fast.errors import CorruptBatchError
from kafka_fast.record import Codec, RecordBatchBuilder, compression, decompress, read_batches

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

def trim():
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except AttributeError:
        pass  # another C library than glibc

def batch_of(codec, data):
    builder = RecordBatchBuilder()
    builder.append(None, b"", 0)
    head = bytearray(builder.build()[:61])
    struct.pack_into(">i", head, 8, 49 + len(data))
    struct.pack_into(">h", head, 21, codec)
    (batch,) = read_batches(bytes(head) + data).batches
    return batch

def use(work):
    try:
        return work()
    except CorruptBatchError as error:
        return str(error)

def measured(work):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        trim()  # memory that malloc has would not count
        before = resident()
        outcome = use(work)
        os.write(write, json.dumps([outcome, before, resident()]).encode())
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    assert status == 0, status
    outcome, before, after = json.loads(os.read(read, 1000))
    return outcome, used.ru_maxrss * 1024 - before, after - before

served, cap, *paths = sys.argv[1:]
cap = int(cap)
if served == "packages":
    compression._NATIVE = frozenset()
found = {}
for path in paths:
    codec = int(os.path.basename(path)[0])
    with open(path, "rb") as file:
        data = file.read()
    batch = batch_of(codec, data)
    ways = {
        "decompress": lambda max_size: len(decompress(Codec(codec), data, max_size=max_size)),
        "batch": lambda max_size: len(batch.records(check_crc=False, max_size=max_size)),
    }
    for name, way in ways.items():
        use(lambda: way(1000))  # what is loaded at the first use is the library's
        found[f"{os.path.basename(path)} {name}"] = measured(lambda: way(cap))
print(json.dumps(found))
"""


class Shape(NamedTuple):
    """Compressed data and whether it gives as much as is allowed, or more."""

    name: str
    data: bytes
    fits: bool


def plain(size: int) -> bytes:
    """Bytes that shrink to a sixtieth: of zeros, no codec may give the whole cap."""
    noise = random.Random(7)
    return b"".join(noise.randbytes(1024) + bytes(63 * 1024) for _ in range(size // 65536))


def shapes(codec: Codec) -> list[Shape]:
    listed = []
    for fits in (True, False):
        data = plain(CAP if fits else 2 * CAP)
        made = {"usual": compress(codec, data)}
        if codec is Codec.SNAPPY:
            made["one block"] = bytes(cramjam.snappy.compress_raw(data))
        elif codec is Codec.LZ4:
            made["linked blocks of 4 MiB"] = lz4_frame.compress(
                data, block_size=lz4_frame.BLOCKSIZE_MAX4MB, block_linked=True
            )
            made["cut off"] = made["linked blocks of 4 MiB"][:-5]
        elif codec is Codec.ZSTD:
            wide = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
            made["a window of 128 MiB"] = zstandard.ZstdCompressor(
                compression_params=wide
            ).compress(data)
            lies = bytearray(zstandard.ZstdCompressor().compress(data))
            (declared,) = struct.unpack_from("<I", lies, 6)
            if not fits and declared == len(data):
                struct.pack_into("<I", lies, 6, CAP)
                made["a size that lies"] = bytes(lies)
        listed += [
            Shape(f"{codec.value} {name}, {fits}", frame, fits) for name, frame in made.items()
        ]
    return listed


@pytest.mark.parametrize("served", ["as built", "packages"])
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_no_codec_takes_more_than_the_limit_and_8_mib(
    codec: Codec, served: str, tmp_path: Path
) -> None:
    tried = {shape.name: shape for shape in shapes(codec)}
    for shape in tried.values():
        (tmp_path / shape.name).write_bytes(shape.data)
    paths = [str(tmp_path / name) for name in tried]
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, served, str(CAP), *paths],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    for name, (outcome, peak, left) in json.loads(run.stdout).items():
        shape = tried[name.rpartition(" ")[0]]
        assert peak <= CAP + BESIDE, f"{name}: {peak / MIB:.1f} MiB at its peak"
        assert left <= LEFT, f"{name}: {left / MIB:.1f} MiB are left"
        if name.endswith("usual, True decompress"):
            assert outcome == CAP, f"{name}: {outcome}"
        if not shape.fits:
            assert re.match(r"record batch .* cannot|gzip|snappy|lz4|zstd", outcome), name
