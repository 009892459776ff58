"""What callers, data plane and control plane share, as declared in src_c/. See the headers there
for the meaning of each field and for who may touch it.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t


cdef extern from "<sys/uio.h>" nogil:
    struct iovec:
        void* iov_base
        size_t iov_len


cdef extern from "kf_wire.h" nogil:
    ctypedef struct kf_reader:
        const uint8_t* pos
        const uint8_t* end
        bint bad

    kf_reader kf_reader_of(const void* data, size_t len)
    size_t kf_left(const kf_reader* reader)
    const uint8_t* kf_read_span(kf_reader* reader, int64_t len)
    int8_t kf_read_i8(kf_reader* reader)
    int16_t kf_read_i16(kf_reader* reader)
    int32_t kf_read_i32(kf_reader* reader)
    int64_t kf_read_i64(kf_reader* reader)
    uint32_t kf_read_uvarint(kf_reader* reader)
    void kf_skip_tags(kf_reader* reader)
    uint8_t* kf_put_i8(uint8_t* at, int8_t value)
    uint8_t* kf_put_i16(uint8_t* at, int16_t value)
    uint8_t* kf_put_i32(uint8_t* at, int32_t value)
    uint8_t* kf_put_i64(uint8_t* at, int64_t value)
    uint8_t* kf_put_uvarint(uint8_t* at, uint64_t raw)
    uint8_t* kf_put_varint(uint8_t* at, int64_t value)
    uint8_t* kf_put_bytes(uint8_t* at, const void* data, size_t len)
    size_t kf_uvarint_size(uint64_t raw)
    size_t kf_varint_size(int64_t value)


cdef extern from "kf_record.h" nogil:
    enum:
        KF_BATCH_HEADER_SIZE
        KF_BATCH_LENGTH_PREFIX
        KF_BATCH_POS_CRC
        KF_BATCH_POS_ATTRIBUTES

    ctypedef struct kf_batch_header:
        int64_t base_offset
        int32_t length
        int32_t leader_epoch
        int16_t attributes
        int32_t last_offset_delta
        int64_t base_timestamp
        int64_t max_timestamp
        int64_t producer_id
        int16_t producer_epoch
        int32_t base_sequence
        int32_t record_count

    ctypedef struct kf_record:
        const uint8_t* key
        int64_t key_len
        const uint8_t* value
        int64_t value_len
        const uint8_t* headers
        int64_t headers_size

    void kf_batch_header_put(uint8_t* at, const kf_batch_header* header)


cdef extern from "kf_sync.h" nogil:
    ctypedef int kf_atomic_int
    ctypedef struct kf_mutex:
        pass

    int32_t kf_get(kf_atomic_int* value)
    void kf_set(kf_atomic_int* value, int32_t to)
    int32_t kf_swap(kf_atomic_int* value, int32_t to)
    int32_t kf_add(kf_atomic_int* value, int32_t by)
    void kf_fence()
    void kf_lock(kf_mutex* mutex)
    void kf_unlock(kf_mutex* mutex)


cdef extern from "kf_pool.h" nogil:
    ctypedef struct kf_slab:
        kf_slab* next
        size_t capacity
        size_t size
        uint8_t data[1]

    ctypedef struct kf_pool:
        size_t limit
        kf_atomic_int waiting

    kf_slab* kf_pool_take(kf_pool* pool, size_t size, bint beyond)
    void kf_pool_give(kf_pool* pool, kf_slab* chain)
    void kf_pool_wait(kf_pool* pool, size_t size, double seconds)
    size_t kf_pool_reserved(kf_pool* pool)


cdef extern from "kf_plane.h" nogil:
    enum kf_wake:
        KF_WAKE_NOBODY
        KF_WAKE_FULL
        KF_WAKE_SENDABLE
        KF_WAKE_OPENED

    enum kf_event_kind:
        KF_EVENT_RESPONSE
        KF_EVENT_PUNT
        KF_EVENT_LINK_CLOSED
        KF_EVENT_THROTTLED
        KF_EVENT_ROUTE
        KF_EVENT_REPORT

    enum kf_close:
        KF_CLOSE_BY_US
        KF_CLOSE_EOF
        KF_CLOSE_OS_ERROR
        KF_CLOSE_TIMEOUT
        KF_CLOSE_BAD_FRAME
        KF_CLOSE_BAD_RESPONSE
        KF_CLOSE_CORRELATION

    enum kf_command_kind:
        KF_COMMAND_ADD_LINK
        KF_COMMAND_CLOSE_LINK
        KF_COMMAND_SEND_RAW
        KF_COMMAND_PROGRAM
        KF_COMMAND_ROUTE
        KF_COMMAND_TOPIC
        KF_COMMAND_PRODUCER_ID
        KF_COMMAND_MUTE
        KF_COMMAND_VERDICT
        KF_COMMAND_THAW
        KF_COMMAND_FAIL_QUEUE

    enum kf_verdict:
        KF_VERDICT_FAIL
        KF_VERDICT_SUCCEED
        KF_VERDICT_SPLIT
        KF_VERDICT_RENUMBER

    ctypedef struct kf_batch
    ctypedef struct kf_queue
    ctypedef struct kf_link

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

    ctypedef struct kf_row:
        int64_t queue_id
        int64_t serial
        int64_t generation
        int64_t base_offset
        int32_t base_sequence
        int32_t record_count
        int32_t attempts
        int32_t slice
        int16_t error_code
        bint doubt

    ctypedef struct kf_event:
        kf_event* next
        int kind
        int32_t link_id
        int32_t code
        int64_t detail
        int64_t token
        uint8_t* bytes
        size_t size
        kf_row* rows
        int row_count

    ctypedef struct kf_command:
        kf_command* next
        int kind
        int verdict
        kf_link* link
        kf_queue* queue
        kf_topic* topic
        int32_t link_id
        int32_t flags
        int32_t slice
        int64_t serial
        int64_t generation
        int64_t token
        int64_t producer_id
        int64_t base_offset
        int64_t timestamp_ms
        double at
        int32_t base_sequence
        int32_t pos
        int16_t epoch
        int16_t version
        int32_t error_code
        int32_t outcome
        uint8_t* bytes
        size_t size

    enum:
        KF_HISTOGRAM_BUCKETS

    ctypedef struct kf_histogram:
        int64_t buckets[40]
        int64_t count
        double sum

    ctypedef struct kf_stats:
        int64_t records_acked
        int64_t records_failed
        int64_t batches_acked
        int64_t batches_failed
        int64_t requests
        int64_t bytes_out
        int64_t bytes_in
        int64_t retries
        int64_t punts
        int64_t splits
        int64_t expired_batches
        int64_t throttle_ms
        int64_t blocked
        kf_histogram queue_time
        kf_histogram request_time
        kf_histogram batch_bytes

    ctypedef struct kf_plane:
        kf_env env
        kf_pool pool
        size_t batch_size
        size_t seal_size
        size_t max_request_size
        size_t coalesce_bytes
        size_t max_frame
        double linger
        double delivery_timeout
        double request_timeout
        int max_in_flight
        int codec
        bint idempotent
        bint acks_zero
        kf_mutex lock
        kf_queue* queues
        kf_batch* oldest
        int64_t next_generation
        kf_atomic_int wake_level
        kf_atomic_int flushing
        kf_atomic_int closed
        kf_stats stats

    void kf_plane_init(kf_plane* plane, const kf_env* env, size_t buffer_memory)
    void kf_plane_destroy(kf_plane* plane)
    void kf_plane_notify(kf_plane* plane, kf_queue* queue, int level)
    void kf_plane_wake(kf_plane* plane, int level)
    kf_queue* kf_plane_take_inbox(kf_plane* plane)
    kf_command* kf_command_new(int kind)
    void kf_plane_command(kf_plane* plane, kf_command* command)
    kf_command* kf_plane_take_commands(kf_plane* plane)
    void kf_command_free(kf_command* command)
    kf_event* kf_event_new(int kind, int32_t link_id)
    kf_row* kf_event_row(kf_event* event)
    void kf_plane_event(kf_plane* plane, kf_event* event)
    kf_event* kf_plane_take_events(kf_plane* plane)
    void kf_event_free(kf_event* event)
    bint kf_plane_has_news(kf_plane* plane, int level)
    int kf_plane_overdue(kf_plane* plane, double cutoff, kf_queue** queues, int capacity,
                         double* next)
    int64_t kf_plane_serial(kf_plane* plane)
    bint kf_plane_flushed(kf_plane* plane, int64_t serial)
    int64_t kf_plane_pending_before(kf_plane* plane, int64_t serial)
    void kf_plane_wait_batch(kf_plane* plane, kf_batch* batch, double seconds)
    void kf_plane_wait_flushed(kf_plane* plane, int64_t serial, double seconds)
    void kf_plane_observe(kf_plane* plane, kf_batch* batch)
    kf_batch* kf_plane_take_observed(kf_plane* plane)
    void kf_histogram_add(kf_histogram* histogram, double value, double unit)


cdef extern from "kf_queue.h" nogil:
    enum kf_batch_state:
        KF_BATCH_OPEN
        KF_BATCH_WAITING
        KF_BATCH_IN_FLIGHT
        KF_BATCH_SPLIT
        KF_BATCH_ACKED
        KF_BATCH_FAILED

    enum kf_outcome:
        KF_OUTCOME_NONE
        KF_OUTCOME_NOT_SENT
        KF_OUTCOME_REJECTED
        KF_OUTCOME_MAYBE_WRITTEN

    enum kf_local_error:
        KF_ERROR_EXPIRED
        KF_ERROR_CLOSED
        KF_ERROR_ABANDONED

    enum kf_coding:
        KF_CODING_NONE
        KF_CODING_SUBMITTED
        KF_CODING_DONE
        KF_CODING_USELESS

    enum kf_hold:
        KF_HOLD_NOTHING
        KF_HOLD_HANDLE
        KF_HOLD_SLICE

    enum kf_append_result:
        KF_APPEND_OK
        KF_APPEND_FULL
        KF_APPEND_TOO_LARGE

    enum kf_urgency:
        KF_LINGERS
        KF_SENDABLE
        KF_URGENT

    enum kf_place:
        KF_NOWHERE
        KF_IN_READY
        KF_IN_LINGERING
        KF_IN_UNROUTED

    enum:
        KF_TOPIC_NAME
        KF_TOPIC_COMPACT_NAME
        KF_TOPIC_ID
        KF_TOPIC_FORMATS

    ctypedef struct kf_topic:
        uint8_t* field[3]
        size_t field_size[3]
        kf_queue** queues
        int32_t partition_count
        int32_t sticky
        int64_t sticky_left
        uint64_t random

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
        bint doubt
        int16_t last_error
        int64_t last_offset
        bint crc_known
        uint32_t records_crc
        int attempts
        int64_t order
        int32_t slice
        int64_t base_offset
        int64_t append_time_ms
        int32_t error_code
        int32_t outcome
        kf_batch* parent
        kf_batch* children
        kf_batch* sibling
        int32_t first_index
        kf_atomic_int watched
        kf_atomic_int listed
        int32_t handles
        int32_t seen
        int32_t bulk_records
        bint counted

    ctypedef struct kf_queue:
        kf_mutex lock
        kf_plane* plane
        kf_topic* topic
        int64_t id
        int32_t partition
        kf_atomic_int load
        kf_atomic_int available
        kf_queue* registered
        kf_queue* inbox_next
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
        bint hole
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
        int64_t records_acked
        int64_t bytes_acked
        int64_t records_failed

    void kf_queue_init(kf_queue* queue, kf_plane* plane, kf_topic* topic, int64_t id,
                       int32_t partition)
    void kf_queue_destroy(kf_queue* queue)
    int kf_queue_append(kf_queue* queue, const kf_record* record, int64_t timestamp_ms, int hold,
                        kf_batch** batch, int32_t* index)
    void kf_queue_kick(kf_queue* queue, kf_batch* batch)
    kf_batch* kf_queue_take_sealed(kf_queue* queue, bint open, size_t limit, size_t seal_size)
    bint kf_queue_look(kf_queue* queue, int* urgency, double* opened)
    kf_batch* kf_queue_take_overdue(kf_queue* queue, double cutoff)
    void kf_queue_return(kf_queue* queue, kf_batch* batch)
    kf_batch* kf_queue_take_first(kf_queue* queue)
    kf_batch* kf_queue_take_unresolved(kf_queue* queue, int64_t serial, int32_t slice)
    void kf_queue_renumber(kf_queue* queue, int64_t serial, int32_t slice, int64_t producer_id,
                           int16_t epoch, int32_t base_sequence)
    bint kf_queue_split(kf_queue* queue, kf_batch* batch, size_t size)
    bint kf_leaves_doubt(int16_t error_code)
    int32_t kf_sequence_after(int32_t base_sequence, int32_t record_count)
    void kf_batch_end(kf_batch* batch, int state, int32_t error_code, int32_t outcome,
                      int64_t base_offset, int64_t append_time_ms)
    void kf_batch_release_memory(kf_batch* batch)
    void kf_batch_ref(kf_batch* batch)
    void kf_batch_unref(kf_batch* batch)
    bint kf_batch_is_done(kf_batch* batch)
    kf_batch* kf_batch_resolve(kf_batch* batch, int32_t* index)
    size_t kf_batch_records_size(const kf_batch* batch)
    void kf_batch_gather(const kf_batch* batch, uint8_t* out)
    void kf_queue_coded(kf_queue* queue, kf_batch* batch, kf_slab* coded)


cdef extern from "kf_murmur2.h" nogil:
    int32_t kf_partition_for_key(const uint8_t* key, size_t len, int32_t partition_count)


cdef extern from "kf_link.h" nogil:
    enum:
        KF_LINK_EVENTS
        KF_IO_AGAIN
        KF_IO_ERROR
        KF_REQUEST_RAW
        KF_REQUEST_PRODUCE
        KF_TRACE_OPEN
        KF_TRACE_SENT
        KF_TRACE_RECEIVED
        KF_TRACE_PUNT
        KF_TRACE_CLOSE
        KF_TRACE_QUEUED

    ctypedef struct kf_link_io:
        int64_t (*write)(void* context, const iovec* pieces, int count,
                         int* error) noexcept nogil
        int64_t (*read)(void* context, void* into, size_t size, int* error) noexcept nogil
        void (*close)(void* context) noexcept nogil
        void (*dispose)(void* context) noexcept nogil
        void* context

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
        int batch_count

    ctypedef struct kf_trace:
        double at
        int kind
        int32_t correlation_id
        int64_t serial
        int64_t size

    ctypedef struct kf_link:
        kf_link* next
        int32_t id
        int32_t node_id
        kf_link_io io
        int fd
        bint closed
        bint want_write
        bint readable
        int32_t next_correlation_id
        kf_request* first
        kf_request* unwritten
        int produce_in_flight
        double round_trip
        uint8_t* prefix
        size_t prefix_size
        int32_t correlation_pos
        int16_t produce_version
        bint flexible
        int topic_format
        double muted_until
        double paced_until
        int urgent
        kf_queue* ready
        kf_queue* ready_last
        kf_queue* lingering
        kf_queue* lingering_last
        size_t filled
        kf_trace trace[1024]
        uint32_t trace_count
        int64_t bytes_out
        int64_t bytes_in
        int64_t requests
        int64_t records_out
        kf_histogram request_time

    kf_link* kf_link_new(int32_t id, int32_t node_id, const kf_link_io* io, int fd)
    void kf_link_free(kf_link* link)
    void kf_request_free(kf_request* request)
    void kf_link_queue(kf_link* link, kf_request* request, double now)
    bint kf_link_write(kf_link* link, double now, kf_request** ended, int* error)
    int kf_link_read(kf_link* link, int* error)
    int kf_link_frame(kf_link* link, size_t max_frame, const uint8_t** frame, int64_t* size)
    void kf_link_consume(kf_link* link, int64_t size)
    kf_request* kf_link_answered(kf_link* link, int32_t correlation_id, double now)
    kf_request* kf_link_abandon(kf_link* link)
    double kf_link_deadline(const kf_link* link)
    void kf_link_trace(kf_link* link, double at, int kind, int32_t correlation_id,
                       int64_t serial, int64_t size)
