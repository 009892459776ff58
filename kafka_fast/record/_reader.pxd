"""Record batches as views on a buffer."""

from libc.stdint cimport uint8_t
from kafka_fast.record._compress cimport Plain
from kafka_fast.record._layout cimport kf_batch_header
from kafka_fast.record._records cimport Records


cdef class Source:
    cdef Py_buffer view  # holds the exporter's buffer as long as any batch or records need it
    cdef bint held       # `view` is to be released


cdef class RecordBatch:
    cdef Source source           # owner of the bytes at `data`
    cdef const uint8_t* data     # first byte of the batch, its baseOffset
    cdef size_t size_            # of the whole batch, length prefix included
    cdef kf_batch_header header  # of v0 and v1: the outer message's fields in the places of v2
    cdef bint crc_good           # the CRC was checked and is right

    cdef object corrupt(self, str what)
    cdef object tail(self, size_t skipped)
    cdef Records scan(self, Py_ssize_t max_size)
    cdef Plain decompressed(self, size_t start, size_t size, Py_ssize_t max_size)
