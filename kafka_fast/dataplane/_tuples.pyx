"""What leaves the data plane, as plain Python values: events and numbers."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t

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


cdef dict stats_dict(const kf_stats* stats):
    return {
        "requests": kf_counted(&stats.requests),
        "bytes_out": kf_counted(&stats.bytes_out),
        "bytes_in": kf_counted(&stats.bytes_in),
        "heartbeats": kf_counted(&stats.heartbeats),
        "throttle_ms": kf_counted(&stats.throttle_ms),
        "request_time_us": histogram_dict(&stats.request_time),
    }


cdef dict produce_stats_dict(const kf_produce_stats* stats, int64_t buffer_bytes):
    return {
        "records_acked": kf_counted(&stats.records_acked),
        "records_failed": kf_counted(&stats.records_failed),
        "batches_acked": kf_counted(&stats.batches_acked),
        "batches_failed": kf_counted(&stats.batches_failed),
        "retries": kf_counted(&stats.retries),
        "punts": kf_counted(&stats.punts),
        "splits": kf_counted(&stats.splits),
        "expired_batches": kf_counted(&stats.expired_batches),
        "blocked": kf_counted(&stats.blocked),
        "buffer_bytes": buffer_bytes,
        "queue_time_us": histogram_dict(&stats.queue_time),
        "batch_bytes": histogram_dict(&stats.batch_bytes),
    }


cdef dict node_dict(const kf_node* node):
    return {
        "links": kf_counted(&node.links),
        "requests": kf_counted(&node.requests),
        "bytes_out": kf_counted(&node.bytes_out),
        "bytes_in": kf_counted(&node.bytes_in),
        "request_time_us": histogram_dict(&node.request_time),
    }
