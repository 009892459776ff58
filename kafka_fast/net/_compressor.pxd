"""Native threads that compress sealed batches."""

from libc.stdint cimport uint8_t

from kafka_fast.dataplane.core.state cimport kf_batch, kf_env
from kafka_fast.record._compress cimport kf_codec_context


# The codec and buffers of one thread. The buffers grow to the largest batch and are kept, so they
# stay in the thread's cache. The output is copied into a slab of its own size, because the codec's
# bound is larger.
cdef struct coder:
    int codec                   # as in the low bits of a batch's attributes
    kf_codec_context* context   # NULL: no memory, or no library; batches go out as they are
    uint8_t* records            # a batch's records, in one piece
    size_t records_capacity
    uint8_t* output
    size_t output_capacity


cdef struct compressor_state
cdef struct handover_state


# Hand over a batch; any thread, never blocks.
cdef void compressor_submit(void* state, kf_batch* batch) noexcept nogil

# Hand over a batch to a Handover; any thread, never blocks.
cdef void handover_submit(void* state, kf_batch* batch) noexcept nogil

cdef void coder_init(coder* self, int codec, int level) noexcept nogil
cdef void coder_free(coder* self) noexcept nogil

# Compress one batch here and now and hand it back to its queue.
cdef void compress_batch(coder* self, kf_batch* batch) noexcept nogil


cdef class Compressor:
    cdef compressor_state* state
    cdef readonly int thread_count
    cdef int owner_pid

    cdef void join(self)


cdef class Handover:
    cdef handover_state* state

    cdef void attach(self, const kf_env* env)
