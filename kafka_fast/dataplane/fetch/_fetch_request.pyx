"""The steady-state form of Fetch: requests.

The constant part comes from the control plane as bytes that the table codec made, so field order
and versions are decided there; what changes from fetch to fetch is written here.

    prefix, with max_bytes and session | topics n | topic | partitions n | … | forgotten | suffix

In a session (KIP-227, v7 and up) the first request is *full*: it names every partition. The next
ones are *incremental*: they name what is new or stands elsewhere than the session knows, and what
is to be forgotten. Without sessions each request is full.

Called in the data plane thread; takes no GIL, knows no policy.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc, qsort, realloc
from libc.string cimport memcpy

from kafka_fast._wire.layout cimport kf_put_i32, kf_put_i64, kf_put_i8, kf_put_uvarint
from kafka_fast.dataplane.fetch.fetch cimport *
from kafka_fast.dataplane.core.link cimport *

cdef enum:
    SESSION_SIZE = 8  # session id and epoch, the end of the prefix since v7
    COUNT_MAX = 5  # bytes of an array's count in either form
    PARTITION_MAX = 4 + 4 + 8 + 4 + 8 + 4 + 1
    VERSION_LOG_START_OFFSET = 5
    VERSION_SESSIONS = 7
    VERSION_LEADER_EPOCH = 9
    VERSION_LAST_EPOCH = 12


# ---- which streams ----

cdef bint is_fetched(kf_stream* stream, const kf_link* link) noexcept nogil:
    return (stream.link == link and not stream.paused and not stream.frozen and not stream.broken
            and stream.name[link.session.topic_format] != NULL and stream.position < stream.end
            and stream.generation >= kf_get_long(&stream.wanted))


cdef int32_t gather_streams(kf_fetcher* fetcher, const kf_link* link) noexcept nogil:
    cdef kf_session* session = link.session
    cdef int32_t count = 0
    cdef kf_stream* stream = fetcher.streams
    cdef kf_stream** larger
    if session.routed > fetcher.scratch_capacity:
        larger = <kf_stream**>realloc(fetcher.scratch, 2 * session.routed * sizeof(kf_stream*))
        if larger == NULL:
            return -1
        fetcher.scratch = larger
        fetcher.scratch_capacity = 2 * session.routed
    while stream != NULL:
        if is_fetched(stream, link):
            fetcher.scratch[count] = stream
            count += 1
        stream = stream.next
    return count


cdef int by_topic(const void* left, const void* right) noexcept nogil:
    """Order streams by topic, then partition: each topic stands in a request once."""
    cdef const kf_stream* one = (<const kf_stream**>left)[0]
    cdef const kf_stream* other = (<const kf_stream**>right)[0]
    if one.topic_order != other.topic_order:
        return -1 if one.topic_order < other.topic_order else 1
    return -1 if one.partition < other.partition else one.partition > other.partition


cdef void reverse(kf_stream** streams, int32_t count) noexcept nogil:
    cdef int32_t i
    for i in range(count // 2):
        streams[i], streams[count - 1 - i] = streams[count - 1 - i], streams[i]


cdef void rotate(kf_stream** streams, int32_t count, int32_t first) noexcept nogil:
    """Let `streams[first]` be the first, without a copy: three reversals."""
    reverse(streams, first)
    reverse(streams + first, count - first)
    reverse(streams, count)


cdef void begin_at(kf_stream** streams, int32_t count, int32_t first) noexcept nogil:
    """Order the sorted streams so that `first`'s topic is the first one, from `first` on.

    A broker fills an answer in the order of the request. A partition that is always last may never
    get a turn.
    """
    cdef int32_t start = first
    cdef int32_t end = first
    while start > 0 and streams[start - 1].topic_order == streams[first].topic_order:
        start -= 1
    while end < count and streams[end].topic_order == streams[first].topic_order:
        end += 1
    rotate(streams + start, end - start, first - start)
    rotate(streams, count, start)


# ---- what the session knows of them ----

cdef void note(kf_entry* entry, const kf_stream* stream) noexcept nogil:
    entry.generation = stream.generation
    entry.offset = stream.position
    entry.leader_epoch = stream.leader_epoch
    entry.last_epoch = stream.last_epoch


cdef bint is_news(const kf_entry* entry, const kf_stream* stream) noexcept nogil:
    return (entry.offset != stream.position or entry.leader_epoch != stream.leader_epoch
            or entry.last_epoch != stream.last_epoch)


cdef int32_t whose_turn(const kf_session* session, kf_stream** streams,
                        int32_t count) noexcept nogil:
    """Return the first of the sorted streams behind the one that brought something last."""
    cdef int32_t i
    for i in range(count):
        if (streams[i].topic_order > session.turn_topic
                or (streams[i].topic_order == session.turn_topic
                    and streams[i].partition > session.turn_partition)):
            return i
    return 0


cdef bint list_all(kf_session* session, kf_stream** streams, int32_t count) noexcept nogil:
    """Clear the session, and list each stream in the order of the request. False: no memory."""
    cdef kf_entry* entry
    cdef int32_t i
    kf_session_clear(session)
    qsort(streams, count, sizeof(kf_stream*), by_topic)
    begin_at(streams, count, whose_turn(session, streams, count))
    for i in range(count):
        entry = kf_session_add(session, streams[i])
        if entry == NULL:
            return False
        note(entry, streams[i])
    return kf_session_index(session)


cdef int32_t count_forgotten(kf_link* link) noexcept nogil:
    """Return how many entries are not fetched here any more, or go by another name now."""
    cdef kf_session* session = link.session
    cdef kf_stream* stream
    cdef int32_t count = 0
    cdef int32_t place
    for place in range(session.count):
        stream = session.entries[place].stream
        if not is_fetched(stream, link) or (session.entries[place].name
                                            != stream.name[session.topic_format]):
            session.entries[place].forgotten = True
            count += 1
        else:
            session.entries[place].forgotten = False
            stream.session = session  # another link's session may have had an entry meanwhile
            stream.entry = place
    return count


cdef void take_forgotten(kf_session* session, kf_entry* forgotten) noexcept nogil:
    """Move the entries that are to be forgotten out of the session, with their references."""
    cdef int32_t taken = 0
    cdef int32_t place = session.count - 1
    while place >= 0:
        if session.entries[place].forgotten:
            forgotten[taken] = session.entries[place]
            kf_stream_ref(forgotten[taken].stream)
            kf_session_remove(session, place)
            taken += 1
        place -= 1


cdef int32_t drop_readded(const kf_session* session, kf_entry* forgotten,
                          int32_t count) noexcept nogil:
    """Keep the entries whose partition the session does not ask for by another stream; return how
    many. A broker adds before it forgets, so it would forget a partition that was just added.
    """
    cdef int32_t left = 0
    cdef int32_t i
    for i in range(count):
        if kf_session_find(session, -1, forgotten[i].name.data, forgotten[i].name.size,
                           forgotten[i].stream.partition) < 0:
            forgotten[left], forgotten[i] = forgotten[i], forgotten[left]
            left += 1
    return left


cdef int32_t list_news(kf_session* session, kf_stream** streams, int32_t count) noexcept nogil:
    """Move the streams that are new or changed to the front, and bring their entries up to date;
    return how many, or -1: out of memory.
    """
    cdef kf_entry* entry
    cdef int32_t listed = 0
    cdef int32_t i
    for i in range(count):
        if streams[i].session != session:
            entry = kf_session_add(session, streams[i])
            if entry == NULL:
                return -1
        else:
            entry = &session.entries[streams[i].entry]
            if not is_news(entry, streams[i]):
                entry.generation = streams[i].generation
                continue
        note(entry, streams[i])
        streams[listed] = streams[i]
        listed += 1
    qsort(streams, listed, sizeof(kf_stream*), by_topic)
    return listed


# ---- the request ----

cdef uint8_t* put_count(uint8_t* at, bint flexible, int32_t count) noexcept nogil:
    """Write an array's count in the form of the request's version."""
    return kf_put_uvarint(at, <uint32_t>count + 1) if flexible else kf_put_i32(at, count)


cdef uint8_t* put_name(uint8_t* at, const kf_name* name) noexcept nogil:
    memcpy(at, name.data, name.size)
    return at + name.size


cdef uint8_t* put_partition(uint8_t* at, const kf_session* session, const kf_stream* stream,
                            int32_t max_bytes) noexcept nogil:
    at = kf_put_i32(at, stream.partition)
    if session.version >= VERSION_LEADER_EPOCH:
        at = kf_put_i32(at, stream.leader_epoch)
    at = kf_put_i64(at, stream.position)
    if session.version >= VERSION_LAST_EPOCH:
        at = kf_put_i32(at, stream.last_epoch)
    if session.version >= VERSION_LOG_START_OFFSET:
        at = kf_put_i64(at, -1)
    at = kf_put_i32(at, max_bytes)
    if session.flexible:
        at = kf_put_i8(at, 0)
    return at


cdef uint8_t* put_topics(uint8_t* at, const kf_session* session, kf_stream** streams,
                         int32_t count, int32_t max_bytes) noexcept nogil:
    """Write the array of topics; streams of one topic stand together."""
    cdef int32_t topics = 0
    cdef int32_t i, end
    for i in range(count):
        topics += i == 0 or streams[i].topic_order != streams[i - 1].topic_order
    at = put_count(at, session.flexible, topics)
    i = 0
    while i < count:
        end = i + 1
        while end < count and streams[end].topic_order == streams[i].topic_order:
            end += 1
        at = put_name(at, streams[i].name[session.topic_format])
        at = put_count(at, session.flexible, end - i)
        while i < end:
            at = put_partition(at, session, streams[i], max_bytes)
            i += 1
        if session.flexible:
            at = kf_put_i8(at, 0)
    return at


cdef uint8_t* put_forgotten(uint8_t* at, const kf_session* session, const kf_entry* forgotten,
                            int32_t count) noexcept nogil:
    """Write the array of topics to forget: one partition each, because there are few of them."""
    cdef int32_t i
    at = put_count(at, session.flexible, count)
    for i in range(count):
        at = put_name(at, forgotten[i].name)
        at = put_count(at, session.flexible, 1)
        at = kf_put_i32(at, forgotten[i].stream.partition)
        if session.flexible:
            at = kf_put_i8(at, 0)
    return at


cdef size_t bound_size(const kf_session* session, kf_stream** streams, int32_t count,
                       const kf_entry* forgotten, int32_t forgotten_count) noexcept nogil:
    """Return an upper bound of the request's size."""
    cdef size_t size = session.prefix_size + session.suffix_size + 2 * COUNT_MAX
    cdef int32_t i
    for i in range(count):
        size += streams[i].name[session.topic_format].size + COUNT_MAX + PARTITION_MAX + 1
    for i in range(forgotten_count):
        size += forgotten[i].name.size + COUNT_MAX + 4 + 1
    return size


