"""Keys and values of a bulk call, from whatever a caller may pass.

    list, tuple, sequence, numpy object array    objects: bytes-like, str or None
    numpy `S` array, 2-D uint8 array, or any buffer of these shapes
    (data, offsets)                              a buffer of bytes, one of n + 1 int32 or int64
    Arrow array or stream                        binary or string of any layout, see _arrow

Buffers are checked once, and borrowed while the call lasts: a batch gets a copy.

Thread: the caller's, with the GIL. The functions of kf_column.h do not need it.
"""

from cpython.buffer cimport (
    PyBUF_FORMAT,
    PyBUF_SIMPLE,
    PyBUF_STRIDES,
    PyBuffer_Release,
    PyObject_CheckBuffer,
    PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_Check, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from collections.abc import Sequence

from kafka_fast.errors import UsageError


cdef class Buffer:
    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)

    cdef str format(self):
        """Return an item's format, without the marks of this machine's own byte order."""
        if self.view.format == NULL:
            return "B"
        return (<bytes>self.view.format).decode().lstrip("@=<")

    cdef Py_ssize_t stride(self, int axis) noexcept:
        """Return how far two items are apart; ctypes does not tell, its arrays are contiguous."""
        cdef Py_ssize_t step = self.view.itemsize
        cdef int inner
        if self.view.strides != NULL:
            return self.view.strides[axis]
        for inner in range(axis + 1, self.view.ndim):
            step *= self.view.shape[inner]
        return step


cdef Buffer typed_buffer(object source):
    """Borrow a buffer of whatever shape and format."""
    cdef Buffer buffer = Buffer.__new__(Buffer)
    PyObject_GetBuffer(source, &buffer.view, PyBUF_STRIDES | PyBUF_FORMAT)
    buffer.held = True
    return buffer


cdef Buffer buffer_of(object source, str what):
    """Return the bytes of a contiguous buffer."""
    cdef Buffer buffer = Buffer.__new__(Buffer)
    try:
        PyObject_GetBuffer(source, &buffer.view, PyBUF_SIMPLE)
    except (BufferError, TypeError) as error:
        raise TypeError(f"{what} must be a contiguous buffer, not {type(source).__name__}") \
            from error
    buffer.held = True
    return buffer


cdef class Column:
    def __cinit__(self):
        memset(&self.raw, 0, sizeof(kf_column))

    cdef Column part(self, int64_t start, int64_t count):
        """Return `count` items from `start` on; they share what they point to."""
        cdef Column column = Column.__new__(Column)
        column.items = self.items
        column.first = self.first + start
        column.raw = self.raw
        column.raw.start += start
        column.count = count
        column.owner = self.owner
        return column

    cdef object item(self, int64_t i):
        """Return one item: the object, or the bytes in a buffer; None if it is null."""
        cdef int64_t size
        cdef const uint8_t* data
        if self.items is not None:
            return self.items[self.first + i]
        data = kf_column_get(&self.raw, i, &size)
        return None if data == NULL else (<const char*>data)[:size]


cdef Column scalar_column(bytes item):
    """Return a column that has `item` in every row."""
    cdef Column column = Column.__new__(Column)
    column.raw.layout = KF_COLUMN_STRIDED
    column.raw.data = <const uint8_t*>PyBytes_AS_STRING(item)
    column.raw.width = PyBytes_GET_SIZE(item)
    column.count = -1
    column.owner = item
    return column


cdef Column null_column(int64_t count):
    cdef Column column = Column.__new__(Column)
    column.raw.layout = KF_COLUMN_NULLS
    column.count = count
    return column


cdef Column object_column(object items):
    """Return a column of Python objects; `items` is a list or a tuple."""
    cdef Column column = Column.__new__(Column)
    column.items = items
    column.count = len(items)
    return column


cdef Column buffer_column(object source, str topic, str what):
    """Return the items of a 1-D buffer of byte strings or a 2-D buffer of bytes."""
    cdef Column column = Column.__new__(Column)
    cdef Buffer buffer = typed_buffer(source)
    cdef str format = buffer.format()
    column.owner = buffer
    column.count = buffer.view.shape[0] if buffer.view.ndim > 0 else 0
    column.raw.data = <const uint8_t*>buffer.view.buf
    if buffer.view.ndim == 2 and format in ("B", "b", "c") \
            and (buffer.stride(1) == 1 or buffer.view.shape[1] <= 1):
        column.raw.layout = KF_COLUMN_STRIDED
        column.raw.width = buffer.view.shape[1]
        column.raw.stride = buffer.stride(0)
    elif buffer.view.ndim == 1 and format.endswith("s"):
        column.raw.layout = KF_COLUMN_PADDED
        column.raw.width = buffer.view.itemsize
        column.raw.stride = buffer.stride(0)
    else:
        raise TypeError(f"{what} for topic {topic!r}: a buffer must be one-dimensional of byte "
                        f"strings (numpy 'S'), or two-dimensional of contiguous rows of bytes, "
                        f"not {buffer.view.ndim}-dimensional of format {format!r}")
    return column


