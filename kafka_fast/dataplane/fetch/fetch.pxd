"""What the planes and the user's thread do with fetched records, as declared in src_c/kf_frame.h
and kf_fetch.h.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_fast.dataplane.core.structs cimport *

cdef extern from "kf_queue.h" nogil:
    enum:
        KF_TOPIC_NAME
        KF_TOPIC_COMPACT_NAME
        KF_TOPIC_ID

cdef enum:
    FETCH_FIRST_FLEXIBLE = 12
    FETCH_FIRST_WITH_IDS = 13


# How Fetch requests of this version name topics, enum kf_topic_format.
cdef inline int fetch_topic_format(int version) noexcept nogil:
    if version >= FETCH_FIRST_WITH_IDS:
        return KF_TOPIC_ID
    return KF_TOPIC_COMPACT_NAME if version >= FETCH_FIRST_FLEXIBLE else KF_TOPIC_NAME


cdef extern from "kf_sync.h" nogil:
    int64_t kf_get_long(kf_atomic_long* value)
    void kf_set_long(kf_atomic_long* value, int64_t to)
    int64_t kf_add_long(kf_atomic_long* value, int64_t by)


cdef extern from "kf_frame.h" nogil:
    size_t kf_budget_reserve(kf_budget* budget, size_t most, size_t least, bint beyond)
    void kf_budget_return(kf_budget* budget, size_t size)
    kf_budget_use kf_budget_used(kf_budget* budget)
    kf_frame* kf_frame_new(kf_budget* budget, size_t size, size_t trusted)
    bint kf_frame_grow(kf_frame* frame)
    void kf_frame_ref(kf_frame* frame)
    void kf_frame_unref(kf_frame* frame)
    void kf_frame_buffer(kf_frame* frame, int32_t chunks)


cdef extern from "kf_fetch.h" nogil:
    kf_fetcher* kf_fetcher_new(kf_plane* plane, size_t buffer_bytes)
    void kf_fetcher_free(kf_fetcher* fetcher)
    kf_chunk* kf_chunk_new(kf_frame* frame, kf_stream* stream, int32_t aborted_count)
    void kf_chunk_done(kf_chunk* chunk)
    void kf_chunk_free(kf_chunk* chunk)
    kf_stream* kf_stream_new(int64_t id, int32_t topic_order, int32_t partition, int64_t end)
    bint kf_stream_name(kf_stream* stream, int topic_format, const uint8_t* field, size_t size)
    void kf_stream_ref(kf_stream* stream)
    void kf_stream_unref(kf_stream* stream)
    void kf_fetcher_arrive(kf_fetcher* fetcher, kf_chunk* chunks)
    void kf_fetcher_want(kf_fetcher* fetcher, kf_stream* stream, int64_t generation)
    kf_chunk* kf_fetcher_take(kf_fetcher* fetcher, int most)
    bint kf_fetcher_has_arrivals(kf_fetcher* fetcher)
    kf_session* kf_session_new()
    void kf_session_free(kf_session* session)
    void kf_session_clear(kf_session* session)
    kf_entry* kf_session_add(kf_session* session, kf_stream* stream)
    void kf_session_remove(kf_session* session, int32_t place)
    bint kf_session_index(kf_session* session)
    int32_t kf_session_find(const kf_session* session, int32_t hint, const uint8_t* topic,
                            size_t topic_size, int32_t partition)
