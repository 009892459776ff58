"""The consumer's side of the data plane as an object: streams down, chunks up.

Stream ids are the control plane's. Its commands, which program links and start streams, come from
`consumer._fetch_carrier`. The user's thread takes chunks, and says with `set_generation` and
`set_paused` what it wants. Both hold the GIL here, so the dicts need no lock. The data plane's
thread sees only commands and atomics.
"""

from libc.stdint cimport INT64_MAX, int16_t, int32_t, int64_t

from kafka_fast.dataplane.fetch._chunk cimport chunk_of
from kafka_fast.dataplane.core._plane cimport copy_bytes
from kafka_fast.dataplane.fetch.fetch cimport *
from kafka_fast.dataplane.core.state cimport *

from kafka_fast.errors import UsageError

NO_END = INT64_MAX

cdef enum:
    SESSION_SIZE = 8  # session id and epoch, the end of the prefix since v7
    ISOLATION_SIZE = 1
    MAX_BYTES_SIZE = 4
    FIRST_WITH_SESSIONS = 7


cdef kf_session* session_of(object message) except NULL:
    cdef kf_session* session = kf_session_new()
    cdef int16_t version = message.version
    cdef Py_ssize_t pos = (len(message.prefix) - ISOLATION_SIZE - MAX_BYTES_SIZE
                           - (SESSION_SIZE if version >= FIRST_WITH_SESSIONS else 0))
    if session == NULL:
        raise MemoryError
    try:
        if pos < 0:
            raise ValueError(f"{len(message.prefix)} bytes are no prefix of a Fetch request")
        session.prefix = copy_bytes(message.prefix)
        session.suffix = copy_bytes(message.suffix)
    except BaseException:
        kf_session_free(session)
        raise
    session.prefix_size = len(message.prefix)
    session.suffix_size = len(message.suffix)
    session.max_bytes_pos = <int32_t>pos
    session.version = version
    session.topic_format = fetch_topic_format(version)
    session.flexible = version >= FETCH_FIRST_FLEXIBLE
    session.turn_topic = session.turn_partition = -1
    return session


cdef class Handle:
    def __dealloc__(self):
        if self.stream != NULL:
            kf_stream_unref(self.stream)


