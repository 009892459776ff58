"""What leaves the data plane for Python: events, numbers, and traces of links."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t

from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *

from kafka_fast.errors import InternalError
from kafka_fast.protocol.apis import api_name


# ---- events ----


cdef object read_bytes(const kf_bytes* held):
    if held.data == NULL:
        return None
    return PyBytes_FromStringAndSize(<char*>held.data, held.size)


cdef tuple read_batches(const kf_batch_rows* batches, object constructors):
    cdef const kf_batch_row* row
    cdef list made = []
    cdef int i
    for i in range(batches.count):
        row = &batches.rows[i]
        made.append(constructors.batch_row(
            row.queue_id, row.generation, row.serial, row.slice, row.error_code, row.base_offset,
            row.base_sequence, row.record_count, row.size, row.wire_size, row.failures,
            <bint>row.maybe_written))
    return tuple(made)


cdef tuple read_streams(const kf_stream_rows* streams, object constructors):
    cdef const kf_stream_row* row
    cdef list made = []
    cdef int i
    for i in range(streams.count):
        row = &streams.rows[i]
        made.append(constructors.stream_row(row.stream_id, row.generation, row.error_code,
                                            row.fetch_position, row.last_epoch))
    return tuple(made)


cdef object read_response(const kf_raw_response* event, object constructors):
    return constructors.raw_response(event.link_id, event.token, read_bytes(&event.frame),
                                     event.reason)


cdef object read_closed(const kf_link_closed* event, object constructors):
    return constructors.link_closed(event.link_id, event.reason, event.detail,
                                    read_bytes(&event.head) or b"", event.awaited)


cdef object read_bad_answer(const kf_bad_answer* event, object constructors):
    cdef const kf_misfit* misfit = &event.misfit
    return constructors.bad_answer(event.link_id, event.request, event.version,
                                   read_bytes(&event.frame) or b"", misfit.kind, misfit.asked,
                                   misfit.place, <bint>misfit.earlier)


cdef object read_traces_of(const kf_link_traces* event, object constructors):
    return constructors.link_traces(event.link_id, event.node_id, event.in_flight,
                                    read_bytes(&event.ring) or b"")


cdef object read_produce_punt(const kf_produce_punt* event, object constructors):
    return constructors.produce_punt(event.link_id, event.version,
                                     read_bytes(&event.frame) or b"",
                                     read_batches(&event.batches, constructors))


cdef object read_routes(const kf_queue_ids* queues, object constructors):
    cdef int i
    return constructors.route_wanted(tuple([queues.ids[i] for i in range(queues.count)]))


cdef object read_report(const kf_queue_report* event, object constructors):
    cdef const kf_queue_row* queue = &event.queue
    return constructors.queue_report(
        constructors.queue_row(queue.queue_id, queue.generation, queue.next_sequence,
                               <bint>queue.may_have_gap),
        read_batches(&event.batches, constructors))


cdef object read_fetch_punt(const kf_fetch_punt* event, object constructors):
    return constructors.fetch_punt(event.link_id, event.version,
                                   read_bytes(&event.frame) or b"",
                                   read_streams(&event.streams, constructors))


cdef object read_event(const kf_event* event, object constructors):
    if event.kind == KF_EVENT_RAW_RESPONSE:
        return read_response(&event.raw_response, constructors)
    if event.kind == KF_EVENT_LINK_CLOSED:
        return read_closed(&event.link_closed, constructors)
    if event.kind == KF_EVENT_BAD_ANSWER:
        return read_bad_answer(&event.bad_answer, constructors)
    if event.kind == KF_EVENT_THROTTLED:
        return constructors.throttled(event.throttled.link_id, event.throttled.throttle_ms)
    if event.kind == KF_EVENT_HEARTBEATS_ENDED:
        return constructors.heartbeats_ended(event.heartbeats_ended.link_id,
                                             event.heartbeats_ended.token)
    if event.kind == KF_EVENT_GATE_SHUT:
        return constructors.gate_shut(event.gate_shut.link_id)
    if event.kind == KF_EVENT_LINK_TRACES:
        return read_traces_of(&event.link_traces, constructors)
    if event.kind == KF_EVENT_TRACES_ENDED:
        return constructors.traces_ended(event.traces_ended.token)
    if event.kind == KF_EVENT_UNKNOWN_COMMAND:
        return constructors.unknown_command(event.unknown_command.side,
                                            event.unknown_command.kind)
    if event.kind == KF_EVENT_PRODUCE_PUNT:
        return read_produce_punt(&event.produce_punt, constructors)
    if event.kind == KF_EVENT_ROUTE_WANTED:
        return read_routes(&event.route_wanted.queues, constructors)
    if event.kind == KF_EVENT_QUEUE_REPORT:
        return read_report(&event.queue_report, constructors)
    if event.kind == KF_EVENT_FETCH_PUNT:
        return read_fetch_punt(&event.fetch_punt, constructors)
    if event.kind == KF_EVENT_STREAMS_STOPPED:
        return constructors.streams_stopped(
            read_streams(&event.streams_stopped.streams, constructors))
    raise InternalError(f"the data plane reports an event of the unknown kind {event.kind}")


cdef class PlaneEvent:
    def __dealloc__(self):
        if self.event != NULL:
            kf_event_free(self.event)

    def read(self, constructors):
        """Return what the constructor of this kind makes of the event.

        Args:
            constructors: have one method for each kind of event and of row, see the stub.
        """
        return read_event(self.event, constructors)


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
