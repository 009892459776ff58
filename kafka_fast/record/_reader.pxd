"""Record batches as views on a buffer."""

from libc.stdint cimport int64_t, uint8_t
from kafka_fast.record._compress cimport Plain
from kafka_fast.record._layout cimport kf_batch_header
from kafka_fast.record._records cimport Records


# Keeps bytes alive and in their place, as long as any batch or records need them.
cdef class BatchBytes:
    cdef const uint8_t* data
    cdef size_t size
    cdef object owner    # frees the bytes at its end; None: `view` holds them
    cdef Py_buffer view  # of an exporter
    cdef bint held       # `view` is to be released


cdef class RecordBatch:
    cdef BatchBytes source           # owner of the bytes at `data`
    cdef const uint8_t* data     # first byte of the batch, its baseOffset
    cdef size_t size_            # of the whole batch, length prefix included
    cdef kf_batch_header header  # for v0 and v1: the outer message's fields in the places of v2
    cdef bint crc_good           # the CRC was checked and is right

    cdef Records opened(self, bint check_crc, Py_ssize_t max_size)
    cdef object corrupt(self, str what)
    cdef object tail(self, size_t skipped)
    cdef Records scan(self, Py_ssize_t max_size)
    cdef Plain decompressed(self, size_t start, size_t size, Py_ssize_t max_size)
    cdef int check_places(self, size_t size, int64_t count, Py_ssize_t max_size) except -1


# Return a BatchBytes for bytes that `owner` keeps alive and in their place.
cdef BatchBytes source_of(object owner, const uint8_t* data, size_t size)

# Return the batch that begins at `data`, within the source; None if the batch does not end within
# `left` bytes. Raises CorruptBatchError for a length or a magic that no batch has.
cdef RecordBatch batch_at(BatchBytes source, const uint8_t* data, size_t left)
