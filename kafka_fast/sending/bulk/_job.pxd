"""Rows of a bulk call on their way into one topic's batches."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from kafka_fast.dataplane.core.state cimport kf_producer, kf_queue, kf_record, kf_topic
from kafka_fast.dataplane.produce._queues cimport Queues, TopicQueues
from kafka_fast.sending._partitioner cimport partitioner
from kafka_fast.sending.bulk._batch_future cimport BatchFuture, slice_list
from kafka_fast.sending.bulk._column cimport kf_column, kf_header_column
from kafka_fast.sending.bulk._rows cimport Rows


cdef enum:
    CHUNK_RECORDS = 256
    CHUNK_BYTES = 16_384  # of values: how much is encoded under one lock
    WINDOW_ROWS = 8_192   # sorted by partition at a time

# Results of appending besides those of kf_queue_append_run.
cdef enum:
    JOB_DONE = 16
    JOB_NO_MEMORY = 17
    JOB_YIELDS = 18  # `until` has come


# Rows on their way into one topic's batches. Positions count rows in the order of appending.
cdef struct bulk_job:
    kf_producer* producer
    kf_topic cursor            # a copy: the partitioner's state is used without the GIL
    const partitioner* how
    slice_list* slices
    # the rows
    bint raw                   # no Python object is needed to read them
    kf_column value, key
    bint has_key
    const uint8_t* header      # every row's, or NULL
    int64_t header_size
    kf_header_column* headers  # each row's, or NULL
    const int64_t* partitions  # by row, -1: choose; or NULL
    const int64_t* times       # by row, -1: now; or NULL
    int64_t now
    int64_t first_row
    uint32_t* rows             # row by position; NULL: rows and positions are the same
    int64_t pos, end           # positions left
    double until               # when to pause, after a chunk; 0: never
    # where the next chunk goes
    bint scatter               # each row has its own partition
    int32_t partition          # of all rows if not -1; with `scatter`, of the current run
    int64_t window_end         # rows[pos:window_end] are sorted by partition
    int64_t* run_ends          # by partition: end of its run within the window
    int32_t* chosen            # [WINDOW_ROWS] partitions, before sorting
    uint32_t* unsorted         # [WINDOW_ROWS]
    # the chunk
    kf_queue* queue
    int leave                  # KF_LEAVE_FULL if the queue's share is used up, else 0
    int32_t count, next        # records in the chunk, and the first that is not appended
    kf_record records[CHUNK_RECORDS]
    int64_t timestamps[CHUNK_RECORDS]
    uint8_t* scratch           # encoded headers
    size_t scratch_size


# A job that borrows from all of these. The caller sets `pos`, `end`, `rows` and the partition.
cdef bulk_job* new_job(Queues queues, const partitioner* how, TopicQueues topic, Rows rows,
                       BatchFuture future) except NULL
# Have each row go to its own partition.
cdef int scatter(bulk_job* job) except -1
cdef void free_job(bulk_job* job) noexcept

# Append rows until all are done (JOB_DONE) or the one at `pos` cannot be appended now.
cdef int append_raw(bulk_job* job) noexcept nogil
cdef int append_objects(bulk_job* job, Rows rows) except -1
