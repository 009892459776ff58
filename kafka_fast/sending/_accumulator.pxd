"""The append path: from a caller's objects to a record in a partition's open batch."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t

from kafka_fast._wire.layout cimport kf_record
from kafka_fast.dataplane.core.state cimport kf_batch
from kafka_fast.dataplane.produce._produce_waits cimport ProduceWaits, room_wait
from kafka_fast.dataplane.produce._queues cimport Queues, TopicQueues
from kafka_fast.sending._partitioner cimport partitioner


# Where a record was appended.
ctypedef struct appended:
    kf_batch* batch
    int32_t index       # within the batch
    int64_t timestamp   # the record's, in Unix ms


cdef class Accumulator:
    cdef readonly Queues _queues  # where the records go
    cdef ProduceWaits _waits      # for room there
    cdef readonly object _origin  # allocated with the producer: tracemalloc names its line by it
    cdef object last_name        # the topic of the last append: callers stay with one for a while
    cdef TopicQueues last_topic        # the topic of that name
    cdef partitioner how         # which partition a record without a partition goes to
    cdef object custom_partitioner  # a callable, or None
    cdef object on_delivery      # of every record, or None
    cdef bint transforms         # serializers are set: values go through `_serialize` first
    cdef bint plain              # no serializer, no custom partitioner: see `append_plain`
    cdef double max_block        # seconds
    cdef bint never_waits        # raises WouldWaitError instead
    cdef bint has_warned         # that a wait held up an event loop

    cdef TopicQueues topic_of(self, object name)
    cdef int mind_event_loop(self, str what) except -1
    cdef int wait_for_memory(self, TopicQueues topic, size_t need, room_wait* wait) except -1
    cdef int refuse_too_large(self, TopicQueues topic, size_t need) except -1
    cdef int refuse_to_wait(self, TopicQueues topic, size_t need) except -1
    cdef int add(self, object topic, object value, object key, object partition,
                 object timestamp_ms, object headers, int hold, appended* place) except -1
    cdef int add_prepared(self, TopicQueues topic, object value, object key, object partition,
                          object timestamp_ms, object headers, int hold,
                          appended* place) except -1
    cdef int refuse_size(self, TopicQueues topic, const kf_record* record) except -1


# A topic's name as exactly a str; raises TypeError.
cdef str name_of_topic(object topic)

# `send`, of an accumulator that has neither serializers, nor a partitioner or callback of its own.
# A plain call brings a str, bytes, and bytes or NULL.
cdef object send_plain_at_once(Accumulator self, PyObject* topic, PyObject* value, PyObject* key)
cdef object send_at_once(Accumulator self, object topic, object value, object key,
                         object partition, object timestamp_ms, object headers)

# `send`, of a record whose key, value and partition are chosen.
cdef object send_prepared(Accumulator self, object topic, object value, object key,
                          object partition, object timestamp_ms, object headers,
                          object on_delivery)
