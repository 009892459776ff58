"""What the data plane reports, as declared in src_c/kf_event.h, which says what the fields mean."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t


cdef extern from "kf_event.h" nogil:
    ctypedef struct kf_queue_row:
        int64_t queue_id
        int64_t generation
        int32_t next_sequence
        bint may_have_gap

    ctypedef struct kf_batch_row:
        int64_t queue_id
        int64_t generation
        int64_t serial
        int64_t base_offset
        size_t size
        size_t wire_size
        int32_t slice
        int32_t base_sequence
        int32_t record_count
        int32_t failures
        int16_t error_code
        bint maybe_written

    ctypedef struct kf_stream_row:
        int64_t stream_id
        int64_t generation
        int64_t fetch_position
        int32_t last_epoch
        int16_t error_code

    ctypedef struct kf_misfit:
        int kind
        int32_t place
        int64_t asked
        bint earlier

    enum kf_event_kind:
        KF_EVENT_RAW_RESPONSE
        KF_EVENT_LINK_CLOSED
        KF_EVENT_BAD_ANSWER
        KF_EVENT_THROTTLED
        KF_EVENT_HEARTBEATS_ENDED
        KF_EVENT_GATE_SHUT
        KF_EVENT_LINK_TRACES
        KF_EVENT_TRACES_ENDED
        KF_EVENT_UNKNOWN_COMMAND
        KF_EVENT_PRODUCE_PUNT
        KF_EVENT_ROUTE_WANTED
        KF_EVENT_QUEUE_REPORT
        KF_EVENT_FETCH_PUNT
        KF_EVENT_STREAMS_STOPPED

    ctypedef struct kf_bytes:
        uint8_t* data
        size_t size

    ctypedef struct kf_batch_rows:
        kf_batch_row* rows
        int count
        int capacity

    ctypedef struct kf_stream_rows:
        kf_stream_row* rows
        int count
        int capacity

    ctypedef struct kf_queue_ids:
        int64_t* ids
        int count
        int capacity

    ctypedef struct kf_raw_response:
        int32_t link_id
        int32_t reason
        int64_t token
        kf_bytes frame

    ctypedef struct kf_link_closed:
        int32_t link_id
        int32_t reason
        int32_t awaited
        int64_t detail
        kf_bytes head

    ctypedef struct kf_bad_answer:
        int32_t link_id
        int32_t request
        int16_t version
        kf_misfit misfit
        kf_bytes frame

    ctypedef struct kf_throttled:
        int32_t link_id
        int32_t throttle_ms

    ctypedef struct kf_heartbeats_ended:
        int32_t link_id
        int64_t token

    ctypedef struct kf_gate_shut:
        int32_t link_id

    ctypedef struct kf_link_traces:
        int32_t link_id
        int32_t node_id
        int32_t in_flight
        kf_bytes ring

    ctypedef struct kf_traces_ended:
        int64_t token

    ctypedef struct kf_unknown_command:
        int32_t side
        int32_t kind

    ctypedef struct kf_produce_punt:
        int32_t link_id
        int16_t version
        kf_bytes frame
        kf_batch_rows batches

    ctypedef struct kf_route_wanted:
        kf_queue_ids queues

    ctypedef struct kf_queue_report:
        kf_queue_row queue
        kf_batch_rows batches

    ctypedef struct kf_fetch_punt:
        int32_t link_id
        int16_t version
        kf_bytes frame
        kf_stream_rows streams

    ctypedef struct kf_streams_stopped:
        kf_stream_rows streams

    ctypedef struct kf_event:
        kf_event* next
        kf_event_kind kind
        kf_raw_response raw_response
        kf_link_closed link_closed
        kf_bad_answer bad_answer
        kf_throttled throttled
        kf_heartbeats_ended heartbeats_ended
        kf_gate_shut gate_shut
        kf_link_traces link_traces
        kf_traces_ended traces_ended
        kf_unknown_command unknown_command
        kf_produce_punt produce_punt
        kf_route_wanted route_wanted
        kf_queue_report queue_report
        kf_fetch_punt fetch_punt
        kf_streams_stopped streams_stopped
