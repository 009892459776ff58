"""What leaves the data plane for Python."""

from libc.stdint cimport int64_t

from kafka_fast.dataplane.core.events cimport kf_bytes, kf_event, kf_numbers
from kafka_fast.dataplane.core.structs cimport (
    kf_histogram,
    kf_node,
    kf_produce_stats,
    kf_stats,
    kf_trace,
)


cdef class PlaneEvent:
    """An event that came up; a carrier of its side makes an object of it."""

    cdef kf_event* event  # owned


# What an event has of bytes (None: none) and of numbers.
cdef object bytes_of(const kf_bytes* held)
cdef tuple numbers_of(const kf_numbers* held)

# The events of a list, which own what is in it from here on.
cdef list plane_events(kf_event* first)

# Count, sum, and the buckets that are not empty by their upper bounds, in the histogram's unit.
cdef dict histogram_dict(const kf_histogram* histogram)

# The counters of a plane and of its produce side, as their `stats` have them.
cdef dict stats_dict(const kf_stats* stats)
cdef dict produce_stats_dict(const kf_produce_stats* stats, int64_t buffer_bytes)

# The counters of the links to one node.
cdef dict node_dict(const kf_node* node)

# An entry of a link's debug ring as a line for people.
cdef str trace_line(const kf_trace* line)
