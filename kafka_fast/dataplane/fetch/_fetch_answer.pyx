"""The steady-state form of Fetch: answers.

An answer is read twice. The first time as a whole: it must be well formed to its last byte, and
name only partitions that the session asks for, none of them twice. A full answer names them all.
The second time it is read partition by partition. Plain records become a chunk, and their batch
headers give the stream's next position. A part that is not plain (an error, a preferred replica, a
diverging epoch, a hint at another leader) freezes its stream, and the frame goes up. Parts that
were asked for under another start of their stream are dropped.

Called in the data plane thread; takes no GIL, knows no policy.
"""

from libc.stdint cimport INT32_MAX, int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memset

from kafka_fast._wire.layout cimport *
from kafka_fast.dataplane.fetch.fetch cimport *
from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *

cdef enum:
    VERSION_SESSIONS = 7
    VERSION_LOG_START_OFFSET = 5
    VERSION_PREFERRED_REPLICA = 11
    ABORTED_SIZE = 16  # bytes of an aborted transaction, tagged fields not counted
    TAG_DIVERGING_EPOCH = 0
    TAG_CURRENT_LEADER = 1
    ERROR_SESSION_NOT_FOUND = 70
    ERROR_SESSION_EPOCH = 71
    ERROR_SESSION_TOPIC_ID = 106

# A partition's part of an answer.
cdef struct part:
    int32_t partition
    int16_t error_code
    int64_t high_watermark
    int64_t last_stable_offset
    int64_t log_start_offset
    int32_t aborted_count
    kf_reader aborted        # where the aborted transactions stand
    int32_t preferred_replica
    const uint8_t* records
    int64_t records_size     # 0 for null
    bint hint                # tells of a diverging epoch, or of another leader

# What stands before the topics.
cdef struct heading:
    int32_t throttle_ms
    int16_t error_code
    int32_t session_id


# ---- reading ----

