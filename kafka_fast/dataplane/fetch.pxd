"""Fetch answers, chunks, streams and sessions, as declared in src_c/kf_frame.h and kf_fetch.h. See
the headers there for the meaning of each field and for who may touch it.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t

from kafka_fast.dataplane.structs cimport kf_atomic_int, kf_link, kf_plane


cdef extern from "kf_sync.h" nogil:
    ctypedef long kf_atomic_long
    int64_t kf_get_long(kf_atomic_long* value)
    void kf_set_long(kf_atomic_long* value, int64_t to)
    int64_t kf_add_long(kf_atomic_long* value, int64_t by)


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

    size_t kf_budget_reserve(kf_budget* budget, size_t most, size_t least, bint beyond)
    void kf_budget_return(kf_budget* budget, size_t size)
    kf_budget_use kf_budget_used(kf_budget* budget)
    kf_frame* kf_frame_new(kf_budget* budget, size_t size, size_t trusted)
    bint kf_frame_grow(kf_frame* frame)
    void kf_frame_ref(kf_frame* frame)
    void kf_frame_unref(kf_frame* frame)
    void kf_frame_buffer(kf_frame* frame, int32_t chunks)


cdef extern from "kf_fetch.h" nogil:
    ctypedef struct kf_session

    ctypedef struct kf_aborted:
        int64_t producer_id
        int64_t first_offset

    ctypedef struct kf_stream:
        int64_t id
        int32_t partition
        int32_t topic_order
        kf_atomic_long wanted
        kf_atomic_long unread
        kf_atomic_long high_watermark
        kf_atomic_long last_stable_offset
        kf_atomic_long log_start_offset
        kf_stream* next
        uint8_t* field[3]
        size_t field_size[3]
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
        int64_t generation
        int64_t offset
        int32_t leader_epoch
        int32_t last_epoch
        uint32_t seen

    ctypedef struct kf_session:
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
        int32_t turn
        bint in_flight
        bint full
        size_t reserved
        double back_off
        double not_before
        kf_frame* frame

    ctypedef struct kf_fetch_stats:
        int64_t fetches
        int64_t full_fetches
        int64_t bytes
        int64_t chunks
        int64_t empty_answers
        int64_t sessions_begun
        int64_t sessions_lost
        int64_t punts
        int64_t dropped_chunks
        int64_t broken_chunks
        int64_t overdrafts
        int64_t repeats

    ctypedef struct kf_repeat:
        kf_repeat* next
        int64_t token
        int32_t link_id
        uint8_t* frame
        size_t frame_size
        uint8_t* expected
        size_t expected_size
        double period
        double timeout
        double due
        bint in_flight

    ctypedef struct kf_fetcher:
        kf_plane* plane
        kf_budget* budget
        size_t max_bytes
        size_t partition_max_bytes
        kf_stream* streams
        kf_repeat* repeats
        kf_stream** scratch
        int32_t scratch_capacity
        kf_fetch_stats stats

    kf_fetcher* kf_fetcher_new(kf_plane* plane, size_t buffer_bytes)
    void kf_fetcher_free(kf_fetcher* fetcher)
    kf_chunk* kf_chunk_new(kf_frame* frame, kf_stream* stream, int32_t aborted_count)
    void kf_chunk_done(kf_chunk* chunk)
    void kf_chunk_free(kf_chunk* chunk)
    kf_stream* kf_stream_new(int64_t id, int32_t topic_order, int32_t partition)
    void kf_stream_ref(kf_stream* stream)
    void kf_stream_unref(kf_stream* stream)
    void kf_fetcher_arrive(kf_fetcher* fetcher, kf_chunk* chunks)
    void kf_fetcher_want(kf_fetcher* fetcher, kf_stream* stream, int64_t generation)
    kf_chunk* kf_fetcher_take(kf_fetcher* fetcher, int most)
    bint kf_fetcher_wait(kf_fetcher* fetcher, double seconds)
    void kf_fetcher_interrupt(kf_fetcher* fetcher)
    void kf_fetcher_set_alive(kf_fetcher* fetcher, double until)
    double kf_fetcher_alive(kf_fetcher* fetcher)
    kf_session* kf_session_new()
    void kf_session_free(kf_session* session)
    void kf_session_clear(kf_session* session)
    kf_entry* kf_session_add(kf_session* session, kf_stream* stream)
    void kf_session_remove(kf_session* session, int32_t place)
    bint kf_session_index(kf_session* session)
    int32_t kf_session_find(const kf_session* session, int32_t hint, const uint8_t* topic,
                            size_t topic_size, int32_t partition)
