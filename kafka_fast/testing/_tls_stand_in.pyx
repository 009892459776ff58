"""A layer over a link's bytes that behaves as TLS does, without the cryptography.

The layer takes whole records from the connection and hands them on in pieces. So bytes may wait
inside the layer, and poll(2) does not report them. A read may have to wait until the connection can
be written, because a record must be answered first. A write may have to wait for bytes from the
peer.

Thread: the thread that drives the link; `expect_handshake` is called before.
"""

from libc.stdint cimport int32_t, int64_t, intptr_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *
from kafka_fast.net._pump cimport Pump, socket_io
from kafka_fast.net.posix cimport POLLOUT, poll, pollfd


cdef int64_t take_record(layer* it, int* error) noexcept nogil:
    """Take the next record from `below`; return its size, or the result of `below` if there is
    none.
    """
    cdef int64_t got = it.below.read(it.below.context, it.record, it.record_bytes, error)
    if got <= 0:
        return got
    it.taken = 0
    it.size = got
    if it.handshake_left > 0:
        it.taken = min(it.size, it.handshake_left)
        it.handshake_left -= it.taken
        return got
    if it.answer_every > 0:
        it.until_answer -= 1
        if it.until_answer <= 0:
            it.until_answer = it.answer_every
            it.must_answer = True
    return got


cdef int64_t layer_read(void* context, void* into, size_t size, int* error) noexcept nogil:
    cdef layer* it = <layer*>context
    cdef int64_t got
    while it.taken == it.size:
        got = take_record(it, error)
        if got <= 0:
            return got
    if it.must_answer and not it.is_writable(it.below.context):
        return KF_IO_WANT_WRITE
    it.must_answer = False
    size = min(min(size, it.read_bytes), it.size - it.taken)
    memcpy(into, it.record + it.taken, size)
    it.taken += size
    return size


cdef int64_t layer_write(void* context, const iovec* pieces, int count, int* error) noexcept nogil:
    cdef layer* it = <layer*>context
    cdef int64_t got
    while it.handshake_left > 0:
        if it.taken < it.size:
            return KF_IO_WANT_READ  # the reader must take the earlier bytes first
        got = take_record(it, error)
        if got == 0:
            return KF_IO_WANT_READ  # the stream has ended; the next read reports that
        if got < 0:
            return got
    return it.below.write(it.below.context, pieces, count, error)


cdef size_t layer_pending(void* context) noexcept nogil:
    cdef layer* it = <layer*>context
    return 0 if it.must_answer else it.size - it.taken


cdef void layer_close(void* context) noexcept nogil:
    cdef layer* it = <layer*>context
    it.below.close(it.below.context)


cdef void layer_release(layer* it) noexcept nogil:
    it.references -= 1
    if it.references == 0:
        free(it.record)
        free(it)


cdef void layer_dispose(void* context) noexcept nogil:
    cdef layer* it = <layer*>context
    it.below.dispose(it.below.context)
    layer_release(it)


cdef bint socket_is_writable(void* context) noexcept nogil:
    cdef pollfd waiting
    waiting.fd = <int><intptr_t>context
    waiting.events = POLLOUT
    return poll(&waiting, 1, 0) > 0


cdef class TlsStandIn:
    """A layer between one link and its connection.

    Args:
        record_bytes: most bytes that are taken from the connection at once.
        read_bytes: most bytes that one read returns.
        answer_every: one of so many records is handed on only when the connection can be written;
            0: none.
    """

    def __cinit__(self, *, size_t record_bytes, size_t read_bytes, int answer_every=0):
        self.layer = <layer*>calloc(1, sizeof(layer))
        if self.layer == NULL:
            raise MemoryError
        self.layer.references = 1
        self.layer.record = <uint8_t*>malloc(record_bytes)
        if self.layer.record == NULL:
            raise MemoryError
        self.layer.record_bytes = record_bytes
        self.layer.read_bytes = read_bytes
        self.layer.answer_every = self.layer.until_answer = answer_every

    cdef kf_link_io wrap(self, const kf_link_io* below,
                         bint (*is_writable)(void* context) noexcept nogil):
        cdef kf_link_io io
        self.layer.references += 1
        self.layer.below = below[0]
        self.layer.is_writable = is_writable
        io.write = layer_write
        io.read = layer_read
        io.pending = layer_pending
        io.explain = NULL
        io.close = layer_close
        io.dispose = layer_dispose
        io.context = self.layer
        return io

    def add_link(self, Pump pump, int32_t link_id, int32_t node_id, int fd):
        """Hand a connected socket under this layer to a data plane that runs on its own thread."""
        cdef kf_link_io below = socket_io(fd)
        pump.add(link_id, node_id, self.wrap(&below, socket_is_writable), fd)

    def expect_handshake(self, size_t size):
        """Let writes wait until `size` bytes have come; reads do not return these bytes."""
        self.layer.handshake_left = size

    def pending(self):
        """Return how many bytes wait inside the layer."""
        return layer_pending(self.layer)

    def __dealloc__(self):
        if self.layer != NULL:
            layer_release(self.layer)