cdef kf_request* frame_request(kf_link* link, kf_stream** streams, int32_t count,
                               const kf_entry* forgotten, int32_t forgotten_count,
                               int32_t max_bytes, int32_t partition_max_bytes) noexcept nogil:
    """Allocate and write the request, or return NULL."""
    cdef kf_session* session = link.session
    cdef kf_request* request = <kf_request*>calloc(1, sizeof(kf_request))
    cdef uint8_t* at
    if request == NULL:
        return NULL
    request.framing = <uint8_t*>malloc(bound_size(session, streams, count, forgotten,
                                                  forgotten_count))
    request.pieces = <iovec*>malloc(sizeof(iovec))
    if request.framing == NULL or request.pieces == NULL:
        kf_request_free(request)
        return NULL
    memcpy(request.framing, session.prefix, session.prefix_size)
    at = request.framing + session.prefix_size
    if session.version >= VERSION_SESSIONS:
        kf_put_i32(at - SESSION_SIZE, session.id)
        kf_put_i32(at - SESSION_SIZE + 4, session.epoch)
    at = put_topics(at, session, streams, count, partition_max_bytes)
    if session.version >= VERSION_SESSIONS:
        at = put_forgotten(at, session, forgotten, forgotten_count)
    memcpy(at, session.suffix, session.suffix_size)
    at += session.suffix_size
    request.kind = KF_REQUEST_FETCH
    request.answered = True
    request.size = at - request.framing
    request.piece_count = 1
    request.pieces[0].iov_base = request.framing
    request.pieces[0].iov_len = request.size
    kf_put_i32(request.framing, <int32_t>(request.size - 4))
    kf_link_number(link, request)
    kf_put_i32(request.framing + session.max_bytes_pos, max_bytes)
    return request


