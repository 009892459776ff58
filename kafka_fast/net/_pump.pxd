"""The machine under the planes: sockets, clock, eventfds, the data plane's thread."""

from libc.stdint cimport int32_t

from kafka_fast.dataplane.core._sender_state cimport sender_state
from kafka_fast.dataplane.core._plane cimport DataPlane, Environment
from kafka_fast.dataplane.core.link cimport kf_link_io
from kafka_fast.dataplane.core.state cimport kf_batch, kf_mutex, kf_plane
from kafka_fast.net.posix cimport pollfd, pthread_t


# One event loop's event.
ctypedef struct loop_event:
    loop_event* next
    int fd


# The context of the environment's functions; lives as long as the Machine.
ctypedef struct machine_state:
    int data_event     # ends the data plane's sleep
    int control_event  # there are events for the control plane
    int observer_event  # batches with observers have ended: for the callback thread
    kf_mutex loops_lock  # guards `loops`; no other lock is taken under it
    loop_event* loops   # batches with observers have ended: for the event loops
    void* compressor   # first argument of `compress`, or NULL
    void (*compress)(void* compressor, kf_batch* batch) noexcept nogil


cdef class Machine(Environment):
    cdef machine_state state
    cdef object compressor  # keeps what `state.compressor` points to


cdef class LoopEvent:
    cdef Machine machine
    cdef loop_event event
    cdef int owner_pid


# How a link reads and writes a socket, which is the link's own from here on.
cdef kf_link_io socket_io(int fd) noexcept nogil


ctypedef struct thread_state:
    sender_state* sender
    kf_plane* plane
    int* stopping
    int event
    int other  # a second descriptor that ends the sleep, or -1


# The set of descriptors for poll(2).
ctypedef struct poller:
    pollfd* fds
    int capacity


cdef class Pump:
    cdef readonly DataPlane plane
    cdef readonly bint is_inline
    cdef Machine machine
    cdef thread_state own
    cdef poller polled    # used if inline; the thread has its own set
    cdef pthread_t thread
    cdef int stopping     # read by the data plane's thread
    cdef readonly bint running
    cdef int owner_pid

    # Hand a connection to the data plane; `fd` is for poll(2). Without memory the connection is
    # disposed of.
    cdef int add(self, int32_t link_id, int32_t node_id, kf_link_io io, int fd) except -1
