"""The arguments of a bulk call as rows: columns brought to one length and one form.

An argument that is wrong raises here, naming column and row, before anything is sent.

Thread: the caller's, with the GIL.
"""

from cpython.buffer cimport PyObject_CheckBuffer
from cpython.object cimport PyObject
from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)
from libc.stdlib cimport free, malloc

from kafka_fast.sending._fields cimport encode_headers, serializer_for, time_of
from kafka_fast.sending.bulk._column cimport (
    Buffer,
    Column,
    columns_of,
    scalar_column,
    typed_buffer,
)

from collections.abc import Mapping, Sequence

from kafka_fast.errors import SerializationError, UsageError
from kafka_fast.times import OF_FLOATS, float_hint, is_datetime

cdef extern from "Python.h":
    PyObject** PySequence_Fast_ITEMS(object sequence)
    bint is_plain_bytes "PyBytes_CheckExact"(PyObject* item)
    bint is_str "PyUnicode_Check"(PyObject* item)
    bint is_ascii "PyUnicode_IS_COMPACT_ASCII"(PyObject* item)


# ---- numbers ----

cdef class Numbers:
    def __dealloc__(self):
        free(self.items)


cdef Numbers new_numbers(int64_t count):
    cdef Numbers numbers = Numbers.__new__(Numbers)
    numbers.items = <int64_t*>malloc(max(count, 1) * sizeof(int64_t))
    if numbers.items == NULL:
        raise MemoryError
    numbers.count = count
    return numbers


cdef Numbers scalar_number(int64_t number):
    cdef Numbers numbers = Numbers.__new__(Numbers)
    numbers.count = -1
    numbers.scalar = number
    return numbers


cdef Numbers scalar_integer(object item, str topic, str what, bint is_time):
    """Return what `number_of` makes of every row's integer, or of None."""
    cdef Numbers numbers = scalar_number(number_of(item, topic, what, is_time))
    note_odd(numbers, numbers.scalar)
    return numbers


cdef int64_t number_of(object item, str topic, str what, bint is_time) except? -2:
    """Return the integer, or the Unix ms of a datetime where that is meant; -1 for None."""
    if item is None:
        return -1
    if isinstance(item, bool) or not hasattr(item, "__index__"):
        if is_time:
            return time_of(item, f"{what} for topic {topic!r}")
        raise TypeError(f"{what} for topic {topic!r} must be int or None, "
                        f"not {type(item).__name__}")
    number = item.__index__()
    if not 0 <= number < 1 << 63:
        raise UsageError(f"{what} for topic {topic!r} must be at least 0 and fit in int64, "
                         f"not {number}")
    return number


cdef int64_t number_at(const char* at, Py_ssize_t size, bint is_signed) noexcept nogil:
    """Return an integer of `size` bytes; an unsigned one beyond int64 comes out negative."""
    if size == 8:
        return (<const int64_t*>at)[0]
    if size == 4:
        return (<const int32_t*>at)[0] if is_signed else <int64_t>(<const uint32_t*>at)[0]
    if size == 2:
        return (<const int16_t*>at)[0] if is_signed else <int64_t>(<const uint16_t*>at)[0]
    return (<const int8_t*>at)[0] if is_signed else <int64_t>(<const uint8_t*>at)[0]


cdef str of_floats(str what, str format):
    """Return the end of an error about timestamps that are floats, as those of time.time()."""
    return OF_FLOATS if what == "timestamp" and format in tuple("efd") else ""


cdef Numbers buffer_numbers(object source, str topic, str what):
    """Return the numbers of a one-dimensional buffer of integers, none of them negative."""
    cdef Buffer buffer = typed_buffer(source)
    cdef Numbers numbers
    cdef Py_ssize_t size = buffer.view.itemsize
    cdef Py_ssize_t stride
    cdef const char* at = <const char*>buffer.view.buf
    cdef bint is_signed
    cdef int64_t i
    format = buffer.format()
    if buffer.view.ndim != 1 or format not in tuple("bBhHiIlLqQ"):
        raise TypeError(f"{what} for topic {topic!r} must be one-dimensional integers, not "
                        f"{buffer.view.ndim}-dimensional of format {format!r}"
                        f"{of_floats(what, format)}")
    is_signed = format.islower()
    stride = buffer.stride(0)
    numbers = new_numbers(buffer.view.shape[0])
    for i in range(numbers.count):
        numbers.items[i] = number_at(at + i * stride, size, is_signed)
        if numbers.items[i] < 0:
            number_of(numbers.items[i] if is_signed else <uint64_t>numbers.items[i], topic,
                      f"{what} of row {i}", False)
        note_odd(numbers, numbers.items[i])
    return numbers


