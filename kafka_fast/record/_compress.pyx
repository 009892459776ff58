"""Kafka's codecs from the C libraries that this build found."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from kafka_fast.errors import CorruptBatchError, UsageError

cdef extern from "kf_compress.h" nogil:
    ctypedef enum kf_codec_status:
        KF_CODEC_OK
        KF_CODEC_MALFORMED
        KF_CODEC_CUT_OFF
        KF_CODEC_TOO_LARGE
        KF_CODEC_NO_MEMORY

    int kf_codec_is_native(kf_codec codec)
    const char* kf_codec_library(kf_codec codec)
    kf_codec_context* kf_codec_new(kf_codec codec, int level)
    void kf_codec_free(kf_codec_context* context)
    size_t kf_compress_bound(kf_codec codec, size_t size)
    ptrdiff_t kf_compress(
        kf_codec_context* context, const uint8_t* data, size_t size, uint8_t* out, size_t capacity
    )
    kf_codec_status kf_decompress(
        kf_codec_context* context, const uint8_t* data, size_t size, size_t limit, int magic,
        kf_output* out,
    )
    kf_codec_status kf_output_grow(kf_output* out, size_t wanted, size_t limit)
    void kf_output_free(kf_output* out)
    void kf_output_move(kf_output* out, uint8_t* to)
    uint8_t kf_lz4_header_checksum(const uint8_t* descriptor, size_t size)

cdef enum:
    POOL_COUNT_MAX = 4    # idle contexts kept for one codec and level
    DESCRIPTOR_MAX = 14   # bytes of an lz4 frame descriptor
    NOGIL_SIZE = 32768    # so many compressed bytes take a good part of a millisecond

# Idle contexts by (codec, level). They are taken and given back under the GIL, but used without it.
cdef dict idle_contexts = {}


class OverLimitError(CorruptBatchError):
    """Decompression gives more than was allowed. `compression` says what has set the limit."""


CODEC_NAMES = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}


cdef bint codec_is_native(kf_codec codec) noexcept nogil:
    return kf_codec_is_native(codec)


cdef kf_codec_context* codec_new(kf_codec codec, int level) noexcept nogil:
    return kf_codec_new(codec, level)


cdef void codec_free(kf_codec_context* context) noexcept nogil:
    kf_codec_free(context)


cdef size_t codec_bound(kf_codec codec, size_t size) noexcept nogil:
    return kf_compress_bound(codec, size)


cdef ptrdiff_t codec_compress(
    kf_codec_context* context, const uint8_t* data, size_t size, uint8_t* out, size_t capacity
) noexcept nogil:
    return kf_compress(context, data, size, out, capacity)


@cython.final
cdef class CodecContext:
    """Owner of one context, so that the dict of idle contexts can hold it."""

    cdef kf_codec_context* context

    def __dealloc__(self):
        kf_codec_free(self.context)


cdef CodecContext take_context(kf_codec codec, int level):
    cdef list idle = idle_contexts.get((codec, level))
    if idle:
        return <CodecContext>idle.pop()
    if not kf_codec_is_native(codec):
        raise UsageError(f"this build has no library for codec {CODEC_NAMES.get(codec, codec)}")
    cdef CodecContext taken = CodecContext.__new__(CodecContext)
    taken.context = kf_codec_new(codec, level)
    if taken.context is NULL:
        raise MemoryError
    return taken


cdef int give_back(kf_codec codec, int level, CodecContext context) except -1:
    cdef list idle = idle_contexts.setdefault((codec, level), [])
    if len(idle) < POOL_COUNT_MAX:
        idle.append(context)
    return 0


@cython.final
cdef class Plain:
    """Decompressed bytes, in memory that goes back to the system with this object.

    The compiled codecs fill the memory directly; `fallback` uses `append` and `reserve`.

    Args:
        limit: most bytes that this object holds.
    """

    def __cinit__(self, size_t limit):
        self.most = limit

    def __len__(self) -> int:
        return self.out.size

    @property
    def limit(self) -> int:
        """Most bytes that this object holds."""
        return self.most

    @property
    def room(self) -> int:
        """Number of bytes that can still be added."""
        return self.most - self.out.size

    def append(self, object data not None) -> None:
        """Add a copy of `data`; raise OverLimitError beyond the limit."""
        cdef Py_buffer view
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            memcpy(added(self, <size_t>view.len), view.buf, <size_t>view.len)
        finally:
            PyBuffer_Release(&view)

    def reserve(self, size_t size) -> memoryview:
        """Add `size` bytes for the caller to write; raise OverLimitError beyond the limit.

        The view is valid until the next call. The caller removes unwritten bytes with `shorten`.
        """
        cdef uint8_t* start = added(self, size)
        return PyMemoryView_FromMemory(<char*>start, <Py_ssize_t>size, PyBUF_WRITE)

    def shorten(self, size_t unused) -> None:
        """Remove the last `unused` bytes."""
        self.out.size -= min(unused, self.out.size)

    def take(self) -> bytes:
        """Return the bytes, and leave this object empty."""
        cdef size_t size = self.out.size
        cdef bytes taken = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
        cdef uint8_t* to = <uint8_t*>PyBytes_AS_STRING(taken)
        if size < NOGIL_SIZE:
            kf_output_move(&self.out, to)
        else:
            with nogil:
                kf_output_move(&self.out, to)
        return taken

    def __dealloc__(self):
        kf_output_free(&self.out)


cdef uint8_t* added(Plain plain, size_t size) except NULL:
    """Add `size` bytes, and return the address of the first."""
    cdef size_t total = plain.out.size + size
    cdef uint8_t* start
    if size > plain.most - plain.out.size:
        raise OverLimitError(f"more than {plain.most} bytes")
    if (plain.out.capacity < max(total, <size_t>1)
            and kf_output_grow(&plain.out, total, plain.most) != KF_CODEC_OK):
        raise MemoryError
    start = plain.out.data + plain.out.size
    plain.out.size = total
    return start


cdef Plain decompress_plain(
    kf_codec codec, const uint8_t* data, size_t size, size_t limit, int magic
):
    cdef Plain plain = Plain.__new__(Plain, limit)
    cdef CodecContext context = take_context(codec, 0)
    cdef kf_codec_status status
    if size < NOGIL_SIZE:
        status = kf_decompress(context.context, data, size, limit, magic, &plain.out)
    else:
        with nogil:
            status = kf_decompress(context.context, data, size, limit, magic, &plain.out)
    give_back(codec, 0, context)
    if status == KF_CODEC_OK:
        return plain
    name = CODEC_NAMES[codec]
    if status == KF_CODEC_NO_MEMORY:
        raise MemoryError
    if status == KF_CODEC_TOO_LARGE:
        raise OverLimitError(f"more than {limit} bytes")
    if status == KF_CODEC_CUT_OFF:
        raise CorruptBatchError(f"{name}: the data is cut off")
    raise CorruptBatchError(f"{name}: the data is malformed, cut off or followed by other bytes")


def library(int codec) -> str | None:
    """Return the C library that serves the codec, or None."""
    cdef const char* name = kf_codec_library(<kf_codec>codec)
    return None if name is NULL else name.decode()


def compress(int codec, object data not None, int level) -> bytes:
    """Return `data` compressed, in Kafka's framing; the codec must have the level."""
    cdef CodecContext context = take_context(<kf_codec>codec, level)
    cdef Py_buffer view
    cdef ptrdiff_t written
    cdef bytes out
    cdef uint8_t* at
    cdef size_t capacity
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        capacity = kf_compress_bound(<kf_codec>codec, <size_t>view.len)
        out = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>capacity)
        at = <uint8_t*>PyBytes_AS_STRING(out)
        with nogil:
            written = kf_compress(
                context.context, <const uint8_t*>view.buf, <size_t>view.len, at, capacity
            )
    finally:
        PyBuffer_Release(&view)
    if written < 0:
        raise MemoryError  # the capacity is the bound, so only memory can be missing
    give_back(<kf_codec>codec, level, context)
    return out[:written]


def decompress(int codec, object data not None, size_t limit, int magic) -> bytes:
    """Return `data` decompressed, at most `limit` bytes.

    Raises:
        OverLimitError: it gives more.
        CorruptBatchError: it is malformed.
    """
    cdef Py_buffer view
    cdef Plain plain
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        plain = decompress_plain(
            <kf_codec>codec, <const uint8_t*>view.buf, <size_t>view.len, limit, magic
        )
    finally:
        PyBuffer_Release(&view)
    return plain.take()


def lz4_header_checksum(bytes descriptor not None) -> int:
    """Return the checksum byte of an lz4 frame descriptor of at most 14 bytes."""
    if len(descriptor) > DESCRIPTOR_MAX:
        raise ValueError(f"an lz4 frame descriptor has at most {DESCRIPTOR_MAX} bytes")
    return kf_lz4_header_checksum(
        <const uint8_t*>PyBytes_AS_STRING(descriptor), <size_t>len(descriptor)
    )
