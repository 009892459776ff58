"""What leaves the data plane, as plain Python values."""

from kafka_fast.dataplane.structs cimport kf_event, kf_histogram


# (kind, link_id, code, detail, token, bytes or None, rows): as `DataPlane.take_events` has them.
cdef tuple event_tuple(const kf_event* event)

# Count, sum, and the buckets that are not empty by their upper bounds, in the histogram's unit.
cdef dict histogram_dict(const kf_histogram* histogram)
