"""Partitioning as Java's client does it since 3.3 (KIP-480, KIP-794).

A record with a key goes to murmur2(key) mod partitions. Records without a key stay with a partition
until it has got nearly a batch's worth of bytes, and then to the end of its batch. After that
another partition is drawn at random. With the adaptive choice, partitions where more batches wait
are drawn less often.

The unit is bytes, never a drain: a switch at each drain would make small batches, and prefer slow
brokers (KIP-794). The switch waits for the end of a batch. Otherwise a few records would stay
behind in a batch of their own, which costs a request as much as a full one.

Thread: the caller's, with the GIL (the cursor belongs to the topic).
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

from kafka_fast._wire.layout cimport *
from kafka_fast.dataplane.core.state cimport *


cdef uint64_t MULTIPLIER = 0x2545F4914F6CDD1D


cdef uint64_t next_random(kf_topic* topic) noexcept nogil:
    """Xorshift64*: uniform enough to draw partitions, and made from the seed alone."""
    cdef uint64_t x = topic.random
    x ^= x >> 12
    x ^= x << 25
    x ^= x >> 27
    topic.random = x
    return (x * MULTIPLIER) >> 11


cdef int64_t weight_of(kf_queue* queue, int32_t longest, bint adaptive,
                       bint any_leader) noexcept nogil:
    """Return how often to draw the partition; 0 if it has no leader while others do."""
    if any_leader and (not kf_get(&queue.available) or kf_get(&queue.stalled)):
        return 0
    return longest + 1 - kf_get(&queue.load) if adaptive else 1


cdef int32_t draw(kf_topic* topic, bint adaptive) noexcept nogil:
    """Draw a partition by its weight."""
    cdef int32_t i
    cdef int32_t longest = 0
    cdef int64_t total = 0
    cdef int64_t weight, left
    cdef bint any_leader = False
    for i in range(topic.partition_count):
        longest = max(longest, kf_get(&topic.queues[i].load))
        any_leader = any_leader or (kf_get(&topic.queues[i].available)
                                    and not kf_get(&topic.queues[i].stalled))
    for i in range(topic.partition_count):
        total += max(0, weight_of(topic.queues[i], longest, adaptive, any_leader))
    if total <= 0:  # the loads have changed meanwhile
        return <int32_t>(next_random(topic) % <uint64_t>topic.partition_count)
    left = <int64_t>(next_random(topic) % <uint64_t>total)
    for i in range(topic.partition_count):
        weight = max(0, weight_of(topic.queues[i], longest, adaptive, any_leader))
        if left < weight:
            return i
        left -= weight
    return topic.partition_count - 1


cdef int32_t draw_partition(const partitioner* how, const kf_producer* producer,
                            kf_topic* topic) noexcept nogil:
    cdef int64_t share = <int64_t>kf_topic_seal_size(producer, topic)
    topic.sticky = draw(topic, how.adaptive)
    # A little less than a batch, so that the partition is left at the end of its first batch.
    topic.sticky_left = share - share // 8
    return topic.sticky


cdef int32_t next_in_turn(const kf_topic* topic) noexcept nogil:
    cdef int32_t _i
    cdef int32_t following = topic.sticky
    for _i in range(topic.partition_count):
        following = (following + 1) % topic.partition_count
        if kf_get(&topic.queues[following].available):
            return following
    return (topic.sticky + 1) % topic.partition_count
