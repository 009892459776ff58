#include "kf_fetch.h"

#include <stdlib.h>
#include <string.h>

/* ---- chunks ---- */

kf_chunk *kf_chunk_new(kf_frame *frame, kf_stream *stream, int32_t aborted_count) {
    kf_chunk *chunk = malloc(sizeof *chunk + (size_t)aborted_count * sizeof chunk->aborted[0]);
    if (chunk == NULL) {
        return NULL;
    }
    memset(chunk, 0, sizeof *chunk);
    chunk->frame = frame;
    chunk->stream = stream;
    chunk->aborted_count = aborted_count;
    kf_frame_ref(frame);
    if (stream != NULL) {
        chunk->stream_id = stream->id;
        kf_stream_ref(stream);
    }
    return chunk;
}

void kf_chunk_done(kf_chunk *chunk) {
    if (chunk->done) {
        return;
    }
    chunk->done = true;
    if (chunk->stream != NULL) {
        kf_add_long(&chunk->stream->unread, -(int64_t)chunk->size);
    }
    kf_frame_read(chunk->frame);
}

void kf_chunk_free(kf_chunk *chunk) {
    kf_chunk_done(chunk);
    kf_frame_unref(chunk->frame);
    if (chunk->stream != NULL) {
        kf_stream_unref(chunk->stream);
    }
    free(chunk);
}

static void free_chunks(kf_chunk *chunks) {
    while (chunks != NULL) {
        kf_chunk *next = chunks->next;
        kf_chunk_free(chunks);
        chunks = next;
    }
}

/* ---- streams ---- */

kf_stream *kf_stream_new(int64_t id, int32_t topic_order, int32_t partition, int64_t end) {
    kf_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) {
        return NULL;
    }
    kf_set(&stream->refs, 1);
    stream->id = id;
    stream->topic_order = topic_order;
    stream->partition = partition;
    stream->end = end;
    stream->generation = -1;
    stream->entry = -1;
    kf_set_long(&stream->high_watermark, -1);
    kf_set_long(&stream->last_stable_offset, -1);
    kf_set_long(&stream->log_start_offset, -1);
    return stream;
}

void kf_stream_ref(kf_stream *stream) {
    kf_add(&stream->refs, 1);
}

void kf_stream_unref(kf_stream *stream) {
    if (kf_add(&stream->refs, -1) == 0) {
        for (int i = 0; i < KF_TOPIC_FORMATS; i++) {
            while (stream->name[i] != NULL) {
                kf_name *name = stream->name[i];
                stream->name[i] = name->older;
                free(name);
            }
        }
        free(stream);
    }
}

bool kf_stream_name(kf_stream *stream, int topic_format, const uint8_t *field, size_t size) {
    kf_name *present = stream->name[topic_format];
    if (present != NULL && present->size == size && memcmp(present->data, field, size) == 0) {
        return true;
    }
    kf_name *name = malloc(sizeof *name + size);
    if (name == NULL) {
        return false;
    }
    name->older = present;
    name->size = size;
    memcpy(name->data, field, size);
    stream->name[topic_format] = name;
    return true;
}

/* ---- arrivals ---- */

kf_fetcher *kf_fetcher_new(kf_plane *plane, size_t buffer_bytes) {
    kf_fetcher *fetcher = calloc(1, sizeof *fetcher);
    if (fetcher == NULL) {
        return NULL;
    }
    fetcher->budget = kf_budget_new(plane, buffer_bytes);
    if (fetcher->budget == NULL) {
        free(fetcher);
        return NULL;
    }
    fetcher->plane = plane;
    kf_mutex_init(&fetcher->lock);
    fetcher->arrivals_tail = &fetcher->arrivals;
    return fetcher;
}

void kf_fetcher_free(kf_fetcher *fetcher) {
    free_chunks(fetcher->arrivals);
    while (fetcher->streams != NULL) {
        kf_stream *stream = fetcher->streams;
        fetcher->streams = stream->next;
        kf_stream_unref(stream);
    }
    free(fetcher->scratch);
    kf_budget_detach(fetcher->budget);
    kf_mutex_destroy(&fetcher->lock);
    free(fetcher);
}

static bool is_wanted(const kf_chunk *chunk) {
    return chunk->generation >= kf_get_long(&chunk->stream->wanted);
}

void kf_fetcher_arrive(kf_fetcher *fetcher, kf_chunk *chunks) {
    kf_chunk *unwanted = NULL;
    kf_lock(&fetcher->lock);
    while (chunks != NULL) {
        kf_chunk *chunk = chunks;
        chunks = chunk->next;
        chunk->next = NULL;
        if (is_wanted(chunk)) {
            *fetcher->arrivals_tail = chunk;
            fetcher->arrivals_tail = &chunk->next;
        } else {
            chunk->next = unwanted;
            unwanted = chunk;
            kf_count(&fetcher->stats.dropped_chunks, 1);
        }
    }
    bool arrived = fetcher->arrivals != NULL;
    kf_unlock(&fetcher->lock);
    if (arrived) {
        kf_plane_wake_users(fetcher->plane);
    }
    free_chunks(unwanted);
}

void kf_fetcher_want(kf_fetcher *fetcher, kf_stream *stream, int64_t generation) {
    kf_chunk *unwanted = NULL;
    kf_chunk **at = &fetcher->arrivals;
    kf_lock(&fetcher->lock);
    kf_set_long(&stream->wanted, generation);
    while (*at != NULL) {
        kf_chunk *chunk = *at;
        if (chunk->stream != stream || is_wanted(chunk)) {
            at = &chunk->next;
            continue;
        }
        *at = chunk->next;
        chunk->next = unwanted;
        unwanted = chunk;
    }
    fetcher->arrivals_tail = at;
    kf_unlock(&fetcher->lock);
    free_chunks(unwanted);
}

