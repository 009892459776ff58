"""Native threads that compress sealed batches."""

from kafka_fast.dataplane.state cimport kf_batch, kf_env


cdef struct compressor_state
cdef struct handover_state


# Hand over a batch; any thread, never blocks.
cdef void compressor_submit(void* state, kf_batch* batch) noexcept nogil

# The same for a Handover.
cdef void handover_submit(void* state, kf_batch* batch) noexcept nogil

# Compress one batch here and now, with a context of its own: for a simulation's inline pool.
cdef void compress_batch(void* context, int codec, kf_batch* batch) noexcept nogil


cdef class Compressor:
    cdef compressor_state* state
    cdef readonly int thread_count
    cdef int owner_pid

    cdef void join(self)


cdef class Handover:
    cdef handover_state* state

    cdef void attach(self, const kf_env* env)
