"""A link's debug ring as lines for people.

The ring leaves the data plane as raw bytes, in a DUMP event, and is read here. It names requests
and batches by number, never their records.
"""

from cpython.bytes cimport PyBytes_AS_STRING

from kafka_fast.dataplane.core.link cimport *


cdef dict TRACE_NAMES = {
    KF_TRACE_OPEN: "open",
    KF_TRACE_SENT: "sent",
    KF_TRACE_RECEIVED: "received",
    KF_TRACE_PUNT: "punt",
    KF_TRACE_CLOSE: "close",
    KF_TRACE_QUEUED: "queued",
}


cdef str trace_line(const kf_trace* line):
    return (f"{line.at:.6f} {TRACE_NAMES[line.kind]} correlation={line.correlation_id} "
            f"batch={line.serial} size={line.size}")


def read_traces(bytes ring):
    """Return the lines of a debug ring as a DUMP event brings it, oldest first."""
    cdef const kf_trace* lines = <const kf_trace*>PyBytes_AS_STRING(ring)
    cdef Py_ssize_t i
    return [trace_line(&lines[i]) for i in range(<Py_ssize_t>(len(ring) // sizeof(kf_trace)))]
