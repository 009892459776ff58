"""The machine of a simulation: a clock that is set, wake-ups that are noted, links in memory."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kafka_fast.dataplane.produce._lists cimport sender_state
from kafka_fast.dataplane.core._plane cimport DataPlane, Environment
from kafka_fast.dataplane.core.link cimport kf_link, kf_trace
from kafka_fast.net._compressor cimport coder
from kafka_fast.testing._record_layer cimport RecordLayer


# What the environment's functions need; lives as long as the VirtualMachine.
ctypedef struct virtual_state:
    double now            # monotonic seconds
    int64_t wall_ms       # Unix ms when `now` is 0
    bint data_woken
    bint control_woken
    bint observers_woken
    coder coder           # of the inline compression, if there is any


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
    bint full             # takes no more bytes until there is room again
    bint ended            # the peer closed: reads end after what is there
    bint closed           # by the data plane
    int error             # errno of every read and write from now on, or 0
    int choppiness        # of 256: how often a read or write handles only a part
    uint64_t random       # xorshift state
    kf_link* link         # until it is freed; its ring is copied then
    kf_trace* trace
    uint32_t trace_count


cdef class VirtualMachine(Environment):
    cdef virtual_state state


cdef class MemoryLink:
    cdef pipe* pipe
    cdef RecordLayer layer
    cdef readonly int32_t link_id
    cdef readonly int32_t node_id


cdef class Turner:
    cdef readonly DataPlane plane
    cdef VirtualMachine machine
    cdef sender_state* sender
    cdef list links  # MemoryLinks that the data plane has not freed