cdef Column pair_column(object data, object offsets, str topic, str what):
    """Return the items data[offsets[i]:offsets[i + 1]]."""
    cdef Column column = Column.__new__(Column)
    cdef Buffer bytes_buffer = buffer_of(data, f"the data of {what} for topic {topic!r}")
    cdef Buffer numbers
    cdef bytes kept
    try:
        numbers = typed_buffer(offsets)
    except (BufferError, TypeError) as error:
        raise TypeError(f"the offsets of {what} for topic {topic!r} must be a buffer, not "
                        f"{type(offsets).__name__}") from error
    if numbers.view.ndim != 1 or numbers.format() not in ("i", "l", "q") \
            or numbers.stride(0) != numbers.view.itemsize or numbers.view.shape[0] == 0:
        raise TypeError(f"the offsets of {what} for topic {topic!r} must be n + 1 contiguous "
                        "int32 or int64")
    column.raw.layout = (KF_COLUMN_OFFSETS32 if numbers.view.itemsize == 4
                         else KF_COLUMN_OFFSETS64)
    column.raw.offsets = numbers.view.buf
    column.owner = (bytes_buffer, numbers)
    if not numbers.view.readonly:  # what is checked here must hold until it has been used
        kept = (<const char*>numbers.view.buf)[:numbers.view.len]
        column.raw.offsets = PyBytes_AS_STRING(kept)
        column.owner = (bytes_buffer, kept)
    column.raw.data = <const uint8_t*>bytes_buffer.view.buf
    if column.raw.data == NULL:  # an empty buffer may have no address; NULL means null here
        column.raw.data = <const uint8_t*>b""
    column.count = numbers.view.shape[0] - 1
    check_column(column, bytes_buffer.view.len, f"{what} for topic {topic!r}")
    return column


cdef int check_column(Column column, int64_t size, str what, int64_t first_row=0) except -1:
    """Raise UsageError if an item lies elsewhere; `first_row`: what the call counts row 0 as."""
    cdef int64_t bad
    cdef int64_t count = column.count
    with nogil:
        bad = kf_column_check(&column.raw, count, size)
    if bad >= 0:
        raise UsageError(f"{what}: row {first_row + bad} lies outside of the data, or begins "
                         "before the row before it ends")
    return 0


cdef bint is_pair(object source):
    """Return whether this is (data, offsets) and not a sequence of two items."""
    if not isinstance(source, tuple) or len(source) != 2:
        return False
    data, offsets = source
    return (PyObject_CheckBuffer(data) and PyObject_CheckBuffer(offsets)
            and memoryview(offsets).itemsize in (4, 8))


cdef list columns_of(object source, str topic, str what):
    if isinstance(source, (list, tuple)) and not is_pair(source):
        return [object_column(source)]
    if isinstance(source, tuple):
        return [pair_column(source[0], source[1], topic, what)]
    if hasattr(source, "__arrow_c_array__") or hasattr(source, "__arrow_c_stream__"):
        from kafka_fast.sending.bulk._arrow import arrow_columns

        return arrow_columns(source, f"{what} for topic {topic!r}")
    if PyBytes_Check(source) or isinstance(source, (str, bytearray)):
        raise TypeError(f"{what} for topic {topic!r} must be many, not one "
                        f"{type(source).__name__}: wrap it in a list")
    if PyObject_CheckBuffer(source):
        interface = getattr(source, "__array_interface__", None)
        if interface is not None and interface["typestr"][1] in "OU":
            return [object_column(source.tolist())]
        return [buffer_column(source, topic, what)]
    if isinstance(source, Sequence):
        return [object_column(list(source))]
    raise TypeError(f"{what} for topic {topic!r} must be a list, a tuple, an array, an Arrow array "
                    f"or (data, offsets), not {type(source).__name__}")