cdef kf_request* build_fetch(sender_state* state, kf_link* link, int32_t count,
                             int32_t max_bytes) noexcept nogil:
    cdef kf_fetcher* fetcher = state.plane.fetcher
    cdef kf_session* session = link.session
    cdef kf_entry* forgotten = NULL
    cdef int32_t forgotten_count = 0
    cdef int32_t named = 0  # of the forgotten ones, how many the request names
    cdef kf_request* request = NULL
    cdef int32_t i
    session.full = session.version < VERSION_SESSIONS or session.epoch == 0
    if session.full:
        if not list_all(session, fetcher.scratch, count):
            count = -1
    else:
        forgotten_count = count_forgotten(link)
        if forgotten_count > 0:
            forgotten = <kf_entry*>malloc(forgotten_count * sizeof(kf_entry))
            if forgotten == NULL:
                return NULL
            take_forgotten(session, forgotten)
        i = session.count
        count = list_news(session, fetcher.scratch, count)
        if (forgotten_count > 0 or i != session.count) and not kf_session_index(session):
            count = -1
        if count >= 0:
            named = drop_readded(session, forgotten, forgotten_count)
    if count >= 0:
        request = frame_request(link, fetcher.scratch, count, forgotten, named, max_bytes,
                                <int32_t>fetcher.partition_max_bytes)
    for i in range(forgotten_count):
        kf_stream_unref(forgotten[i].stream)
    free(forgotten)
    if request == NULL:
        kf_session_clear(session)  # the broker's session may differ from ours: begin a new one
        return NULL
    request.timeout = state.plane.request_timeout
    return request
