"""The structs that callers, data plane and control plane share, as declared in src_c/. See the
headers there for the meaning of each field and for who may touch it.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t


cdef extern from "<sys/uio.h>" nogil:
    struct iovec:
        void* iov_base
        size_t iov_len


cdef extern from "kf_sync.h" nogil:
    double KF_WAIT_SLICE
    ctypedef int kf_atomic_int
    ctypedef long kf_atomic_long
    ctypedef int64_t kf_counter  # kf_count and kf_counted only
    ctypedef double kf_sum

    ctypedef struct kf_mutex:
        pass


cdef extern from "kf_pool.h" nogil:
    ctypedef struct kf_slab:
        kf_slab* next
        size_t capacity
        size_t size
        uint8_t* data

    ctypedef struct kf_pool:
        size_t limit
        kf_atomic_int waiting


cdef extern from "kf_heartbeat.h" nogil:
    ctypedef struct kf_heartbeat:
        kf_heartbeat* next
        int64_t token
        int32_t link_id
        uint8_t* frame
        size_t frame_size
        int32_t epoch_pos
        uint8_t* expected
        size_t expected_size
        uint8_t* between
        size_t between_size
        int64_t between_token
        double between_timeout
        double period
        double timeout
        double due
        int64_t told
        int unheard
        bint silent
        bint in_flight
        bint between_in_flight


cdef extern from "kf_plane.h" nogil:
    ctypedef struct kf_batch
    ctypedef struct kf_queue
    ctypedef struct kf_link
    ctypedef struct kf_producer
    ctypedef struct kf_fetcher
    ctypedef struct kf_stream
    ctypedef struct kf_session
    ctypedef struct kf_heartbeat

    ctypedef struct kf_env:
        double (*now)(void* context) noexcept nogil
        int64_t (*wall_ms)(void* context) noexcept nogil
        void (*wake_data)(void* context) noexcept nogil
        void (*wake_control)(void* context) noexcept nogil
        void (*wake_observers)(void* context) noexcept nogil
        void (*submit)(void* context, kf_batch* batch) noexcept nogil
        uint32_t (*crc32c)(uint32_t crc, const void* data, size_t len) noexcept nogil
        uint32_t (*crc32c_combine)(uint32_t first, uint32_t second, size_t len) noexcept nogil
        void* context

    ctypedef struct kf_histogram:
        kf_counter buckets[40]
        kf_counter count
        kf_sum sum

    ctypedef struct kf_stats:
        kf_counter requests
        kf_counter bytes_out
        kf_counter bytes_in
        kf_counter heartbeats
        kf_counter throttle_ms
        kf_histogram request_time

    ctypedef struct kf_node:
        kf_node* next
        int32_t id
        kf_counter requests
        kf_counter bytes_out
        kf_counter bytes_in
        kf_counter links
        kf_histogram request_time

    ctypedef struct kf_wake:
        kf_atomic_int watchers

    ctypedef struct kf_plane:
        kf_env env
        kf_producer* producer
        kf_fetcher* fetcher
        size_t max_frame
        double request_timeout
        double max_idle
        kf_mutex lock
        kf_node* nodes
        kf_wake wake
        kf_atomic_int wake_level
        kf_stats stats


cdef extern from "kf_queue.h" nogil:
    ctypedef struct kf_topic:
        uint8_t* field[3]
        size_t field_size[3]
        kf_queue** queues
        int32_t queue_count
        int32_t partition_count
        int32_t id
        int32_t sticky
        int64_t sticky_left
        kf_atomic_int used
        uint64_t random
        kf_atomic_long batch_limit
        size_t wire_limit

    ctypedef struct kf_batch:
        kf_batch* next
        kf_queue* queue
        kf_slab* slabs
        kf_slab* coded
        size_t size
        int64_t serial
        int64_t base_timestamp
        int64_t max_timestamp
        double created
        kf_atomic_int record_count
        kf_atomic_int coding
        kf_atomic_int state
        int64_t producer_id
        int32_t base_sequence
        int16_t epoch
        bint sequenced
        bint expired
        bint maybe_written
        int16_t last_error
        int64_t last_offset
        bint crc_known
        uint32_t records_crc
        int attempts
        int failures
        int64_t order
        int32_t slice
        int64_t base_offset
        int64_t append_time_ms
        int32_t error_code
        int32_t outcome
        int32_t tries
        int16_t last_answer
        size_t wire_size
        double failed_at
        uint8_t* detail
        size_t detail_size
        kf_batch* parent
        kf_batch* children
        kf_batch* sibling
        int32_t first_index
        kf_atomic_int watched
        kf_atomic_int listed
        int32_t handles
        int32_t seen
        int32_t doubled
        int32_t bulk_records
        bint counted
        int32_t asked
        int32_t unread

    ctypedef struct kf_queue:
        kf_mutex lock
        kf_producer* producer
        kf_topic* topic
        int64_t id
        int32_t partition
        kf_atomic_int load
        kf_atomic_int stalled
        kf_atomic_int available
        kf_queue* registered
        kf_queue* taken_next
        kf_link* link
        kf_link* next_link
        bint moving
        kf_batch* unresolved
        kf_batch* coding
        kf_batch** coding_tail
        int32_t coding_count
        int32_t in_flight
        bint frozen
        bint single
        bint route_asked
        bint may_have_gap
        int64_t generation
        int64_t reported
        double not_before
        int64_t producer_id
        int16_t epoch
        int32_t next_sequence
        double due
        int urgency
        kf_queue* next
        kf_queue* previous
        int place
        kf_counter records_acked
        kf_counter bytes_acked
        kf_counter records_failed


cdef extern from "kf_producer.h" nogil:
    ctypedef struct kf_produce_stats:
        kf_counter records_acked
        kf_counter records_failed
        kf_counter batches_acked
        kf_counter batches_failed
        kf_counter retries
        kf_counter punts
        kf_counter splits
        kf_counter expired_batches
        kf_counter blocked
        kf_histogram queue_time
        kf_histogram batch_bytes

    ctypedef struct kf_producer:
        kf_plane* plane
        kf_env env
        kf_pool pool
        size_t batch_size
        size_t seal_size
        size_t max_request_size
        size_t coalesce_bytes
        double linger
        double delivery_timeout
        double availability_timeout
        int max_in_flight
        int codec
        bint idempotent
        bint transactional
        bint acks_zero
        kf_atomic_int flushing
        kf_atomic_int held
        void* owner
        bint inherited
        kf_produce_stats stats
        kf_queue* unrouted
        kf_queue* unrouted_last
        int64_t producer_id
        int16_t epoch
        int64_t next_generation
        double next_overdue
        kf_batch** scratch
        int scratch_capacity


cdef extern from "kf_link.h" nogil:
    ctypedef struct kf_link_io:
        int64_t (*write)(void* context, const iovec* pieces, int count,
                         int* error) noexcept nogil
        int64_t (*read)(void* context, void* into, size_t size, int* error) noexcept nogil
        size_t (*pending)(void* context) noexcept nogil
        size_t (*explain)(void* context, char* into, size_t size) noexcept nogil
        void (*close)(void* context) noexcept nogil
        void (*dispose)(void* context) noexcept nogil
        void* context

    ctypedef struct kf_produce_form:
        int16_t version
        bint flexible
        int topic_format

    ctypedef struct kf_topic_field:
        const uint8_t* start
        size_t size

    ctypedef struct kf_request:
        kf_request* next
        int kind
        int32_t correlation_id
        bint answered
        bint written
        double written_at
        double timeout
        double queued_at
        int64_t token
        uint8_t* framing
        iovec* pieces
        int piece_count
        int piece_pos
        size_t size
        kf_batch** batches
        kf_topic_field* topics
        int batch_count
        kf_produce_form form

    ctypedef struct kf_trace:
        double at
        int64_t serial
        int64_t size
        int32_t correlation_id
        int16_t api_key
        int8_t version
        uint8_t kind

    ctypedef struct kf_link:
        kf_link* next
        int32_t id
        int32_t node_id
        kf_link_io io
        int fd
        bint closed
        bint readable
        int32_t next_correlation_id
        kf_request* first
        kf_request* unwritten
        int produce_in_flight
        double round_trip
        int gate
        double gate_until
        double used_before
        uint8_t* prefix
        size_t prefix_size
        kf_produce_form form
        double throttled_until
        double paced_until
        int urgent
        kf_queue* ready
        kf_queue* ready_last
        kf_queue* lingering
        kf_queue* lingering_last
        kf_session* session
        uint8_t* buffer
        size_t filled
        kf_trace trace[1024]
        uint32_t trace_count
        double last_used
        double last_drained
        kf_node* node
        int64_t bytes_out
        int64_t bytes_in
        int64_t requests


cdef extern from "kf_frame.h" nogil:
    ctypedef struct kf_budget:
        size_t limit

    ctypedef struct kf_budget_use:
        size_t reserved
        size_t buffered
        size_t pinned
        size_t cached

    ctypedef struct kf_frame:
        kf_atomic_int refs
        size_t capacity
        size_t size
        size_t filled
        uint8_t* data


cdef extern from "kf_fetch.h" nogil:
    enum:
        KF_PIECE_MIN

    ctypedef struct kf_aborted:
        int64_t producer_id
        int64_t first_offset

    ctypedef struct kf_name:
        size_t size
        const uint8_t* data

    ctypedef struct kf_stream:
        int64_t id
        int32_t partition
        int32_t topic_order
        int64_t end
        kf_atomic_long wanted
        kf_atomic_long unread
        kf_atomic_long high_watermark
        kf_atomic_long last_stable_offset
        kf_atomic_long log_start_offset
        kf_stream* next
        kf_stream* previous
        kf_name* name[3]
        kf_link* link
        int64_t generation
        int64_t position
        int32_t leader_epoch
        int32_t last_epoch
        bint paused
        bint frozen
        bint broken
        kf_session* session
        int32_t entry

    ctypedef struct kf_chunk:
        kf_chunk* next
        kf_frame* frame
        kf_stream* stream
        int64_t stream_id
        int64_t generation
        int64_t asked_offset
        int64_t next_offset
        int64_t high_watermark
        int64_t last_stable_offset
        int64_t log_start_offset
        const uint8_t* data
        size_t size
        bint broken
        bint done
        int32_t aborted_count
        kf_aborted aborted[1]

    ctypedef struct kf_entry:
        kf_stream* stream
        const kf_name* name
        int64_t generation
        int64_t offset
        int32_t leader_epoch
        int32_t last_epoch
        uint32_t seen
        bint forgotten

    ctypedef struct kf_session:
        kf_budget* budget
        uint8_t* prefix
        uint8_t* suffix
        size_t prefix_size
        size_t suffix_size
        int32_t max_bytes_pos
        int16_t version
        int topic_format
        bint flexible
        int32_t id
        int32_t epoch
        kf_entry* entries
        int32_t count
        uint32_t answers
        int32_t turn_topic
        int32_t turn_partition
        int32_t routed
        bint in_flight
        bint full
        size_t reserved
        size_t piece
        double begun_at
        double back_off
        double not_before
        kf_frame* frame
        kf_session* successor

    ctypedef struct kf_fetch_stats:
        kf_counter fetches
        kf_counter full_fetches
        kf_counter bytes
        kf_counter chunks
        kf_counter empty_answers
        kf_counter sessions_begun
        kf_counter sessions_lost
        kf_counter punts
        kf_counter dropped_chunks
        kf_counter broken_chunks
        kf_counter overdrafts

    ctypedef struct kf_fetcher:
        kf_plane* plane
        kf_budget* budget
        size_t max_bytes
        size_t partition_max_bytes
        kf_stream* streams
        kf_stream** scratch
        int32_t scratch_capacity
        kf_fetch_stats stats