cdef class Streams:
    """What a client fetches. One for each data plane, made before that takes its first turn.

    Args:
        plane: the data plane.
        buffer_bytes, max_bytes, partition_max_bytes: See the configuration keys
            fetch.buffer.bytes, fetch.max.bytes, max.partition.fetch.bytes.
    """

    def __cinit__(self, DataPlane plane, *, size_t buffer_bytes, size_t max_bytes,
                  size_t partition_max_bytes):
        if plane.plane.fetcher != NULL:
            raise UsageError("this data plane has its streams already")
        self.fetcher = kf_fetcher_new(plane.plane, buffer_bytes)
        if self.fetcher == NULL:
            raise MemoryError
        self.fetcher.max_bytes = max_bytes
        self.fetcher.partition_max_bytes = partition_max_bytes
        plane.plane.fetcher = self.fetcher
        self.plane = plane
        self.handles = {}
        self.topic_orders = {}

    cdef kf_stream* stream(self, object stream_id) except NULL:
        return (<Handle>self.handles[stream_id]).stream

    # ---- which streams there are ----

    def add_stream(self, int64_t stream_id, str topic, int32_t partition, int64_t end=NO_END):
        """Make a stream; it stands still until it is named and started.

        Args:
            end: offset from which on nothing is fetched; a batch that reaches beyond it comes
                whole, and more batches may come in the same answer.
        """
        cdef kf_command* command
        cdef Handle handle = Handle.__new__(Handle)
        cdef int32_t order = self.topic_orders.setdefault(topic, len(self.topic_orders))
        if stream_id in self.handles:
            raise UsageError(f"there is a stream {stream_id} already")
        handle.stream = kf_stream_new(stream_id, order, partition, end)
        if handle.stream == NULL:
            raise MemoryError
        self.handles[stream_id] = handle
        command = kf_command_new(KF_SIDE_FETCH)
        command.fetch.kind = KF_COMMAND_ADD_STREAM
        command.fetch.add_stream.stream = handle.stream
        kf_stream_ref(handle.stream)
        kf_plane_command(self.plane.plane, command)

    def forget_stream(self, int64_t stream_id):
        """Forget a stream, and what was fetched of it and not taken; behind RemoveStream."""
        cdef Handle handle = self.handles.pop(stream_id)
        with nogil:
            kf_fetcher_want(self.fetcher, handle.stream, INT64_MAX)

    # ---- user's thread: which records are wanted, and which have arrived ----

    def set_paused(self, int64_t stream_id, bint paused):
        """Fetch no more of a stream for a while; what was fetched stays."""
        cdef kf_stream* stream = self.stream(stream_id)
        cdef kf_command* command = kf_command_new(KF_SIDE_FETCH)
        command.fetch.kind = KF_COMMAND_PAUSE_STREAM
        command.fetch.pause_stream.paused = paused
        command.fetch.pause_stream.stream = stream
        kf_stream_ref(stream)
        kf_plane_command(self.plane.plane, command)

    def set_generation(self, int64_t stream_id, int64_t generation):
        """Want only chunks of this generation or a later one.

        Older chunks are freed: those that were not taken yet at once, those to come on arrival.
        """
        cdef kf_stream* stream = self.stream(stream_id)
        with nogil:
            kf_fetcher_want(self.fetcher, stream, generation)

    def take_chunks(self, int most):
        """Return up to `most` chunks, in the order of their arrival."""
        cdef list taken = []
        self.take_chunks_into(taken, most)
        return taken

    def take_chunks_into(self, list found not None, int most):
        """Append up to `most` chunks to `found`. There they stay if a signal raises after the call.
        """
        cdef kf_chunk* chunk = kf_fetcher_take(self.fetcher, most)
        cdef kf_chunk* following
        while chunk != NULL:
            following = chunk.next
            found.append(chunk_of(chunk))
            chunk = following

    @property
    def has_chunks(self):
        """Whether chunks have arrived; each arrival raises the client's wake."""
        return kf_fetcher_has_arrivals(self.fetcher)

    def watermarks(self, int64_t stream_id):
        """Return (high watermark, last stable offset, log start offset) as told last, or -1s."""
        cdef kf_stream* stream = self.stream(stream_id)
        return (kf_get_long(&stream.high_watermark), kf_get_long(&stream.last_stable_offset),
                kf_get_long(&stream.log_start_offset))

    def forget_watermarks(self, int64_t stream_id):
        """Forget a stream's watermarks, which were those of a deleted log."""
        cdef kf_stream* stream = self.stream(stream_id)
        kf_set_long(&stream.high_watermark, -1)
        kf_set_long(&stream.last_stable_offset, -1)
        kf_set_long(&stream.log_start_offset, -1)

    def unread_bytes(self, int64_t stream_id):
        """Return how many fetched bytes of a stream are not done."""
        return kf_get_long(&self.stream(stream_id).unread)

    def stats(self):
        """Return counters, and the budget as it is now in bytes."""
        cdef kf_fetch_stats* stats = &self.fetcher.stats
        cdef kf_budget_use use = kf_budget_used(self.fetcher.budget)
        return {
            "fetches": kf_counted(&stats.fetches),
            "full_fetches": kf_counted(&stats.full_fetches),
            "fetched_bytes": kf_counted(&stats.bytes),
            "chunks": kf_counted(&stats.chunks),
            "empty_answers": kf_counted(&stats.empty_answers),
            "sessions_begun": kf_counted(&stats.sessions_begun),
            "sessions_lost": kf_counted(&stats.sessions_lost),
            "punts": kf_counted(&stats.punts),
            "dropped_chunks": kf_counted(&stats.dropped_chunks),
            "broken_chunks": kf_counted(&stats.broken_chunks),
            "overdrafts": kf_counted(&stats.overdrafts),
            "reserved_bytes": use.reserved,
            "buffered_bytes": use.buffered,
            "pinned_bytes": use.pinned,
            "cached_bytes": use.cached,
        }
