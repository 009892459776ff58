"""Which partition a record without a partition goes to."""

from libc.stdint cimport int32_t

from kafka_fast.dataplane.state cimport kf_plane, kf_topic
from kafka_fast.dataplane.wire cimport kf_record


cdef enum partitioner_kind:
    PARTITIONER_BUILT_IN = 0    # murmur2 of the key; without a key sticky (KIP-794)
    PARTITIONER_ROUND_ROBIN = 1
    PARTITIONER_CUSTOM = 2      # a Python callable; asked elsewhere


# How the partitioner is set up; the same for all topics of a producer.
ctypedef struct partitioner:
    partitioner_kind kind
    bint ignore_keys  # partitioner.ignore.keys
    bint adaptive     # partitioner.adaptive.partitioning.enable


# Choose for this record, and count it. The topic has at least one partition.
cdef int32_t choose_partition(const partitioner* how, kf_plane* plane, kf_topic* topic,
                              const kf_record* record) noexcept nogil
