"""Which objects every JSON library writes with the same bytes, and reads from the same bytes.

`json_text.py` has two libraries and one rule: what the standard library does. It hands to the
faster one only what is known here to come out the same. All else goes to the standard library.

Thread: any, with the GIL.
"""

from cpython.dict cimport PyDict_Next
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

# Deeper than this the libraries' own limits come into sight.
cdef enum:
    DEPTH_MAX = 100

# Python's repr, which the standard library writes, has an exponent outside of these.
cdef double DECIMAL_MIN = 1e-4
cdef double DECIMAL_MAX = 1e16

# A reader without big integers makes a float of one: none is smaller than this.
cdef double BIG_INTEGER_MIN = 9.2e18


def is_written_alike(value):
    """Return whether the compact JSON text of a value is the same from every library.

    These are: None, bool, str, int of 64 bits, float without an exponent, and lists, tuples and
    dicts (with str as keys) of these. Subclasses are not: libraries differ about them.
    """
    return check(value, True, 0)


def is_read_alike(value):
    """Return whether the standard library would have read the same from the text of a value.

    Args:
        value: what a library read that makes floats of big integers, and is strict otherwise.
    """
    return check(value, False, 0)


cdef bint check(object value, bint is_written, int depth) except -1:
    cdef object kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is int:
        return not is_written or fits(value)
    if kind is float:
        return check_float(PyFloat_AS_DOUBLE(value), is_written)
    if depth == DEPTH_MAX:
        return False
    if kind is dict:
        return check_dict(value, is_written, depth + 1)
    if kind is list:
        return check_list(value, is_written, depth + 1)
    if kind is tuple:
        return check_tuple(value, is_written, depth + 1)
    return False


cdef bint fits(object value) except -1:
    cdef int overflow = 0
    PyLong_AsLongLongAndOverflow(value, &overflow)
    return overflow == 0


cdef bint check_float(double value, bint is_written) noexcept:
    cdef double size = -value if value < 0 else value
    if not is_written:
        return size < BIG_INTEGER_MIN
    return size == 0 or DECIMAL_MIN <= size < DECIMAL_MAX  # not so of NaN


cdef bint check_dict(dict value, bint is_written, int depth) except -1:
    cdef Py_ssize_t pos = 0
    cdef PyObject* key = NULL
    cdef PyObject* item = NULL
    # Nothing in here runs Python code, so the dict stays as it is and owns what is borrowed.
    while PyDict_Next(value, &pos, &key, &item):
        if type(<object>key) is not str or not check(<object>item, is_written, depth):
            return False
    return True


cdef bint check_list(list value, bint is_written, int depth) except -1:
    cdef Py_ssize_t index
    for index in range(PyList_GET_SIZE(value)):
        if not check(<object>PyList_GET_ITEM(value, index), is_written, depth):
            return False
    return True


cdef bint check_tuple(tuple value, bint is_written, int depth) except -1:
    cdef Py_ssize_t index
    for index in range(PyTuple_GET_SIZE(value)):
        if not check(<object>PyTuple_GET_ITEM(value, index), is_written, depth):
            return False
    return True
