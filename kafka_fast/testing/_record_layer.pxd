"""A layer over a link's bytes that keeps whole records inside, as TLS does."""

from libc.stdint cimport uint8_t

from kafka_fast.dataplane.core.link cimport kf_link_io


# The layer's state; the link that it serves frees it.
ctypedef struct layer:
    int references              # the link's and the RecordLayer's
    kf_link_io below
    bint (*is_writable)(void* context) noexcept nogil  # of what is below
    uint8_t* record
    size_t record_bytes         # taken from below at once, at most
    size_t read_bytes           # given by one read, at most
    size_t taken, size          # of the record
    size_t handshake_left       # bytes from below that a write waits for, and nobody else gets
    int answer_every            # of so many records one must be answered before it is given; or 0
    int until_answer
    bint must_answer            # the record is given when the connection can be written


cdef class RecordLayer:
    cdef layer* layer

    # The layer as a link sees it; `below` belongs to it from here on.
    cdef kf_link_io wrap(self, const kf_link_io* below,
                         bint (*is_writable)(void* context) noexcept nogil)
