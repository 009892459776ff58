"""Kafka's codecs for compiled code: contexts, and buffers of decompressed bytes.

Only this extension links kf_compress.c and the compression libraries. Functions that are
`noexcept nogil` may be called from any thread, and passed to C code as function pointers.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t


cdef extern from "kf_compress.h" nogil:
    ctypedef enum kf_codec:
        KF_CODEC_NONE
        KF_CODEC_GZIP
        KF_CODEC_SNAPPY
        KF_CODEC_LZ4
        KF_CODEC_ZSTD

    ctypedef struct kf_codec_context:
        pass

    ctypedef struct kf_output:
        uint8_t* data
        size_t size
        size_t capacity


# Whether this build has a library for the codec.
cdef bint codec_is_native(kf_codec codec) noexcept nogil

# Working memory for one codec and level, for one thread at a time; NULL: no memory or no library.
cdef kf_codec_context* codec_new(kf_codec codec, int level) noexcept nogil
cdef void codec_free(kf_codec_context* context) noexcept nogil

# Return the capacity that codec_compress() needs at most for `size` bytes.
cdef size_t codec_bound(kf_codec codec, size_t size) noexcept nogil

# Compress into `out`; return the bytes written, or -1: no memory, or `capacity` is too small.
cdef ptrdiff_t codec_compress(
    kf_codec_context* context, const uint8_t* data, size_t size, uint8_t* out, size_t capacity
) noexcept nogil


cdef class Plain:
    cdef kf_output out  # the decompressed bytes
    cdef size_t most    # most bytes that `out` may hold


# Decompress into new memory, at most `limit` bytes; raises OverLimitError beyond, and
# CorruptBatchError.
cdef Plain decompress_plain(
    kf_codec codec, const uint8_t* data, size_t size, size_t limit, int magic
)