cdef Numbers object_numbers(object source, str topic, str what, bint is_time):
    cdef list items = list(source)
    cdef Numbers numbers = new_numbers(len(items))
    cdef int64_t i
    for i in range(numbers.count):
        try:
            numbers.items[i] = number_of(items[i], topic, what, is_time)
        except (TypeError, UsageError):
            number_of(items[i], topic, f"{what} of row {i}", is_time)
        if is_odd_time(numbers.items[i]) and hasattr(items[i], "__index__"):
            note_odd(numbers, numbers.items[i])
    return numbers


cdef bint is_numpy_time(object source):
    """Return whether this is a datetime64 of numpy's, or an array of these."""
    return (type(source).__module__ == "numpy"
            and getattr(getattr(source, "dtype", None), "kind", None) == "M")


cdef Numbers numbers_of(object source, str topic, str what, bint is_time=False):
    """Return integers, or times, from None, a scalar, a sequence, a buffer or an Arrow array."""
    if source is None or (hasattr(source, "__index__") and not hasattr(source, "shape")):
        return scalar_integer(source, topic, what, is_time)
    if hasattr(source, "__arrow_c_array__") or hasattr(source, "__arrow_c_stream__"):
        from kafka_fast.sending.bulk._arrow import arrow_numbers

        return arrow_numbers(source, topic, what)
    if is_time and is_numpy_time(source):
        raise TypeError(f"{what} for topic {topic!r}: numpy's datetime64 has no time zone: if it "
                        "is UTC, pass times.astype('datetime64[ms]').astype('int64')")
    if getattr(source, "shape", None) == ():  # a numpy scalar
        return scalar_integer(source.item(), topic, what, is_time)
    if PyObject_CheckBuffer(source) and not isinstance(source, (bytes, bytearray)):
        return buffer_numbers(source, topic, what)
    if isinstance(source, Sequence) and not isinstance(source, (str, bytes, bytearray)):
        return object_numbers(source, topic, what, is_time)
    if is_time and is_datetime(source):
        return scalar_number(time_of(source, f"{what} for topic {topic!r}"))
    wanted = "int (Unix ms), a datetime with a time zone" if is_time else "int"
    raise TypeError(f"{what} for topic {topic!r} must be {wanted}, a sequence or an array of "
                    f"these, not {type(source).__name__}{float_hint(source) if is_time else ''}")


# ---- headers ----

cdef class HeaderColumn:
    def __cinit__(self):
        self.count = -1

    cdef HeaderColumn part(self, int64_t start, int64_t count):
        """Return the headers of `count` rows from `start` on."""
        cdef HeaderColumn column = HeaderColumn.__new__(HeaderColumn)
        column.scalar = self.scalar
        column.count = -1 if self.count < 0 else count
        if self.encoded is not None:
            column.encoded = self.encoded[start:start + count]
        column.raw = self.raw
        column.raw.lists.start += start
        column.owner = self.owner
        return column


cdef bint is_one_rows_headers(object source):
    """Return whether these are one row's headers for all rows, and not a column of headers."""
    if isinstance(source, Mapping):
        return True
    first = next((item for item in source if item is not None), None)
    return isinstance(first, (tuple, list)) and len(first) == 2 and isinstance(first[0], str)


cdef HeaderColumn headers_of(object source, str topic):
    """Return headers from None, one row's headers for all, a sequence, or an Arrow array."""
    cdef HeaderColumn column = HeaderColumn.__new__(HeaderColumn)
    cdef bytes encoded = None
    cdef object last = None
    if source is None:
        return column
    if hasattr(source, "__arrow_c_array__") or hasattr(source, "__arrow_c_stream__"):
        from kafka_fast.sending.bulk._arrow import arrow_headers

        return arrow_headers(source, topic)
    if not isinstance(source, (Mapping, Sequence)) or isinstance(source, (str, bytes)):
        raise TypeError(f"headers for topic {topic!r} must be (key, value) pairs, a mapping, a "
                        f"sequence of these or an Arrow array, not {type(source).__name__}")
    if is_one_rows_headers(source):
        column.scalar = encode_headers(source, topic)
        return column
    column.encoded = []
    column.count = len(source)
    for row, headers in enumerate(source):
        if headers is not last:  # rows often share them
            try:
                encoded = None if headers is None else encode_headers(headers, topic)
            except (TypeError, SerializationError) as error:
                raise type(error)(f"row {row}: {error}") from error
            last = headers
        column.encoded.append(encoded)
    return column


# ---- values and keys ----

cdef int refuse_item(object item, str topic, str what) except -1:
    """Raise if an item, neither plain bytes nor ASCII str nor None, cannot be sent."""
    if isinstance(item, str):
        try:
            item.encode()
        except UnicodeEncodeError as error:
            raise SerializationError(f"{what} for topic {topic!r}: {error}") from error
        return 0
    if not PyObject_CheckBuffer(item):
        raise TypeError(f"{what} for topic {topic!r} must be bytes-like, str or None, not "
                        f"{type(item).__name__}{serializer_for(item, what)}")
    if not memoryview(item).c_contiguous:
        raise TypeError(f"{what} for topic {topic!r} is not contiguous in memory: pass a copy")
    return 0


