"""CRC32C for the other extensions.

This is the one extension that links kf_crc32c.c, because the chosen path must exist once: cimport
these, never link the file again. Both may be called from any thread, and passed on to C code as
plain function pointers.
"""

from libc.stdint cimport uint32_t


# Continue a finished CRC (0 to begin) over `len` bytes.
cdef uint32_t crc32c_update(uint32_t crc, const void* data, size_t len) noexcept nogil

# CRC of A followed by B, from both CRCs and the length of B.
cdef uint32_t crc32c_join(uint32_t crc_a, uint32_t crc_b, size_t len_b) noexcept nogil
