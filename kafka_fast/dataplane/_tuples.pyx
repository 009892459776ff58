"""What leaves the data plane, as plain Python values: events and histograms."""

from cpython.bytes cimport PyBytes_FromStringAndSize

from kafka_fast.dataplane.state cimport *


cdef tuple row_tuple(const kf_row* row):
    return (row.queue_id, row.generation, row.serial, row.slice, row.error_code, row.base_offset,
            row.base_sequence, row.record_count, row.attempts, bool(row.doubt))


cdef tuple event_tuple(const kf_event* event):
    cdef int i
    cdef bytes frame = None
    if event.bytes != NULL:
        frame = PyBytes_FromStringAndSize(<char*>event.bytes, event.size)
    rows = [row_tuple(&event.rows[i]) for i in range(event.row_count)]
    return (event.kind, event.link_id, event.code, event.detail, event.token, frame, rows)


cdef dict histogram_dict(const kf_histogram* histogram):
    """Return count, sum and the non-empty buckets by upper bound (in the histogram's unit)."""
    cdef int i
    return {
        "count": kf_counted(&histogram.count),
        "sum": kf_summed(&histogram.sum),
        "buckets": {1 << i: kf_counted(&histogram.buckets[i]) for i in range(KF_HISTOGRAM_BUCKETS)
                    if kf_counted(&histogram.buckets[i])},
    }
