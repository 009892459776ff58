"""The machine under the planes: sockets, clock, eventfds, the data plane's thread."""

from libc.stdint cimport int32_t

from kafka_fast.dataplane._lists cimport sender_state
from kafka_fast.dataplane._plane cimport DataPlane, Environment
from kafka_fast.dataplane.state cimport kf_batch, kf_plane
from kafka_fast.net.posix cimport pthread_t


# What the environment's functions need; lives as long as the Machine.
ctypedef struct machine_state:
    int data_event     # ends the data plane's sleep
    int control_event  # there are events for the control plane
    int observer_event  # batches with observers have ended
    void* compressor   # kf compressor's own, or NULL
    void (*compress)(void* compressor, kf_batch* batch) noexcept nogil


cdef class Machine(Environment):
    cdef machine_state state
    cdef object compressor  # keeps what `state.compressor` points to


cdef class Pump:
    cdef readonly DataPlane plane
    cdef Machine machine
    cdef sender_state* sender
    cdef pthread_t thread
    cdef int stopping     # read by the data plane's thread
    cdef readonly bint running
    cdef int owner_pid
