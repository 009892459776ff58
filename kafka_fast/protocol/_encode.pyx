"""Messages to bytes: one loop that runs a Program over an instance.

A value that does not fit its type is the caller's fault, and raises TypeError or ValueError with
the field's path. A value that the version cannot carry raises UnsupportedVersionError.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport (
    INT64_MAX, INT64_MIN, int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t,
)
from libc.string cimport memcpy, memmove

from kafka_fast.protocol._program cimport (
    ARRAY, BOOL, BYTES, INT8, INT16, INT32, INT64, NULL_STRUCT, RECORDS, STRING, STRUCT, UINT16,
    UINT32, UUID, UUID_LEN, Program, descend, is_default, path_of, place, step, trail,
)

from kafka_fast.errors import UnsupportedVersionError


cdef extern from "kf_wire.h" nogil:
    uint8_t *kf_put_i8(uint8_t *at, int8_t value)
    uint8_t *kf_put_i16(uint8_t *at, int16_t value)
    uint8_t *kf_put_i32(uint8_t *at, int32_t value)
    uint8_t *kf_put_i64(uint8_t *at, int64_t value)
    uint8_t *kf_put_uvarint(uint8_t *at, uint64_t raw)
    uint8_t *kf_put_bytes(uint8_t *at, const void *data, size_t len)
    size_t kf_uvarint_size(uint64_t raw)
    enum: KF_VARINT_MAX

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object, Py_ssize_t *) except NULL


cdef struct sink:
    uint8_t *start
    uint8_t *pos             # next byte to write
    uint8_t *end             # end of what is reserved
    trail trail


cdef str refusal(const sink *out, const step *field, object reason):
    """Return the message of the error for a value that cannot be encoded."""
    label = (<Program>out.trail.program).label
    return f"{label}: {path_of(&out.trail, field)}: {reason}"


cdef int reserve(sink *out, size_t size) except -1:
    """Make room for `size` more bytes."""
    cdef size_t used, wanted
    cdef uint8_t *grown
    if <size_t>(out.end - out.pos) >= size:
        return 0
    used = <size_t>(out.pos - out.start)
    wanted = 2 * used + size + 64
    grown = <uint8_t *>PyMem_Realloc(out.start, wanted)
    if grown == NULL:
        raise MemoryError()
    out.start = grown
    out.pos = &grown[used]
    out.end = &grown[wanted]
    return 0


cdef int write_length(sink *out, const step *field, Py_ssize_t length, bint wide) except -1:
    """Write the length of a string, or a count; -1 is null. Leaves room for `length` bytes."""
    if length < 0 and not field.nullable:
        raise TypeError(refusal(out, field, "None where the version does not allow it"))
    reserve(out, KF_VARINT_MAX + <size_t>max(length, 0))
    if length > 0x7FFFFFFE or (length > 0x7FFF and not (wide or field.compact)):
        raise ValueError(refusal(out, field, f"{length} is more than the length field can say"))
    if field.compact:
        out.pos = kf_put_uvarint(out.pos, <uint64_t>(length + 1))
    elif wide:
        out.pos = kf_put_i32(out.pos, <int32_t>length)
    else:
        out.pos = kf_put_i16(out.pos, <int16_t>length)
    return 0


cdef int write_string(sink *out, const step *field, object value) except -1:
    """Write a str as UTF-8."""
    cdef Py_ssize_t length
    cdef const char *text
    if value is None:
        return write_length(out, field, -1, False)
    if not isinstance(value, str):
        raise TypeError(refusal(out, field, f"str expected, not {type(value).__name__}"))
    text = PyUnicode_AsUTF8AndSize(value, &length)
    write_length(out, field, length, False)
    out.pos = kf_put_bytes(out.pos, text, <size_t>length)
    return 0


cdef int write_bytes(sink *out, const step *field, object value, uint8_t op) except -1:
    """Write any object with a contiguous buffer: bytes, records, or the 16 bytes of a UUID."""
    cdef Py_buffer view
    if value is None and op != UUID:
        return write_length(out, field, -1, True)
    try:
        PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
    except (TypeError, BufferError) as error:  # no buffer, or one with gaps
        kind = type(value).__name__
        raise TypeError(refusal(out, field, f"contiguous bytes expected, not {kind}")) from error
    try:
        if op != UUID:
            write_length(out, field, view.len, True)
        elif view.len != UUID_LEN:
            raise ValueError(refusal(out, field, f"a UUID has 16 bytes, not {view.len}"))
        else:
            reserve(out, UUID_LEN)
        out.pos = kf_put_bytes(out.pos, view.buf, <size_t>view.len)
    finally:
        PyBuffer_Release(&view)
    return 0


cdef int64_t whole(
        sink *out, const step *field, object value, int64_t low, int64_t high) except? -1:
    """Return an int that lies in [low, high]."""
    cdef int64_t raw
    if not isinstance(value, int):
        raise TypeError(refusal(out, field, f"int expected, not {type(value).__name__}"))
    try:
        raw = value
    except OverflowError:
        raise ValueError(refusal(out, field, f"{value} is out of range")) from None
    if raw < low or raw > high:
        raise ValueError(refusal(out, field, f"{value} is out of range"))
    return raw


cdef int write_scalar(sink *out, const step *field, object value, uint8_t op) except -1:
    """Write anything but arrays and structs."""
    cdef double real
    cdef int64_t raw
    if op == STRING:
        return write_string(out, field, value)
    if op == BYTES or op == RECORDS or op == UUID:
        return write_bytes(out, field, value, op)
    reserve(out, 8)
    if op == INT32:
        raw = whole(out, field, value, -0x80000000, 0x7FFFFFFF)
        out.pos = kf_put_i32(out.pos, <int32_t>raw)
    elif op == INT16:
        raw = whole(out, field, value, -0x8000, 0x7FFF)
        out.pos = kf_put_i16(out.pos, <int16_t>raw)
    elif op == INT64:
        raw = whole(out, field, value, INT64_MIN, INT64_MAX)
        out.pos = kf_put_i64(out.pos, raw)
    elif op == BOOL:
        raw = whole(out, field, value, 0, 1)
        out.pos = kf_put_i8(out.pos, <int8_t>raw)
    elif op == INT8:
        raw = whole(out, field, value, -0x80, 0x7F)
        out.pos = kf_put_i8(out.pos, <int8_t>raw)
    elif op == UINT16:
        raw = whole(out, field, value, 0, 0xFFFF)
        out.pos = kf_put_i16(out.pos, <int16_t>raw)
    elif op == UINT32:
        raw = whole(out, field, value, 0, 0xFFFFFFFF)
        out.pos = kf_put_i32(out.pos, <int32_t>raw)
    else:
        if not isinstance(value, (int, float)):
            raise TypeError(refusal(out, field, f"float expected, not {type(value).__name__}"))
        real = value
        memcpy(&raw, &real, sizeof(raw))
        out.pos = kf_put_i64(out.pos, raw)
    return 0


cdef int write_array(sink *out, const step *field, object value) except -1:
    """Write a count and the elements of a list or tuple."""
    cdef Program program
    cdef Py_ssize_t i
    cdef place *here
    if value is None:
        return write_length(out, field, -1, True)
    if not isinstance(value, (list, tuple)):
        raise TypeError(refusal(out, field, f"list expected, not {type(value).__name__}"))
    write_length(out, field, len(value), True)
    here = &out.trail.places[out.trail.depth]
    descend(&out.trail, field)
    program = None if field.program == NULL else <Program>field.program
    for i, element in enumerate(value):
        here.index = i
        if program is not None:
            write(program, out, element)
        else:
            write_scalar(out, field, element, field.item)
    out.trail.depth -= 1
    return 0


cdef int write_struct(sink *out, const step *field, object value) except -1:
    """Write a nested struct, with the byte in front if it may be null."""
    if value is None and not field.nullable:
        raise TypeError(refusal(out, field, "None where the version does not allow it"))
    if field.nullable:
        reserve(out, 1)
        out.pos = kf_put_i8(out.pos, NULL_STRUCT if value is None else 1)
    if value is not None:
        descend(&out.trail, field)
        write(<Program>field.program, out, value)
        out.trail.depth -= 1
    return 0


cdef int write_value(sink *out, const step *field, object value) except -1:
    """Write the value of one field."""
    if field.op == ARRAY:
        return write_array(out, field, value)
    if field.op == STRUCT:
        return write_struct(out, field, value)
    return write_scalar(out, field, value, field.op)


cdef int write(Program program, sink *out, object value) except -1:
    """Write one struct."""
    cdef Py_ssize_t i
    cdef const step *field
    if type(value) is not program.cls:
        kind = type(value).__name__
        raise TypeError(refusal(out, NULL, f"{program.cls.__name__} expected, not {kind}"))
    for i in range(program.count):
        field = &program.steps[i]
        if not field.present:
            if not field.ignorable and not is_default(
                    field, field.get(<object>field.member, value, program.cls)):
                raise UnsupportedVersionError(
                    refusal(out, field, "set, but this version cannot carry it"))
        elif field.tag < 0:
            write_value(out, field, field.get(<object>field.member, value, program.cls))
    if program.flexible:
        write_tags(program, out, value)
    return 0


cdef Py_ssize_t write_up_to(Program program, sink *out, object value, str name) except -1:
    """Write the fields before the one of this name; return how many bytes they are."""
    cdef Py_ssize_t i
    cdef const step *field
    for i in range(program.count):
        field = &program.steps[i]
        if <str>field.name == name:
            if not field.present or field.tag >= 0:
                break
            return out.pos - out.start
        if field.present and field.tag < 0:
            write_value(out, field, field.get(<object>field.member, value, program.cls))
    raise ValueError(f"{program.label} has no field {name} in a place of its own")


cdef int write_tags(Program program, sink *out, object value) except -1:
    """Write the tagged fields that differ from their defaults."""
    cdef Py_ssize_t i, count = 0
    cdef const step *field
    for i in range(program.count - program.tagged, program.count):
        field = &program.steps[i]
        count += not is_default(field, field.get(<object>field.member, value, program.cls))
    reserve(out, KF_VARINT_MAX)
    out.pos = kf_put_uvarint(out.pos, <uint64_t>count)
    for i in range(program.count - program.tagged, program.count):
        field = &program.steps[i]
        item = field.get(<object>field.member, value, program.cls)
        if not is_default(field, item):
            write_tag(out, field, item)
    return 0


cdef int write_tag(sink *out, const step *field, object value) except -1:
    """Write one tagged field: its number, its size, its value."""
    cdef size_t start, size, head
    reserve(out, KF_VARINT_MAX)
    out.pos = kf_put_uvarint(out.pos, <uint64_t>field.tag)
    start = <size_t>(out.pos - out.start)
    write_value(out, field, value)
    size = <size_t>(out.pos - out.start) - start
    head = kf_uvarint_size(size)
    reserve(out, head)  # the size stands before the value, so the value moves up
    memmove(&out.start[start + head], &out.start[start], size)
    kf_put_uvarint(&out.start[start], size)
    out.pos = &out.pos[head]
    return 0


def encode(Program program not None, object value):
    """Return the bytes of one message.

    Raises:
        TypeError, ValueError: a field holds what its type cannot express.
        UnsupportedVersionError: a field is set that this version does not have.
    """
    cdef sink out
    out.start = out.pos = out.end = NULL
    out.trail.program = <void *>program
    out.trail.depth = 0
    try:
        write(program, &out, value)
        return PyBytes_FromStringAndSize(<const char *>out.start, out.pos - out.start)
    finally:
        PyMem_Free(out.start)


def position_of(Program program not None, object value, str name not None):
    """Return at which byte of an encoded message one of its fields begins.

    Raises:
        TypeError, ValueError: a field before it holds what its type cannot express; or this version
            has no such field outside of the tagged section.
    """
    cdef sink out
    if type(value) is not program.cls:
        raise TypeError(f"{program.cls.__name__} expected, not {type(value).__name__}")
    out.start = out.pos = out.end = NULL
    out.trail.program = <void *>program
    out.trail.depth = 0
    try:
        return write_up_to(program, &out, value, name)
    finally:
        PyMem_Free(out.start)
