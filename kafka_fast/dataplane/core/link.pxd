"""What the data plane does with a connection, as declared in src_c/kf_link.h."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_fast._wire.layout cimport kf_reader
from kafka_fast.dataplane.core.events cimport *
from kafka_fast.dataplane.core.structs cimport *


cdef extern from "kf_link.h" nogil:
    enum:
        KF_TRACE_LINES
        KF_API_KEY_POS
        KF_CORRELATION_POS
        KF_LINK_WORDS
        KF_IO_WANT_READ
        KF_IO_WANT_WRITE
        KF_IO_ERROR
        KF_WANT_READ
        KF_WANT_WRITE
        KF_GATE_OPEN
        KF_GATE_SHUT
        KF_GATE_TOLD
        KF_TRACE_OPEN
        KF_TRACE_SENT
        KF_TRACE_RECEIVED
        KF_TRACE_PUNT
        KF_TRACE_CLOSE
        KF_TRACE_QUEUED
        KF_TRACE_GATE_SHUT
        KF_TRACE_GATE_OPEN

    const uint8_t* kf_read_topic(kf_reader* reader, int topic_format, size_t* size)
    kf_link* kf_link_new(int32_t id, int32_t node_id, const kf_link_io* io, int fd)
    void kf_link_free(kf_link* link)
    void kf_request_free(kf_request* request)
    void kf_link_number(kf_link* link, kf_request* request)
    void kf_link_queue(kf_link* link, kf_request* request, double now)
    void kf_link_hold(kf_link* link, kf_request* request)
    void kf_link_open_gate(kf_link* link, double now)
    int kf_link_wants(const kf_link* link)
    void kf_link_ready(kf_link* link, int ready)
    size_t kf_link_explain(const kf_link* link, char* into, size_t size)
    bint kf_link_pending(const kf_link* link)
    bint kf_link_write(kf_link* link, double now, kf_request** ended, int* error)
    int kf_link_read(kf_link* link, int* error)
    int kf_link_frame(kf_link* link, size_t max_frame, const uint8_t** frame, int64_t* size)
    void kf_link_consume(kf_link* link, int64_t size)
    kf_request* kf_link_answered(kf_link* link, int32_t correlation_id, double now)
    kf_request* kf_link_abandon(kf_link* link)
    double kf_link_deadline(const kf_link* link)
    void kf_link_trace(kf_link* link, double at, int kind)
    void kf_link_trace_request(kf_link* link, double at, int kind, const kf_request* request,
                               size_t size)
