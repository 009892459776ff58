"""A partition's piece of a Fetch answer, as the user's thread holds it.

Cython code reads `chunk.data` and its neighbours in C; the properties are for tests and for people.
The bytes are valid as long as the Chunk lives, so code that hands out views of them keeps the
Chunk.

Thread: any, one at a time.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from kafka_fast.dataplane.fetch.fetch cimport (
    kf_chunk_done,
    kf_chunk_free,
    kf_chunk_new,
    kf_frame_new,
    kf_frame_unref,
)
from kafka_fast.dataplane.core.structs cimport kf_chunk, kf_frame


cdef class Chunk:
    """Record batches of one stream, as they stand in a Fetch answer.

    Made by `chunk_from_bytes`, or by the data plane.
    """

    def __init__(self, *arguments, **named):
        raise TypeError("chunks are made by the data plane, or by chunk_from_bytes")

    @property
    def stream_id(self):
        """The stream, as the control plane numbers it."""
        return self.chunk.stream_id

    @property
    def generation(self):
        """Of the stream when this was asked for."""
        return self.chunk.generation

    @property
    def asked_offset(self):
        """Records below it are not wanted."""
        return self.chunk.asked_offset

    @property
    def next_offset(self):
        """The fetch position behind the chunk, by its batch headers."""
        return self.chunk.next_offset

    @property
    def high_watermark(self):
        """Offset behind the last record that is on all in-sync replicas; -1: not told."""
        return self.chunk.high_watermark

    @property
    def last_stable_offset(self):
        """Offset behind the last record whose transaction has ended; -1: not told."""
        return self.chunk.last_stable_offset

    @property
    def log_start_offset(self):
        """Offset of the first record that is still there; -1: not told."""
        return self.chunk.log_start_offset

    @property
    def broken(self):
        """Whether `data` ends with bytes that are no record batch."""
        return bool(self.chunk.broken)

    @property
    def aborted(self):
        """Aborted transactions as (producer id, first offset), in the broker's order."""
        return [(self.chunk.aborted[i].producer_id, self.chunk.aborted[i].first_offset)
                for i in range(self.chunk.aborted_count)]

    @property
    def data(self):
        """A copy of the record batches."""
        return PyBytes_FromStringAndSize(<const char*>self.chunk.data, self.chunk.size)

    def __dealloc__(self):
        if self.chunk != NULL:
            kf_chunk_free(self.chunk)


cdef Chunk chunk_of(kf_chunk* chunk):
    cdef Chunk made = Chunk.__new__(Chunk)
    made.chunk = chunk
    return made


def chunk_done(Chunk chunk):
    """Note that the chunk was read to its end. Calling this twice does no harm.

    With its last chunk a frame leaves the budget, although views may still pin its bytes.
    """
    kf_chunk_done(chunk.chunk)


def chunk_from_bytes(bytes data, *, int64_t asked_offset, int64_t next_offset=-1,
                     int64_t high_watermark=-1, int64_t last_stable_offset=-1,
                     int64_t log_start_offset=-1, aborted=(), int64_t stream_id=0,
                     int64_t generation=0, bint broken=False):
    """Return a chunk with a copy of `data`, for tests.

    Args:
        data: record batches, or what a broker might send in their place.
        asked_offset, next_offset, high_watermark, last_stable_offset, log_start_offset, stream_id,
            generation, broken: As the properties.
        aborted: aborted transactions as (producer id, first offset).
    """
    cdef size_t size = PyBytes_GET_SIZE(data)
    cdef list transactions = list(aborted)
    cdef Py_ssize_t i
    cdef kf_chunk* chunk = NULL
    cdef kf_frame* frame = kf_frame_new(NULL, size, size)
    if frame != NULL:
        memcpy(frame.data, PyBytes_AS_STRING(data), size)
        frame.filled = size
        chunk = kf_chunk_new(frame, NULL, len(transactions))
        kf_frame_unref(frame)
    if chunk == NULL:
        raise MemoryError
    made = chunk_of(chunk)
    chunk.data = chunk.frame.data
    chunk.size = size
    chunk.stream_id = stream_id
    chunk.generation = generation
    chunk.asked_offset = asked_offset
    chunk.next_offset = next_offset
    chunk.high_watermark = high_watermark
    chunk.last_stable_offset = last_stable_offset
    chunk.log_start_offset = log_start_offset
    chunk.broken = broken
    for i in range(len(transactions)):
        producer_id, first_offset = transactions[i]
        chunk.aborted[i].producer_id = producer_id
        chunk.aborted[i].first_offset = first_offset
    return made
