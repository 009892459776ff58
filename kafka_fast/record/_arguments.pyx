"""Arguments of compiled functions that users call, with errors that name them.

Cython's own errors for a typed argument, such as "an integer is required", say neither which
argument is wrong nor what it was. And a float loses its fraction in silence. So these functions
take objects, and read them here.
"""

from cpython.number cimport PyNumber_Index
from libc.stdint cimport int64_t

from kafka_fast.errors import UsageError

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int* overflow) except? -1


cdef int64_t whole(object value, str what, int bits) except? -1:
    """Return an int that fits in so many bits; messages call it `what`.

    Raises:
        TypeError: the value is no int.
        UsageError: the value does not fit.
    """
    cdef int overflow = 0
    cdef int64_t most = <int64_t>((<unsigned long long>1 << (bits - 1)) - 1)
    cdef int64_t number
    if type(value) is not int:
        try:
            value = PyNumber_Index(value)
        except TypeError:
            raise TypeError(f"{what} is an int, not {type(value).__name__}: {value!r}") from None
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow != 0 or not -most - 1 <= number <= most:
        raise UsageError(f"{what} must fit in int{bits}, not {value}")
    return number


cdef tuple pairs(object headers):
    """Return the headers of one record."""
    try:
        return tuple(headers)
    except TypeError:
        raise TypeError(
            f"headers are (name, value) pairs, not {type(headers).__name__}: {headers!r}"
        ) from None
