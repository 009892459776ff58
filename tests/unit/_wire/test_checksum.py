"""CRC32C: every path of this CPU against a bit-by-bit reference."""

from __future__ import annotations

import random

import pytest

from kafka_fast._wire._checksum import crc32c, crc32c_combine, paths

DATA = random.Random(1).randbytes(5100)


def slow_crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def all_prefix_crcs(data: bytes) -> list[int]:
    """Return the CRC of data[:n] for each n, in one slow pass."""
    checksums = [0]
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        checksums.append(crc ^ 0xFFFFFFFF)
    return checksums


@pytest.mark.parametrize("path", paths())
def test_check_value(path: str) -> None:
    assert crc32c(b"123456789", path=path) == 0xE3069283


# RFC 3720, appendix B.4.
@pytest.mark.parametrize("path", paths())
@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_iscsi_vectors(path: str, data: bytes, crc: int) -> None:
    assert crc32c(data, path=path) == crc


@pytest.mark.parametrize("path", paths())
def test_every_length_up_to_5000(path: str) -> None:
    view = memoryview(DATA)
    expected = all_prefix_crcs(DATA[:5000])
    assert [crc32c(view[:size], path=path) for size in range(5001)] == expected


@pytest.mark.parametrize("path", paths())
def test_every_alignment(path: str) -> None:
    for size in (0, 1, 7, 8, 61, 95, 96, 97, 255, 256, 257, 1000, 4999):
        whole = bytearray(64 + size)
        for start in range(64):
            view = memoryview(whole)[start : start + size]
            view[:] = DATA[:size]
            assert crc32c(view, path=path) == crc32c(DATA[:size], path="table"), (size, start)


@pytest.mark.parametrize("path", paths())
def test_long_input_agrees_with_the_table(path: str) -> None:
    data = random.Random(2).randbytes(1_000_003)
    assert crc32c(data, path=path) == crc32c(data, path="table")


@pytest.mark.parametrize("path", paths())
def test_continues_where_it_stopped(path: str) -> None:
    for cut in range(0, 700, 13):
        first = crc32c(DATA[:cut], path=path)
        assert crc32c(DATA[cut:], first, path=path) == crc32c(DATA, path="table")


@pytest.mark.parametrize("path", paths())
def test_combine_joins_any_two_pieces(path: str) -> None:
    whole = slow_crc32c(DATA)
    for cut in range(0, len(DATA), 7):
        head, tail = crc32c(DATA[:cut]), crc32c(DATA[cut:])
        assert crc32c_combine(head, tail, len(DATA) - cut, path=path) == whole


@pytest.mark.parametrize("path", paths())
def test_combine_knows_lengths_beyond_32_bits(path: str) -> None:
    # Zeros behind a message shift its CRC; doing it by halves must give the same.
    size = (5 << 40) + 12_345
    crc = crc32c(b"head")
    at_once = crc32c_combine(crc, 0, size, path=path)
    by_halves = crc32c_combine(crc32c_combine(crc, 0, 3 << 40, path=path), 0, size - (3 << 40))
    assert at_once == by_halves


def test_takes_any_contiguous_buffer() -> None:
    expected = crc32c(b"abc")
    assert crc32c(bytearray(b"abc")) == crc32c(memoryview(b"xabc")[1:]) == expected
    with pytest.raises(BufferError):
        crc32c(memoryview(b"a-b-c")[::2])
    with pytest.raises(TypeError):
        crc32c("abc")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        crc32c(None)  # type: ignore[arg-type]


def test_unknown_path_is_named() -> None:
    with pytest.raises(ValueError, match="no CRC32C path 'z80'"):
        crc32c(b"", path="z80")
    assert paths()[-1] == "table"
