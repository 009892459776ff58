"""A partition's piece of a Fetch answer, as the user's thread holds it."""

from kafka_fast.dataplane.core.structs cimport kf_chunk


cdef class Chunk:
    """Owns the chunk and, through it, a reference to the frame that its bytes stand in."""

    cdef kf_chunk* chunk
    cdef bint is_fed  # a reader has it


# Take over a chunk. NULL is no chunk.
cdef Chunk chunk_of(kf_chunk* chunk)