cdef int check_items(Column column, str topic, str what) except -1:
    """Check every object of a column, so that nothing is sent of a call that has a wrong one."""
    cdef int64_t i
    cdef PyObject* item
    cdef PyObject* none = <PyObject*>None
    cdef PyObject** items
    if column.items is None:
        return 0
    items = PySequence_Fast_ITEMS(column.items)
    for i in range(column.count):
        item = items[i]
        if is_plain_bytes(item) or item == none or (is_str(item) and is_ascii(item)):
            continue
        refuse_item(<object>item, topic, f"the {what} of row {i}")
        if column.count != len(column.items):
            raise UsageError(f"the {what}s for topic {topic!r} were changed during the call")
        items = PySequence_Fast_ITEMS(column.items)
    return 0


cdef list key_columns(object keys, str topic):
    """Return the pieces of the keys: None, one key for all rows, or a column."""
    cdef Column column
    if keys is None:
        return []
    if isinstance(keys, str):
        return [scalar_column(keys.encode())]
    if isinstance(keys, (bytes, bytearray)):
        return [scalar_column(bytes(keys))]
    columns = columns_of(keys, topic, "keys")
    for column in columns:
        check_items(column, topic, "key")
    return columns


# ---- pieces ----

cdef class Rows:
    cdef int64_t partition_of(self, int64_t i) noexcept nogil:
        return (self.partitions.scalar if self.partitions.count < 0
                else self.partitions.items[self.partition_start + i])

    cdef int64_t timestamp_of(self, int64_t i) noexcept nogil:
        return (self.timestamps.scalar if self.timestamps.count < 0
                else self.timestamps.items[self.timestamp_start + i])


cdef int check_length(int64_t count, int64_t expected, str topic, str what) except -1:
    if count >= 0 and count != expected:
        raise UsageError(f"{expected} values for topic {topic!r}, but {count} {what}")
    return 0


cdef Column next_piece(list columns, Py_ssize_t* which, int64_t* used):
    """Return the column that has the next row."""
    while (<Column>columns[which[0]]).count == used[0]:
        which[0] += 1
        used[0] = 0
    return <Column>columns[which[0]]


cdef list cut(str topic, list values, list keys, HeaderColumn headers,
              Numbers partitions, Numbers timestamps, int64_t total):
    """Return Rows, each within one piece of the values and one of the keys."""
    cdef list pieces = []
    cdef Py_ssize_t which_value = 0
    cdef Py_ssize_t which_key = 0
    cdef int64_t value_used = 0
    cdef int64_t key_used = 0
    cdef int64_t first = 0
    cdef Column value, key
    cdef Rows rows
    while first < total:
        value = next_piece(values, &which_value, &value_used)
        rows = Rows.__new__(Rows)
        rows.topic = topic
        rows.first = first
        rows.partition_start = first
        rows.timestamp_start = first
        rows.count = value.count - value_used
        if keys:
            key = <Column>keys[0]
            if key.count >= 0:
                key = next_piece(keys, &which_key, &key_used)
                rows.count = min(rows.count, key.count - key_used)
                rows.keys = key.part(key_used, rows.count)
                key_used += rows.count
            else:
                rows.keys = key
        rows.values = value.part(value_used, rows.count)
        value_used += rows.count
        rows.headers = headers.part(first, rows.count)
        rows.partitions = partitions
        rows.timestamps = timestamps
        first += rows.count
        pieces.append(rows)
    return pieces


cdef list rows_of(str topic, object values, object keys, object partitions, object timestamps_ms,
                  object headers):
    cdef Column column
    cdef list value_pieces = columns_of(values, topic, "values")
    cdef list key_pieces = key_columns(keys, topic)
    cdef Numbers partition_numbers = numbers_of(partitions, topic, "partition")
    cdef Numbers timestamps = numbers_of(timestamps_ms, topic, "timestamp", True)
    cdef HeaderColumn header_column = headers_of(headers, topic)
    cdef int64_t total = sum([column.count for column in value_pieces])
    if key_pieces and (<Column>key_pieces[0]).count >= 0:
        check_length(sum([column.count for column in key_pieces]), total, topic, "keys")
    check_length(partition_numbers.count, total, topic, "partitions")
    check_length(timestamps.count, total, topic, "timestamps")
    check_length(header_column.count, total, topic, "headers")
    for column in value_pieces:
        check_items(column, topic, "value")
    return cut(topic, value_pieces, key_pieces, header_column, partition_numbers, timestamps,
               total)