cdef int64_t read_count(kf_reader* reader, bint flexible, size_t smallest) noexcept nogil:
    """Read an array's count, -1 for null; more elements than fit into what is left are bad."""
    cdef int64_t count
    if flexible:
        count = <int64_t>kf_read_uvarint(reader) - 1
    else:
        count = kf_read_i32(reader)
    if count < -1 or (count > 0 and <size_t>count > kf_left(reader) // smallest):
        reader.bad = True
    return 0 if reader.bad else count


cdef bint read_hints(kf_reader* reader) noexcept nogil:
    """Skip a partition's tagged fields; returns whether one of them tells where else to fetch."""
    cdef uint32_t count = kf_read_uvarint(reader)
    cdef uint32_t _i, tag
    cdef uint32_t last = 0
    cdef bint hint = False
    if count > kf_left(reader) // 2:
        reader.bad = True
    for _i in range(count):
        tag = kf_read_uvarint(reader)
        if _i > 0 and tag <= last:
            reader.bad = True
        last = tag
        kf_read_span(reader, <int64_t>kf_read_uvarint(reader))
        if reader.bad:
            return False
        hint = hint or tag == TAG_DIVERGING_EPOCH or tag == TAG_CURRENT_LEADER
    return hint


cdef void skip_aborted(kf_reader* reader, bint flexible) noexcept nogil:
    kf_read_span(reader, ABORTED_SIZE)
    if flexible:
        kf_skip_tags(reader)


cdef void read_part(kf_reader* reader, const kf_session* session, part* it) noexcept nogil:
    cdef bint flexible = session.flexible
    cdef int32_t _i
    memset(it, 0, sizeof(part))
    it.log_start_offset = it.preferred_replica = -1
    it.partition = kf_read_i32(reader)
    it.error_code = kf_read_i16(reader)
    it.high_watermark = kf_read_i64(reader)
    it.last_stable_offset = kf_read_i64(reader)
    if session.version >= VERSION_LOG_START_OFFSET:
        it.log_start_offset = kf_read_i64(reader)
    it.aborted_count = <int32_t>max(0, read_count(reader, flexible, ABORTED_SIZE))
    it.aborted = reader[0]
    for _i in range(it.aborted_count):
        skip_aborted(reader, flexible)
        if reader.bad:
            return
    if session.version >= VERSION_PREFERRED_REPLICA:
        it.preferred_replica = kf_read_i32(reader)
    it.records_size = max(0, read_count(reader, flexible, 1))
    it.records = kf_read_span(reader, it.records_size)
    if flexible:
        it.hint = read_hints(reader)


cdef void read_heading(kf_reader* reader, const kf_session* session, heading* it) noexcept nogil:
    memset(it, 0, sizeof(heading))
    kf_read_i32(reader)  # the correlation id, matched already
    if session.flexible:
        kf_skip_tags(reader)
    it.throttle_ms = kf_read_i32(reader)
    if session.version >= VERSION_SESSIONS:
        it.error_code = kf_read_i16(reader)
        it.session_id = kf_read_i32(reader)


# ---- the first time: the whole ----

cdef void find_missing(const kf_session* session, kf_misfit* misfit) noexcept nogil:
    """Say which stream a full answer leaves out."""
    cdef int32_t i
    misfit.kind = KF_MISFIT_MISSING
    for i in range(session.count):
        if session.entries[i].seen != session.answers:
            misfit.asked = session.entries[i].stream.id
            return


cdef bint is_well_formed(kf_session* session, const kf_frame* frame,
                         kf_misfit* misfit) noexcept nogil:
    """Return whether the answer is one to the request in flight, from the first byte to the last;
    else `misfit` says what is wrong.
    """
    cdef kf_reader reader = kf_reader_of(frame.data, frame.size)
    cdef heading head
    cdef part it
    cdef const uint8_t* topic
    cdef size_t topic_size
    cdef int64_t _i, _j
    cdef int32_t place = -1
    cdef int32_t found = 0
    memset(misfit, 0, sizeof(kf_misfit))
    misfit.asked = -1
    misfit.was_well = session.answers > 0
    session.answers += 1
    read_heading(&reader, session, &head)
    for _i in range(read_count(&reader, session.flexible, 2)):
        topic = kf_read_topic(&reader, session.topic_format, &topic_size)
        for _j in range(read_count(&reader, session.flexible, 4)):
            read_part(&reader, session, &it)
            if reader.bad:
                return False
            place = kf_session_find(session, place + 1, topic, topic_size, it.partition)
            if place < 0 or session.entries[place].seen == session.answers:
                misfit.kind = KF_MISFIT_FOREIGN if place < 0 else KF_MISFIT_TWICE
                misfit.place = found
                return False
            session.entries[place].seen = session.answers
            found += 1
        if session.flexible:
            kf_skip_tags(&reader)
        if reader.bad:
            return False
    if session.flexible:
        kf_skip_tags(&reader)
    if reader.bad or kf_left(&reader) != 0:
        return False
    # A full answer names everything, unless it is an error as a whole, or only says that the
    # client is too fast (KIP-219).
    if (not session.full or found == session.count or head.error_code != 0
            or (found == 0 and head.throttle_ms > 0)):
        return True
    find_missing(session, misfit)
    return False


# ---- the second time: what it means ----

cdef kf_chunk* make_chunk(kf_frame* frame, const kf_session* session, const kf_entry* entry,
                          const part* it, const kf_walked* batches) noexcept nogil:
    cdef kf_reader aborted = it.aborted
    cdef kf_chunk* chunk = kf_chunk_new(frame, entry.stream, it.aborted_count)
    cdef int32_t i
    if chunk == NULL:
        return NULL
    chunk.generation = entry.generation
    chunk.asked_offset = entry.offset
    chunk.next_offset = batches.next_offset
    chunk.high_watermark = it.high_watermark
    chunk.last_stable_offset = it.last_stable_offset
    chunk.log_start_offset = it.log_start_offset
    chunk.data = it.records
    chunk.size = it.records_size if batches.broken else batches.size
    chunk.broken = batches.broken
    for i in range(it.aborted_count):
        chunk.aborted[i].producer_id = kf_read_i64(&aborted)
        chunk.aborted[i].first_offset = kf_read_i64(&aborted)
        if session.flexible:
            kf_skip_tags(&aborted)
    kf_add_long(&entry.stream.unread, chunk.size)
    return chunk


cdef bint is_awaited(const kf_entry* entry, const kf_link* link) noexcept nogil:
    """Return whether the stream still waits for what this entry asked for."""
    cdef kf_stream* stream = entry.stream
    return (stream.link == link and stream.generation == entry.generation
            and stream.position == entry.offset and not stream.frozen and not stream.broken
            and entry.generation >= kf_get_long(&stream.wanted))


cdef kf_event* freeze(kf_event* punt, const kf_link* link, kf_stream* stream,
                      int16_t error_code) noexcept nogil:
    """Stop fetching the stream until it is started again, and add it to the event."""
    cdef kf_stream_row* row
    if punt == NULL:
        punt = kf_event_new(KF_EVENT_FETCH_PUNT)
        punt.fetch_punt.link_id = link.id
        punt.fetch_punt.version = link.session.version
    stream.frozen = True
    row = kf_append_stream_row(&punt.fetch_punt.rows)
    row.stream_id = stream.id
    row.generation = stream.generation
    row.error_code = error_code
    row.fetch_position = stream.position
    row.last_epoch = stream.last_epoch
    return punt


cdef kf_chunk* take_part(kf_frame* frame, kf_session* session, const kf_entry* entry,
                         const part* it, bint* leads_nowhere) noexcept nogil:
    """Bring the stream up to date with its part of the answer; return the chunk, if there is one.

    Bytes may lead nowhere: a piece of a batch, or only batches below the position. Brokers send the
    first batch whole (KIP-74), so the next answer would be the same.
    """
    cdef kf_stream* stream = entry.stream
    cdef kf_chunk* chunk
    cdef kf_walked batches
    kf_set_long(&stream.high_watermark, it.high_watermark)
    kf_set_long(&stream.last_stable_offset, it.last_stable_offset)
    kf_set_long(&stream.log_start_offset, it.log_start_offset)
    if it.records_size == 0:
        return NULL
    kf_walk(it.records, it.records_size, entry.offset, &batches)
    if batches.next_offset == entry.offset and not batches.broken:
        leads_nowhere[0] = True
        return NULL
    chunk = make_chunk(frame, session, entry, it, &batches)
    if chunk == NULL:
        return NULL
    if batches.next_offset > entry.offset:
        stream.position = batches.next_offset
        stream.last_epoch = batches.last_epoch
        session.turn_topic = stream.topic_order
        session.turn_partition = stream.partition
    stream.broken = batches.broken
    return chunk


cdef void send_up(sender_state* state, kf_link* link, kf_event* punt,
                  const kf_frame* frame) noexcept nogil:
    if punt == NULL:
        return
    kf_bytes_copy(&punt.fetch_punt.frame, frame.data, frame.size)
    kf_count(&state.plane.fetcher.stats.punts, 1)
    kf_plane_event(state.plane, punt)


cdef void send_up_bad(sender_state* state, kf_link* link, const kf_frame* frame,
                      const kf_misfit* misfit) noexcept nogil:
    """Report what is wrong with an answer; the link is closed next."""
    kf_plane_event(state.plane, kf_event_bad_answer(link.id, KF_REQUEST_FETCH,
                                                    link.session.version, frame.data, frame.size,
                                                    misfit))


cdef void punt_all(sender_state* state, kf_link* link, const kf_frame* frame,
                   int16_t error_code) noexcept nogil:
    """Freeze all streams that were asked for: the whole answer is an error."""
    cdef kf_session* session = link.session
    cdef kf_event* punt = NULL
    cdef int32_t i
    for i in range(session.count):
        if is_awaited(&session.entries[i], link):
            punt = freeze(punt, link, session.entries[i].stream, error_code)
    send_up(state, link, punt, frame)


cdef bint follow_session(kf_fetcher* fetcher, kf_session* session,
                         const heading* head) noexcept nogil:
    """Bring the session up to date with the answer. False: the answer is of another session."""
    if session.version < VERSION_SESSIONS or head.session_id == 0:
        session.id = session.epoch = 0  # the broker keeps no session: the next request is full
    elif session.full:
        session.id = head.session_id
        session.epoch = 1
        kf_count(&fetcher.stats.sessions_begun, 1)
    elif head.session_id != session.id:
        return False
    else:
        session.epoch = 1 if session.epoch == INT32_MAX else session.epoch + 1
    return True


cdef void take_parts(sender_state* state, kf_link* link, kf_frame* frame,
                     fetch_outcome* outcome) noexcept nogil:
    """Deal with the parts of a well-formed answer without an error of its own."""
    cdef kf_reader reader = kf_reader_of(frame.data, frame.size)
    cdef kf_fetch_stats* stats = &state.plane.fetcher.stats
    cdef kf_session* session = link.session
    cdef kf_event* punt = NULL
    cdef kf_chunk* chunks = NULL
    cdef kf_chunk** tail = &chunks
    cdef int32_t count = 0
    cdef int32_t place = -1
    cdef bint leads_nowhere
    cdef kf_entry* entry
    cdef heading head
    cdef part it
    cdef const uint8_t* topic
    cdef size_t topic_size
    cdef int64_t _i, _j
    read_heading(&reader, session, &head)
    for _i in range(read_count(&reader, session.flexible, 2)):
        topic = kf_read_topic(&reader, session.topic_format, &topic_size)
        for _j in range(read_count(&reader, session.flexible, 4)):
            read_part(&reader, session, &it)
            place = kf_session_find(session, place + 1, topic, topic_size, it.partition)
            entry = &session.entries[place]
            if not is_awaited(entry, link):
                kf_count(&stats.dropped_chunks, it.records_size > 0)
            elif it.error_code != 0 or it.preferred_replica >= 0 or it.hint:
                punt = freeze(punt, link, entry.stream, it.error_code)
            else:
                leads_nowhere = False
                tail[0] = take_part(frame, session, entry, &it, &leads_nowhere)
                if leads_nowhere:
                    punt = freeze(punt, link, entry.stream, 0)
                if tail[0] != NULL:
                    kf_count(&stats.bytes, tail[0].size)
                    kf_count(&stats.broken_chunks, tail[0].broken)
                    tail = &tail[0].next
                    count += 1
        if session.flexible:
            kf_skip_tags(&reader)
    send_up(state, link, punt, frame)
    outcome.brought = count > 0
    if count > 0:
        kf_count(&stats.chunks, count)
        kf_frame_buffer(frame, count)
        kf_fetcher_arrive(state.plane.fetcher, chunks)


cdef bint answer_fetch(sender_state* state, kf_link* link, kf_frame* frame,
                       fetch_outcome* outcome) noexcept nogil:
    cdef kf_session* session = link.session
    cdef kf_reader reader = kf_reader_of(frame.data, frame.size)
    cdef heading head
    cdef kf_misfit misfit
    memset(outcome, 0, sizeof(fetch_outcome))
    if not is_well_formed(session, frame, &misfit):
        send_up_bad(state, link, frame, &misfit)
        return False
    read_heading(&reader, session, &head)
    outcome.throttle_ms = max(0, head.throttle_ms)
    if head.error_code != 0:
        if not session.full and (head.error_code == ERROR_SESSION_NOT_FOUND
                                 or head.error_code == ERROR_SESSION_EPOCH
                                 or head.error_code == ERROR_SESSION_TOPIC_ID):
            kf_count(&state.plane.fetcher.stats.sessions_lost, 1)
        else:
            punt_all(state, link, frame, head.error_code)
        if head.error_code == ERROR_SESSION_NOT_FOUND:
            session.id = 0
        kf_session_clear(session)
        return True
    if not follow_session(state.plane.fetcher, session, &head):
        misfit.kind = KF_MISFIT_SESSION
        send_up_bad(state, link, frame, &misfit)
        return False
    take_parts(state, link, frame, outcome)
    return True
