"""CRC32C (Castagnoli) of bytes-like objects, by the fastest path of this CPU."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint32_t

cdef extern from "kf_crc32c.h" nogil:
    uint32_t kf_crc32c(uint32_t crc, const void* data, size_t len)
    uint32_t kf_crc32c_combine(uint32_t crc_a, uint32_t crc_b, size_t len_b)
    size_t kf_crc32c_path_count()
    const char* kf_crc32c_path_name(size_t path)
    uint32_t kf_crc32c_by_path(size_t path, uint32_t crc, const void* data, size_t len)
    uint32_t kf_crc32c_combine_by_path(size_t path, uint32_t crc_a, uint32_t crc_b, size_t len_b)

cdef enum:
    # Below this a checksum is over before the GIL could be given away and fetched again.
    NOGIL_SIZE = 256 * 1024


cdef uint32_t crc32c_update(uint32_t crc, const void* data, size_t len) noexcept nogil:
    return kf_crc32c(crc, data, len)


cdef uint32_t crc32c_join(uint32_t crc_a, uint32_t crc_b, size_t len_b) noexcept nogil:
    return kf_crc32c_combine(crc_a, crc_b, len_b)


cdef size_t path_number(str name) except? 0:
    cdef size_t path
    cdef size_t count = kf_crc32c_path_count()
    for path in range(count):
        if kf_crc32c_path_name(path).decode() == name:
            return path
    raise ValueError(f"this CPU has no CRC32C path {name!r}, only {', '.join(paths())}")


def crc32c(object data not None, uint32_t crc=0, *, str path=None) -> int:
    """Return the CRC32C of `data`, continuing `crc`.

    Args:
        data: any object with a contiguous buffer.
        crc: the CRC of what stands before `data`.
        path: one of `paths()` instead of the fastest; for tests.
    """
    cdef size_t number = 0 if path is None else path_number(path)
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    if view.len < NOGIL_SIZE:
        crc = kf_crc32c_by_path(number, crc, view.buf, <size_t>view.len)
    else:
        with nogil:
            crc = kf_crc32c_by_path(number, crc, view.buf, <size_t>view.len)
    PyBuffer_Release(&view)
    return crc


def crc32c_combine(uint32_t crc_a, uint32_t crc_b, size_t len_b, *, str path=None) -> int:
    """Return the CRC32C of A followed by B, from the CRC of each and the length of B in bytes."""
    cdef size_t number = 0 if path is None else path_number(path)
    return kf_crc32c_combine_by_path(number, crc_a, crc_b, len_b)


def paths() -> tuple:
    """Return the names of the paths this CPU can run; the first is the one in use."""
    return tuple([kf_crc32c_path_name(path).decode() for path in range(kf_crc32c_path_count())])
