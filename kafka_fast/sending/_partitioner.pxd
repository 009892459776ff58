"""Which partition a record without a partition goes to."""

from libc.stdint cimport int32_t, int64_t

from kafka_fast._wire.layout cimport kf_partition_for_key, kf_record
from kafka_fast.dataplane.core.state cimport kf_producer, kf_topic


cdef enum partitioner_kind:
    PARTITIONER_BUILT_IN = 0    # murmur2 of the key; without a key sticky (KIP-794)
    PARTITIONER_ROUND_ROBIN = 1
    PARTITIONER_CUSTOM = 2      # a Python callable; asked elsewhere


# How the partitioner is set up; the same for all topics of a producer.
ctypedef struct partitioner:
    partitioner_kind kind
    bint ignore_keys  # partitioner.ignore.keys
    bint adaptive     # partitioner.adaptive.partitioning.enable


# Draw the next sticky partition. Its share is nearly a batch's worth of bytes.
cdef int32_t draw_partition(const partitioner* how, const kf_producer* producer,
                            kf_topic* topic) noexcept nogil


# The next partition in turn that has a leader; without any leader, the next one.
cdef int32_t next_in_turn(const kf_topic* topic) noexcept nogil


# Inline, because every record comes by here. The topic has at least one partition.

cdef inline bint is_sticky(const partitioner* how, const kf_record* record) noexcept nogil:
    """Return whether the record goes to the sticky partition."""
    return how.kind != PARTITIONER_ROUND_ROBIN and (record.key == NULL or how.ignore_keys)


cdef inline int32_t choose_partition(const partitioner* how, const kf_producer* producer,
                                     kf_topic* topic,
                                     const kf_record* record) noexcept nogil:
    """Choose for this record, and count it.

    A sticky partition whose share is used up is left at the end of its batch, see KF_LEAVE_FULL.
    After twice its share it is left at once.
    """
    if is_sticky(how, record):
        if topic.sticky < 0 or topic.sticky_left <= -<int64_t>producer.seal_size:
            draw_partition(how, producer, topic)
        topic.sticky_left -= (record.value_len if record.value_len > 0 else 0) + 10
    elif how.kind == PARTITIONER_ROUND_ROBIN:
        topic.sticky = next_in_turn(topic)
    else:
        return kf_partition_for_key(record.key, record.key_len, topic.partition_count)
    return topic.sticky
