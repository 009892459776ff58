"""The bulk half of the append path."""

from libc.stdint cimport int64_t

from kafka_fast.dataplane.core.state cimport kf_record
from kafka_fast.dataplane.produce._queues cimport TopicQueues
from kafka_fast.sending._accumulator cimport Accumulator
from kafka_fast.sending.bulk._batch_future cimport BatchFuture
from kafka_fast.sending.bulk._job cimport bulk_job
from kafka_fast.sending.bulk._rows cimport Rows
from kafka_fast.sending.bulk._table cimport Table


cdef class BulkAccumulator(Accumulator):
    cdef str check_topic(self, object topic)
    cdef int set_partitions(self, TopicQueues topic, Rows rows, list numbers,
                            object number) except -1
    cdef BatchFuture new_future(self)
    cdef int tell_callback(self, BatchFuture future) except -1
    cdef int keep_timestamps(self, BatchFuture future, Rows rows) except -1
    cdef object names_in(self, Table table, Rows rows)
    cdef list group_rows(self, Table table, Rows rows, BatchFuture future)
    cdef bint goes_by_key(self, Rows rows) noexcept
    cdef bint is_scattered(self, Rows rows) noexcept
    cdef int choose_way(self, bulk_job* job, Rows rows) except -1
    cdef int append(self, bulk_job* job, Rows rows, BatchFuture future, TopicQueues topic) except -1
    cdef object size_error(self, TopicQueues topic, const kf_record* record)
    cdef int give_up(self, TopicQueues topic, bulk_job* job, BatchFuture future,
                     object error) except -1
