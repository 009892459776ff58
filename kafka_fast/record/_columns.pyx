"""Records as columns: plain buffers that numpy, Arrow or a file can take without a copy."""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from kafka_fast.record._layout cimport kf_put_bytes, kf_span
from kafka_fast.record._records cimport Records

from typing import NamedTuple

from kafka_fast._hints import name_type, refuse_new


@cython.final
cdef class BytesColumn:
    """Keys or values of n records, in Arrow's layout of a large binary array.

    Attributes:
        offsets: int64[n + 1]; item i is data[offsets[i]:offsets[i + 1]].
        data: uint8[offsets[n]].
        validity: uint8[(n + 7) // 8], bit i (least significant first) set if item i is not null;
            None if there are no nulls.
        null_count: number of null items.
    """

    cdef readonly object offsets
    cdef readonly object data
    cdef readonly object validity
    cdef readonly Py_ssize_t null_count

    def __init__(self, *arguments, **named) -> None:
        raise TypeError("a BytesColumn comes from columns()")

    def __reduce__(self):
        raise TypeError("a BytesColumn cannot be pickled or copied: use to_list()")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to_list(self) -> list:
        """Return the items: bytes or None."""
        data, offsets, validity = self.data, self.offsets, self.validity
        return [
            data[offsets[i]:offsets[i + 1]].tobytes()
            if validity is None or validity[i // 8] >> (i % 8) & 1
            else None
            for i in range(len(self))
        ]


class Columns(NamedTuple):
    """All columns of a batch except headers. Timestamps are int64 Unix ms, offsets int64."""

    offsets: memoryview
    timestamps: memoryview
    keys: BytesColumn
    values: BytesColumn


cdef object new_buffer(Py_ssize_t size):
    return PyByteArray_FromStringAndSize(NULL, size)


cdef object readonly_view(object buffer, str format):
    view = memoryview(buffer).toreadonly()
    return view if format == "B" else view.cast(format)


cdef int32_t part_len(const kf_span* span, bint is_key) noexcept nogil:
    return span.key_len if is_key else span.value_len


cdef int32_t part_pos(const kf_span* span, bint is_key) noexcept nogil:
    return span.key_pos if is_key else span.value_pos


cdef BytesColumn bytes_column(Records records, bint is_key):
    cdef Py_ssize_t count = records.count
    cdef Py_ssize_t i
    cdef Py_ssize_t nulls = 0
    cdef int32_t size
    cdef BytesColumn column = BytesColumn.__new__(BytesColumn)
    offsets = new_buffer((count + 1) * sizeof(int64_t))
    cdef int64_t* ends = <int64_t*>PyByteArray_AS_STRING(offsets)
    ends[0] = 0
    for i in range(count):
        size = part_len(&records.spans[i], is_key)
        nulls += size < 0
        ends[i + 1] = ends[i] + max(size, 0)
    data = new_buffer(ends[count])
    cdef uint8_t* at = <uint8_t*>PyByteArray_AS_STRING(data)
    for i in range(count):
        at = kf_put_bytes(
            at,
            records.base + part_pos(&records.spans[i], is_key),
            <size_t>max(part_len(&records.spans[i], is_key), 0),
        )
    column.offsets = readonly_view(offsets, "q")
    column.data = readonly_view(data, "B")
    column.null_count = nulls
    if nulls != 0:
        column.validity = readonly_view(validity_of(records, is_key), "B")
    return column


cdef object validity_of(Records records, bint is_key):
    cdef Py_ssize_t i
    cdef Py_ssize_t size = (records.count + 7) // 8
    bitmap = new_buffer(size)
    cdef uint8_t* bits = <uint8_t*>PyByteArray_AS_STRING(bitmap)
    memset(bits, 0, <size_t>size)
    for i in range(records.count):
        if part_len(&records.spans[i], is_key) >= 0:
            bits[i // 8] |= <uint8_t>(1 << (i % 8))
    return bitmap


cdef object int64_column(Records records, bint of_timestamps):
    cdef Py_ssize_t i
    buffer = new_buffer(records.count * sizeof(int64_t))
    cdef int64_t* numbers = <int64_t*>PyByteArray_AS_STRING(buffer)
    for i in range(records.count):
        numbers[i] = records.spans[i].timestamp if of_timestamps else records.spans[i].offset
    return readonly_view(buffer, "q")


def columns(records) -> Columns:
    """Return the records as columns; the buffers are copies, owned by the result."""
    if not isinstance(records, Records):
        raise TypeError(
            f"columns() takes the Records of RecordBatch.records(), not {type(records).__name__}"
        )
    return Columns(
        int64_column(records, False),
        int64_column(records, True),
        bytes_column(records, True),
        bytes_column(records, False),
    )


name_type(BytesColumn, "kafka_fast.record")
refuse_new(BytesColumn, "a BytesColumn comes from columns()")
