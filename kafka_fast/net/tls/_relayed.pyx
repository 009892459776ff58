"""A link whose bytes a relay encrypts: a socket, and the relay's words for what went wrong.

The link reads and writes one end of a socket pair; the relay has the other end. When the relay
closes its end, its words tell why.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from kafka_fast.dataplane.core.link cimport KF_IO_ERROR, KF_LINK_WORDS
from kafka_fast.dataplane.core.structs cimport iovec, kf_link_io
from kafka_fast.net._pump cimport Pump, socket_io

cdef extern from * nogil:
    int atomic_load_int "__atomic_load_n"(int* value, int order)
    int atomic_add_int "__atomic_add_fetch"(int* value, int by, int order)
    void atomic_store_int "__atomic_store_n"(int* value, int to, int order)
    int ATOMIC_SEQ_CST "__ATOMIC_SEQ_CST"


cdef int64_t relayed_write(void* context, const iovec* pieces, int count,
                           int* error) noexcept nogil:
    cdef relayed* it = <relayed*>context
    cdef int64_t sent = it.below.write(it.below.context, pieces, count, error)
    if sent == KF_IO_ERROR and atomic_load_int(&it.size, ATOMIC_SEQ_CST) > 0:
        error[0] = 0
    return sent


cdef int64_t relayed_read(void* context, void* into, size_t size, int* error) noexcept nogil:
    cdef relayed* it = <relayed*>context
    cdef int64_t got = it.below.read(it.below.context, into, size, error)
    if got == 0 and atomic_load_int(&it.size, ATOMIC_SEQ_CST) > 0:
        error[0] = 0
        return KF_IO_ERROR
    return got


cdef size_t relayed_explain(void* context, char* into, size_t size) noexcept nogil:
    cdef relayed* it = <relayed*>context
    size = min(size, <size_t>atomic_load_int(&it.size, ATOMIC_SEQ_CST))
    memcpy(into, it.words, size)
    return size


cdef void relayed_close(void* context) noexcept nogil:
    cdef relayed* it = <relayed*>context
    it.below.close(it.below.context)


cdef void release(relayed* it) noexcept nogil:
    if atomic_add_int(&it.references, -1, ATOMIC_SEQ_CST) == 0:
        free(it)


cdef void relayed_dispose(void* context) noexcept nogil:
    cdef relayed* it = <relayed*>context
    it.below.dispose(it.below.context)
    release(it)


cdef class Relayed:
    """One relayed link, as the relay knows it."""

    def __cinit__(self):
        self.state = <relayed*>calloc(1, sizeof(relayed))
        if self.state == NULL:
            raise MemoryError
        self.state.references = 1

    def add_link(self, Pump pump not None, int32_t link_id, int32_t node_id, int fd):
        """Hand the data plane its end of the socket pair. Once only; control thread.

        Raises:
            OSError: there is no memory for a link; the socket is closed.
        """
        cdef kf_link_io io
        atomic_add_int(&self.state.references, 1, ATOMIC_SEQ_CST)
        self.state.below = socket_io(fd)
        io.write = relayed_write
        io.read = relayed_read
        io.pending = NULL
        io.explain = relayed_explain
        io.close = relayed_close
        io.dispose = relayed_dispose
        io.context = self.state
        pump.add(link_id, node_id, io, fd)

    def explain(self, bytes words not None):
        """Say why the relay closes its end next. Once only; the relay's thread."""
        cdef size_t size = min(<size_t>len(words), <size_t>KF_LINK_WORDS - 1)
        memcpy(self.state.words, PyBytes_AS_STRING(words), size)
        atomic_store_int(&self.state.size, size, ATOMIC_SEQ_CST)

    def __dealloc__(self):
        if self.state != NULL:
            release(self.state)