kf_chunk *kf_fetcher_take(kf_fetcher *fetcher, int most) {
    kf_chunk *taken;
    kf_chunk **at = &fetcher->arrivals;
    kf_lock(&fetcher->lock);
    for (int i = 0; i < most && *at != NULL; i++) {
        at = &(*at)->next;
    }
    taken = at == &fetcher->arrivals ? NULL : fetcher->arrivals;
    if (taken != NULL) {
        fetcher->arrivals = *at;
        *at = NULL;
        if (fetcher->arrivals == NULL) {
            fetcher->arrivals_tail = &fetcher->arrivals;
        }
    }
    kf_unlock(&fetcher->lock);
    return taken;
}

bool kf_fetcher_has_arrivals(kf_fetcher *fetcher) {
    kf_lock(&fetcher->lock);
    bool arrived = fetcher->arrivals != NULL;
    kf_unlock(&fetcher->lock);
    return arrived;
}

/* ---- sessions ---- */

kf_session *kf_session_new(void) {
    kf_session *session = calloc(1, sizeof *session);
    if (session != NULL) {
        session->piece = KF_PIECE_MIN;
    }
    return session;
}

/* Unlink the stream from its entry here. The entry of a stream that has moved on is another
 * session's. */
static void forget_entry(const kf_session *session, kf_stream *stream) {
    if (stream->session == session) {
        stream->session = NULL;
        stream->entry = -1;
    }
}

void kf_session_clear(kf_session *session) {
    for (int32_t i = 0; i < session->count; i++) {
        kf_stream *stream = session->entries[i].stream;
        forget_entry(session, stream);
        kf_stream_unref(stream);
    }
    session->count = 0;
    session->epoch = 0;
}

void kf_session_free(kf_session *session) {
    kf_session_clear(session);
    if (session->successor != NULL) {
        kf_session_free(session->successor);
    }
    if (session->frame != NULL) {
        kf_frame_unref(session->frame);
    }
    free(session->entries);
    free(session->table);
    free(session->prefix);
    free(session->suffix);
    free(session);
}

kf_entry *kf_session_add(kf_session *session, kf_stream *stream) {
    if (session->count == session->capacity) {
        int32_t capacity = session->capacity == 0 ? 16 : session->capacity * 2;
        kf_entry *larger = realloc(session->entries, (size_t)capacity * sizeof *larger);
        if (larger == NULL) {
            return NULL;
        }
        session->entries = larger;
        session->capacity = capacity;
    }
    kf_entry *entry = &session->entries[session->count];
    memset(entry, 0, sizeof *entry);
    entry->stream = stream;
    entry->name = stream->name[session->topic_format];
    stream->session = session;
    stream->entry = session->count++;
    kf_stream_ref(stream);
    return entry;
}

void kf_session_remove(kf_session *session, int32_t place) {
    kf_stream *stream = session->entries[place].stream;
    forget_entry(session, stream);
    kf_stream_unref(stream);
    session->count--;
    if (place != session->count) {
        session->entries[place] = session->entries[session->count];
        stream = session->entries[place].stream;
        if (stream->session == session) {
            stream->entry = place;
        }
    }
}

static uint32_t hash_of(const uint8_t *topic, size_t topic_size, int32_t partition) {
    uint32_t hash = 2166136261u; /* FNV-1a: names are short */
    for (size_t i = 0; i < topic_size; i++) {
        hash = (hash ^ topic[i]) * 16777619u;
    }
    hash = (hash ^ (uint32_t)partition) * 2654435761u;
    return hash ^ hash >> 16;
}

bool kf_session_index(kf_session *session) {
    int32_t size = 16;
    while (size < session->count * 2) {
        size *= 2;
    }
    if (size != session->table_size) {
        int32_t *table = malloc((size_t)size * sizeof *table);
        if (table == NULL) {
            return false;
        }
        free(session->table);
        session->table = table;
        session->table_size = size;
    }
    memset(session->table, 0xff, (size_t)size * sizeof *session->table);
    for (int32_t i = 0; i < session->count; i++) {
        const kf_entry *entry = &session->entries[i];
        uint32_t at = hash_of(entry->name->data, entry->name->size, entry->stream->partition);
        while (session->table[at & (uint32_t)(size - 1)] >= 0) {
            at++;
        }
        session->table[at & (uint32_t)(size - 1)] = i;
    }
    return true;
}

static bool is_of(const kf_entry *entry, const uint8_t *topic, size_t size, int32_t partition) {
    return entry->stream->partition == partition && entry->name->size == size &&
           memcmp(entry->name->data, topic, size) == 0;
}

int32_t kf_session_find(const kf_session *session, int32_t hint, const uint8_t *topic,
                        size_t topic_size, int32_t partition) {
    if (hint >= 0 && hint < session->count &&
        is_of(&session->entries[hint], topic, topic_size, partition)) {
        return hint;
    }
    if (session->count == 0) {
        return -1;
    }
    uint32_t mask = (uint32_t)(session->table_size - 1);
    for (uint32_t at = hash_of(topic, topic_size, partition);; at++) {
        int32_t place = session->table[at & mask];
        if (place < 0 || is_of(&session->entries[place], topic, topic_size, partition)) {
            return place;
        }
    }
}
