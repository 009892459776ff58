"""A topic and its queues, one for each partition.

Threads: any, with the GIL.
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from kafka_fast.dataplane.state cimport *


@cython.no_gc_clear  # its plane frees it, and reads `retired` then
cdef class Topic:
    def __cinit__(self, str name, uint64_t seed, int32_t topic_id):
        self.topic = <kf_topic*>calloc(1, sizeof(kf_topic))
        if self.topic == NULL:
            raise MemoryError
        self.topic.id = topic_id
        self.topic.sticky = -1
        self.topic.random = seed | 1
        self.name = name
        self.retired = []

    @property
    def partition_count(self):
        """Partitions known so far; 0 until metadata is there."""
        return self.topic.partition_count


cdef void free_queues(kf_queue** queues, int32_t first, int32_t count) noexcept:
    """Free an array, and the queues from `first` on."""
    cdef int32_t partition
    for partition in range(first, count):
        free(queues[partition])
    free(queues)


cdef kf_queue** new_queues(kf_queue** present, int32_t present_count, int32_t count) except NULL:
    """Return an array of those that are there, and memory for those that are added."""
    cdef int32_t partition
    cdef kf_queue** queues = <kf_queue**>calloc(count, sizeof(kf_queue*))
    if queues == NULL:
        raise MemoryError
    for partition in range(present_count):
        queues[partition] = present[partition]
    for partition in range(present_count, count):
        queues[partition] = <kf_queue*>malloc(sizeof(kf_queue))
        if queues[partition] == NULL:
            free_queues(queues, present_count, count)
            raise MemoryError
    return queues


cdef int add_queues(kf_plane* plane, list known, Topic topic, int32_t count) except -1:
    """All or nothing: what may lack memory comes before the first queue is known to the plane."""
    cdef int32_t partition
    cdef int32_t present = topic.topic.partition_count
    cdef int64_t first_id = len(known)
    cdef kf_queue** queues
    if count <= present:
        return 0
    queues = new_queues(topic.topic.queues, present, count)
    try:
        added = [(topic, partition) for partition in range(present, count)]
        retired = list(topic.retired)
        if topic.topic.queues != NULL:
            retired.append(PyCapsule_New(topic.topic.queues, NULL, NULL))
        known += added
    except MemoryError:
        free_queues(queues, present, count)
        raise
    topic.retired = retired
    for partition in range(present, count):
        kf_queue_init(queues[partition], plane, topic.topic,
                      first_id + partition - present, partition)
    topic.topic.queues = queues
    topic.topic.partition_count = count
    return 0


cdef void free_topic(Topic topic):
    cdef int32_t partition
    cdef int form
    for partition in range(topic.topic.partition_count):
        kf_queue_destroy(topic.topic.queues[partition])
        free(topic.topic.queues[partition])
    for array in topic.retired:
        free(PyCapsule_GetPointer(array, NULL))
    for form in range(KF_TOPIC_FORMATS):
        free(topic.topic.field[form])
    free(topic.topic.queues)
    free(topic.topic)
    topic.topic = NULL
