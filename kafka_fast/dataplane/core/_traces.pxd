"""A link's debug ring as lines for people."""

from kafka_fast.dataplane.core.structs cimport kf_trace


cdef str trace_line(const kf_trace* line)
