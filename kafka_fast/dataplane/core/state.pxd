"""What callers, data plane and control plane do with what they share, as declared in src_c/."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kafka_fast._wire.layout cimport kf_record
from kafka_fast.dataplane.core.commands cimport *
from kafka_fast.dataplane.core.events cimport *
from kafka_fast.dataplane.core.structs cimport *


cdef extern from "kf_sync.h" nogil:
    int32_t kf_get(kf_atomic_int* value)
    void kf_set(kf_atomic_int* value, int32_t to)
    int32_t kf_swap(kf_atomic_int* value, int32_t to)
    int32_t kf_add(kf_atomic_int* value, int32_t by)
    int64_t kf_get_long(kf_atomic_long* value)
    void kf_set_long(kf_atomic_long* value, int64_t to)
    int64_t kf_counted(const kf_counter* counter)
    void kf_count(kf_counter* counter, int64_t by)
    double kf_summed(const kf_sum* sum)
    void kf_fence()
    void kf_lock(kf_mutex* mutex)
    void kf_unlock(kf_mutex* mutex)


cdef extern from "kf_pool.h" nogil:
    kf_slab* kf_pool_take(kf_pool* pool, size_t size, bint beyond)
    void kf_pool_give(kf_pool* pool, kf_slab* chain)
    void kf_pool_wait(kf_pool* pool, size_t size, double seconds)
    bint kf_pool_has_room(kf_pool* pool, size_t size)
    size_t kf_pool_reserved(kf_pool* pool)


cdef extern from "kf_plane.h" nogil:
    enum kf_wake_level:
        KF_WAKE_NOBODY
        KF_WAKE_FULL
        KF_WAKE_SENDABLE
        KF_WAKE_OPENED

    ctypedef struct kf_misfit:
        kf_misfit_kind kind
        int32_t place
        int64_t asked
        bint was_well

    enum:
        KF_HISTOGRAM_BUCKETS

    void kf_plane_init(kf_plane* plane, const kf_env* env)
    void kf_plane_destroy(kf_plane* plane)
    void kf_plane_wake(kf_plane* plane, int level)
    kf_command* kf_command_new(kf_side side)
    void kf_plane_command(kf_plane* plane, kf_command* command)
    kf_command* kf_plane_take_commands(kf_plane* plane)
    void kf_command_free(kf_command* command)
    void kf_plane_refuse(kf_plane* plane, const kf_command* command, int kind)
    kf_event* kf_event_new(kf_event_kind kind)
    kf_event* kf_event_unanswered(int32_t link_id, int64_t token, int32_t reason)
    kf_event* kf_event_bad_answer(int32_t link_id, int32_t request, int16_t version,
                                  const uint8_t* frame, size_t size, const kf_misfit* misfit)
    void kf_append_number(kf_numbers* numbers, int64_t number)
    bint kf_bytes_copy(kf_bytes* bytes, const uint8_t* data, size_t size)
    void kf_heartbeat_free(kf_heartbeat* heartbeat)
    void kf_plane_set_alive(kf_plane* plane, double until)
    double kf_plane_alive(kf_plane* plane)
    void kf_plane_event(kf_plane* plane, kf_event* event)
    kf_event* kf_plane_take_events(kf_plane* plane)
    void kf_event_free(kf_event* event)
    bint kf_plane_has_news(kf_plane* plane, int level)
    kf_node* kf_plane_node(kf_plane* plane, int32_t id)
    void kf_plane_wake_users(kf_plane* plane)
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
        KF_ERROR_STOPPED
        KF_ERROR_ABORTED

    enum kf_coding:
        KF_CODING_NONE
        KF_CODING_SUBMITTED
        KF_CODING_DONE
        KF_CODING_USELESS

    enum kf_append_flags:
        KF_HOLD_NOTHING
        KF_HOLD_HANDLE
        KF_LEAVE_FULL

    enum kf_append_result:
        KF_APPEND_OK
        KF_APPEND_FULL
        KF_APPEND_TOO_LARGE
        KF_APPEND_NEXT

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

    int kf_queue_append(kf_queue* queue, const kf_record* record, int64_t timestamp_ms, int flags,
                        kf_batch** batch, int32_t* index)
    int kf_queue_append_run(kf_queue* queue, const kf_record* records,
                            const int64_t* timestamps_ms, int32_t count, int flags,
                            kf_batch** batch, int32_t* index, int32_t* done)
    void kf_queue_drop_handles(kf_queue* queue, kf_batch* batch, int32_t count)
    void kf_queue_forget_bulk(kf_queue* queue, kf_batch* batch, int32_t count)
    void kf_queue_urge(kf_queue* queue, kf_batch* batch)
    kf_batch* kf_queue_take_sealed(kf_queue* queue, bint open, size_t limit, size_t seal_size)
    bint kf_queue_look(kf_queue* queue, int* urgency, double* opened)
    kf_batch* kf_queue_take_overdue(kf_queue* queue, double cutoff)
    void kf_queue_return(kf_queue* queue, kf_batch* batch)
    kf_batch* kf_queue_take_first(kf_queue* queue)
    kf_batch* kf_queue_take_unresolved(kf_queue* queue, int64_t serial, int32_t slice)
    kf_batch* kf_queue_find_unresolved(kf_queue* queue, int64_t serial, int32_t slice)
    void kf_queue_renumber(kf_queue* queue, int64_t serial, int32_t slice, int64_t producer_id,
                           int16_t epoch, int32_t base_sequence)
    bint kf_queue_split(kf_queue* queue, kf_batch* batch, size_t size)
    bint kf_maybe_written(int16_t error_code)
    int kf_batch_outcome(kf_batch* batch)
    int32_t kf_sequence_after(int32_t base_sequence, int32_t record_count)
    void kf_batch_end(kf_batch* batch, int state, int32_t error_code, int32_t outcome,
                      int64_t base_offset, int64_t append_time_ms)
    void kf_batch_release_memory(kf_batch* batch)
    void kf_batch_explain(kf_batch* batch, uint8_t* detail, size_t size)
    void kf_batch_ref(kf_batch* batch)
    void kf_batch_unref(kf_batch* batch)
    bint kf_batch_is_done(kf_batch* batch)
    bint kf_records_are_done(kf_batch* batch, int32_t index, int32_t count)
    kf_batch* kf_batch_resolve(kf_batch* batch, int32_t* index)
    size_t kf_batch_records_size(const kf_batch* batch)
    void kf_batch_gather(const kf_batch* batch, uint8_t* out)
    void kf_queue_coded(kf_queue* queue, kf_batch* batch, kf_slab* coded)


cdef extern from "kf_producer.h" nogil:
    kf_producer* kf_producer_new(kf_plane* plane, size_t buffer_memory)
    void kf_producer_close(kf_producer* producer)
    void kf_producer_fail_all(kf_producer* producer)
    void kf_producer_hold(kf_producer* producer)
    kf_topic* kf_topic_new(kf_producer* producer, uint64_t seed)
    bint kf_topic_grow(kf_producer* producer, kf_topic* topic, int32_t count, int64_t first_id)
    void kf_topic_resize(kf_topic* topic, int32_t count)
    void kf_topic_limit(kf_producer* producer, kf_topic* topic, size_t batch_limit,
                        size_t wire_limit)
    size_t kf_topic_seal_size(const kf_producer* producer, kf_topic* topic)
    void kf_producer_notify(kf_producer* producer, kf_queue* queue, int level)
    void kf_producer_urge(kf_producer* producer)
    kf_queue* kf_producer_take_inbox(kf_producer* producer)
    kf_queue* kf_producer_queues(kf_producer* producer)
    int kf_producer_overdue(kf_producer* producer, double cutoff, kf_queue** queues, int capacity,
                            double* next)
    bint kf_producer_oldest(kf_producer* producer, int64_t* queue_id, double* created)
    int64_t kf_producer_serial(kf_producer* producer)
    bint kf_producer_flushed(kf_producer* producer, int64_t serial)
    int64_t kf_producer_pending_before(kf_producer* producer, int64_t serial)
    void kf_producer_wait_records(kf_producer* producer, kf_batch* batch, int32_t index,
                                  int32_t count, double seconds)
    void kf_producer_wait_flushed(kf_producer* producer, int64_t serial, double seconds)
    void kf_producer_observe(kf_producer* producer, kf_batch* batch)
    kf_batch* kf_producer_take_observed(kf_producer* producer)
