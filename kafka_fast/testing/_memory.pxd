"""The machine of a simulation: a clock that is set, wake-ups as flags, links in memory."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kafka_fast.dataplane.core._sender_state cimport sender_state
from kafka_fast.dataplane.core._plane cimport DataPlane, Environment
from kafka_fast.dataplane.core.link cimport kf_link, kf_trace
from kafka_fast.net._compressor cimport coder
from kafka_fast.testing._tls_stand_in cimport TlsStandIn


# The context of the environment's functions; lives as long as the VirtualMachine.
ctypedef struct virtual_state:
    double now            # monotonic seconds
    int64_t wall_ms       # Unix ms when `now` is 0
    bint data_woken
    bint control_woken
    bint observers_woken
    coder coder           # compresses in the call; unused without compression


# A growing piece of memory: bytes are added at the end and taken from the front.
ctypedef struct heap:
    uint8_t* data
    size_t taken
    size_t size
    size_t capacity


# One connection. The link owns one reference, the MemoryLink the other.
ctypedef struct pipe:
    int references
    heap sent             # by the client, not yet collected
    heap arrived          # for the client, not yet read
    bint full             # writes are refused until there is room again
    bint ended            # the peer closed: reads end after the remaining bytes
    bint closed           # the data plane closed its end
    int error             # errno of every read and write from now on, or 0
    int choppiness        # how many of 256 reads or writes handle only a part
    uint64_t random       # xorshift state
    kf_link* link         # NULL once the link is freed; `trace` then has a copy of its ring
    kf_trace* trace
    uint32_t trace_count


cdef class VirtualMachine(Environment):
    cdef virtual_state state


cdef class MemoryLink:
    cdef pipe* pipe
    cdef TlsStandIn layer
    cdef readonly int32_t link_id
    cdef readonly int32_t node_id


cdef class Turner:
    cdef readonly DataPlane plane
    cdef VirtualMachine machine
    cdef sender_state* sender
    cdef list links  # MemoryLinks that the data plane has not freed
