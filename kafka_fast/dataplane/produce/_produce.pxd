"""The steady-state form of Produce: requests from batches, and answers that are checked against
the request. Everything else about Produce is the table codec's business.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

from kafka_fast.dataplane.core.link cimport kf_link, kf_request
from kafka_fast.dataplane.core.state cimport kf_batch, kf_misfit, kf_producer, kf_queue


# One partition of a Produce answer, by position of its batch in the request.
ctypedef struct produce_answer:
    kf_queue* queue  # where the batch came from: it outlives the batch
    bint seen
    int16_t error_code
    int64_t base_offset
    int64_t append_time_ms  # -1: the records keep their own timestamps


# Bytes that the batch takes in a request: compressed if it is.
cdef size_t wire_size(const kf_batch* batch) noexcept nogil

# A request of `count` batches (reordered by topic), each of another partition, or NULL if out of
# memory. Headers are stamped: sequences, producer id and epoch must be set.
cdef kf_request* build_request(kf_producer* producer, kf_link* link, kf_batch** batches,
                               int count) noexcept nogil

# Read an answer into `answers[0:request.batch_count]`; False if it is malformed, names a partition
# twice, one that was not sent, or not all of them: `misfit` says which.
cdef bint scan_answer(const kf_request* request, const uint8_t* frame, int64_t size,
                      produce_answer* answers, int32_t* throttle_ms,
                      kf_misfit* misfit) noexcept nogil
