"""A layer over a link's bytes that keeps whole records inside, as TLS does."""

from libc.stdint cimport uint8_t

from kafka_fast.dataplane.core.link cimport kf_link_io


# The layer's state, freed with its last reference.
ctypedef struct layer:
    int references              # the link's and the TlsStandIn's
    kf_link_io below
    bint (*is_writable)(void* context) noexcept nogil  # whether `below` can be written
    uint8_t* record
    size_t record_bytes         # most bytes taken from `below` at once
    size_t read_bytes           # most bytes that one read returns
    size_t taken, size          # of the record
    size_t handshake_left       # bytes from `below` that a write waits for; no read returns them
    int answer_every            # one of so many records must be answered before a read; 0: none
    int until_answer            # records until the next such one
    bint must_answer            # a read waits until the connection can be written


cdef class TlsStandIn:
    cdef layer* layer

    # Return the layer as the link's I/O functions; the layer owns `below` from here on.
    cdef kf_link_io wrap(self, const kf_link_io* below,
                         bint (*is_writable)(void* context) noexcept nogil)
