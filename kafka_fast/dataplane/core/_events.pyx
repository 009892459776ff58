"""What leaves the data plane, as plain Python values: events, numbers, and traces of links."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t

from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *

from kafka_fast.protocol.apis import api_name


cdef tuple batch_tuple(const kf_batch_row* row):
    return (row.queue_id, row.generation, row.serial, row.slice, row.error_code, row.base_offset,
            row.base_sequence, row.record_count, row.size, row.wire_size, row.failures,
            bool(row.maybe_written))


cdef tuple stream_tuple(const kf_stream_row* row):
    return row.stream_id, row.generation, row.error_code, row.fetch_position, row.last_epoch


cdef tuple report_tuple(const kf_event* event):
    cdef const kf_queue_row* queue = &event.queue
    cdef int i
    return ((queue.queue_id, queue.generation, queue.next_sequence, bool(queue.may_have_gap)),
            [batch_tuple(&event.batches[i]) for i in range(event.row_count)])


cdef object told_by(const kf_event* event):
    """Return what this kind of event has besides the fields that all events have."""
    cdef int i
    if event.kind == KF_EVENT_REPORT:
        return report_tuple(event)
    if event.kind == KF_EVENT_PUNT:
        return [batch_tuple(&event.batches[i]) for i in range(event.row_count)]
    if event.kind == KF_EVENT_ROUTE:
        return [event.queue_ids[i] for i in range(event.row_count)]
    if event.kind in (KF_EVENT_FETCH_PUNT, KF_EVENT_STREAMS_STOPPED):
        return [stream_tuple(&event.streams[i]) for i in range(event.row_count)]
    if event.kind == KF_EVENT_BAD_ANSWER:
        return (event.misfit.kind, event.misfit.asked, event.misfit.place,
                bool(event.misfit.earlier))
    return None


cdef tuple event_tuple(const kf_event* event):
    cdef bytes frame = None
    if event.bytes != NULL:
        frame = PyBytes_FromStringAndSize(<char*>event.bytes, event.size)
    return (event.kind, event.link_id, event.code, event.detail, event.token, frame,
            told_by(event))


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


# ---- a link's debug ring ----

# The ring leaves the data plane as raw bytes, in a DUMP event. It names requests by their API, and
# batches by number, never their records.
cdef dict TRACE_NAMES = {
    KF_TRACE_OPEN: "open",
    KF_TRACE_SENT: "sent",
    KF_TRACE_RECEIVED: "received",
    KF_TRACE_PUNT: "not plain success:",
    KF_TRACE_CLOSE: "closed",
    KF_TRACE_QUEUED: "queued",
    KF_TRACE_GATE_SHUT: "gate shut",
    KF_TRACE_GATE_OPEN: "gate open",
}


cdef str trace_line(const kf_trace* line):
    cdef str what = TRACE_NAMES[line.kind]
    cdef str batch = "" if line.serial < 0 else f", batch {line.serial}"
    if line.api_key < 0:
        return what
    return (f"{what} {api_name(line.api_key)} v{line.version} #{line.correlation_id}{batch}, "
            f"{line.size} bytes")


def read_traces(bytes ring):
    """Return time and text of each line of a debug ring, as a DUMP event brings it, oldest first.

    Times are in seconds on the monotonic clock.
    """
    cdef const kf_trace* lines = <const kf_trace*>PyBytes_AS_STRING(ring)
    cdef Py_ssize_t i
    return [(lines[i].at, trace_line(&lines[i]))
            for i in range(<Py_ssize_t>(len(ring) // sizeof(kf_trace)))]
