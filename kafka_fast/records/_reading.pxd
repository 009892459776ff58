"""One partition's chunks, read into slices."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_fast.dataplane.fetch._chunk cimport Chunk
from kafka_fast.record._reader cimport BatchBytes, RecordBatch
from kafka_fast.record._records cimport Records
from kafka_fast.record._slices cimport Origin, RecordSlice
from kafka_fast.records._aborted cimport AbortedTransactions


cdef class PartitionReader:
    # what to read, and how
    cdef readonly str topic
    cdef readonly int32_t partition
    cdef readonly int64_t end           # no record from this offset on is handed out
    cdef bint read_committed
    cdef bint check_crcs
    cdef Py_ssize_t max_size            # that a batch may decompress to
    cdef object key_deserializer        # None: bytes are handed out
    cdef object value_deserializer

    # where the partition stands
    cdef readonly int64_t position
    cdef int64_t generation             # of the chunk that was begun last
    cdef readonly int64_t high_watermark
    cdef readonly int64_t last_stable_offset
    cdef readonly int64_t log_start_offset
    cdef readonly int32_t leader_epoch
    cdef readonly object failure        # the error that stops the partition, or None

    cdef list returned                  # slices to hand out again; None or empty: none

    # the chunk that is being read, and those behind it
    cdef object waiting                 # deque of Chunk
    cdef Chunk chunk                    # None: none is being read
    cdef BatchBytes source                  # its bytes
    cdef const uint8_t* at              # where the next batch begins
    cdef size_t left                    # bytes from there to the end of the chunk
    cdef int64_t floor                  # the chunk's next batch must not begin below this offset
    cdef AbortedTransactions aborted    # None: none in this chunk

    # the batch that is being handed out
    cdef Records records                # None: the next one is to be opened
    cdef Py_ssize_t index               # of the next record
    cdef Py_ssize_t stop_index          # of the first record that is not wanted, or their count
    cdef int64_t next_offset            # behind the batch
    cdef Origin origin                  # of the last batch's records; often of the next one's, too

    cdef list take_slices(self, Py_ssize_t max_records)
    cdef list take_returned(self, Py_ssize_t max_records)
    cdef bint open_next(self) except -1
    cdef int begin_chunk(self, Chunk chunk) except -1
    cdef int leave_chunk(self) except -1
    cdef int end_chunk(self) except -1
    cdef bint open_batch(self, RecordBatch batch) except -1
    cdef int pass_over(self, RecordBatch batch, int64_t next_offset) except -1
    cdef bint is_dropped(self, RecordBatch batch) except -1
    cdef int move_behind(self, RecordBatch batch, int64_t next_offset) except -1
    cdef int check_order(self, RecordBatch batch, int64_t first_offset) except -1
    cdef int stop(self) except -1
    cdef RecordSlice next_slice(self, Py_ssize_t most)
    cdef int deserialize(self, RecordSlice part) except -1
    cdef object object_of(self, object deserializer, str part, Py_ssize_t index, object data)
