"""A topic and its queues."""

from libc.stdint cimport int32_t

from kafka_fast.dataplane.state cimport kf_plane, kf_topic


cdef class Topic:
    """A topic's queues. `topic.partition_count` is 0 until metadata is there."""

    cdef kf_topic* topic     # freed with the plane
    cdef readonly str name
    cdef list retired        # queue arrays that a bulk call without the GIL may still read


# Add queues up to `count` partitions, and (topic, partition) of each to `known`, where its place is
# the queue's id. There are never fewer partitions than before.
cdef int add_queues(kf_plane* plane, list known, Topic topic, int32_t count) except -1

# Free the queues; nothing may run any more that knows them.
cdef void free_topic(Topic topic)
