"""What leaves the data plane for Python: events, numbers, and traces of links."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t

from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *

from kafka_fast.protocol.apis import api_name


# ---- events ----


cdef object bytes_of(const kf_bytes* held):
    if held.data == NULL:
        return None
    return PyBytes_FromStringAndSize(<char*>held.data, held.size)


cdef tuple numbers_of(const kf_numbers* held):
    cdef int i
    return tuple([held.items[i] for i in range(held.count)])


cdef class PlaneEvent:
    def __dealloc__(self):
        if self.event != NULL:
            kf_event_free(self.event)


cdef list plane_events(kf_event* first):
    cdef list events = []
    cdef PlaneEvent event
    while first != NULL:
        event = PlaneEvent.__new__(PlaneEvent)
        event.event = first
        first = first.next
        events.append(event)
    return events


# ---- numbers ----


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

# The ring leaves the data plane as raw bytes, in LINK_TRACES. It names requests by their API, and
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
    """Return time and text of each line of a debug ring, as `link_traces` gets it, oldest first.

    Times are in seconds on the monotonic clock.
    """
    cdef const kf_trace* lines = <const kf_trace*>PyBytes_AS_STRING(ring)
    cdef Py_ssize_t i
    return [(lines[i].at, trace_line(&lines[i]))
            for i in range(<Py_ssize_t>(len(ring) // sizeof(kf_trace)))]
