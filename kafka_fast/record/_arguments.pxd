"""Arguments of compiled functions. See the .pyx."""

from libc.stdint cimport int64_t

cdef int64_t whole(object value, str what, int bits) except? -1
cdef tuple pairs(object headers)
