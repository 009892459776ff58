"""Native threads that compress sealed batches."""

from kafka_fast.dataplane.state cimport kf_batch


cdef struct compressor_state


# Hand over a batch; any thread, never blocks.
cdef void compressor_submit(void* state, kf_batch* batch) noexcept nogil

# Compress one batch here and now, with a context of its own: for a simulation's inline pool.
cdef void compress_batch(void* context, int codec, kf_batch* batch) noexcept nogil


cdef class Compressor:
    cdef compressor_state* state
    cdef readonly int thread_count
    cdef int owner_pid

    cdef void join(self)
