"""The consumer's side of the data plane as an object."""

from kafka_fast.dataplane.core._plane cimport DataPlane
from kafka_fast.dataplane.core.structs cimport kf_fetcher, kf_session, kf_stream


cdef class Handle:
    """Holds a reference to a stream."""

    cdef kf_stream* stream


cdef class Streams:
    cdef DataPlane plane      # what carries its requests
    cdef kf_fetcher* fetcher  # lives as long as the plane
    cdef dict handles         # stream id -> Handle
    cdef dict topic_orders    # topic -> where its streams stand among the others

    cdef kf_stream* stream(self, object stream_id) except NULL


# How a ProgramFetch has a link fetch; raises ValueError if its prefix is none.
cdef kf_session* session_of(object message) except NULL
