"""Bytes to messages: one loop that runs a Program over a read cursor.

Bytes come from a peer, so they may be hostile. Before a count is used, it is compared with the
remaining bytes and with a fixed limit. Every fault raises a MalformedError that names message,
version, field and position.

An answer may describe a hundred thousand partitions. To make objects of all of them at once takes
half a second, in which no other Python thread runs. So one array of a message may be read *later*
(`Elements`): at first its bytes are only checked, and its elements are made one by one.

Apache Kafka's brokers read requests with less care than this. Clients rely on that, so a broker for
tests has to read as they do (`decode_as_brokers_do`).
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.list cimport PyList_Append, PyList_New, PyList_SET_ITEM
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from kafka_fast.protocol._program cimport (
    ARRAY, BOOL, BYTES, INT8, INT16, INT32, INT64, RECORDS, STRING, STRUCT, UINT16, UINT32, UUID,
    UUID_LEN, Program, default_of, descend, path_of, place, step, trail,
)

from kafka_fast.errors import MalformedError


cdef extern from "kf_wire.h" nogil:
    ctypedef struct kf_reader:
        const uint8_t *pos
        const uint8_t *end
        bint bad
    size_t kf_left(const kf_reader *reader)
    kf_reader kf_reader_of(const void *data, size_t len)
    const uint8_t *kf_read_span(kf_reader *reader, int64_t len)
    int8_t kf_read_i8(kf_reader *reader)
    int16_t kf_read_i16(kf_reader *reader)
    int32_t kf_read_i32(kf_reader *reader)
    int64_t kf_read_i64(kf_reader *reader)
    uint32_t kf_read_uvarint(kf_reader *reader)
    void kf_enter(kf_reader *outer, kf_reader *inner, int64_t len)

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *)
    object PyLong_FromLong(long)
    object PyMemoryView_FromObject(object)


cdef enum:
    MAX_ELEMENTS = 1000000   # of one array, as Kafka's own readers since 4.4
    MAX_TAGS = 10000         # of one tagged section, as Kafka's own readers since 4.4
    MAX_TEXT = 0x7FFF        # bytes of a string that Kafka's brokers read
    FIRST_ELEMENTS = 1000    # list slots made before the elements have been read

# How the names of fields end that only people read: bad text there must not hide an error's code.
cdef str PROSE = "error_message"


cdef struct source:
    kf_reader reader
    const step *later        # the array of the message that is read later; NULL: none is
    bint blind               # bytes are checked, but nothing is made of them
    bint lenient             # as Kafka's brokers read requests; see `decode_as_brokers_do`
    const uint8_t *start     # first byte of the message: positions in errors count from here
    const uint8_t *at        # first byte of the field that is being read
    void *data               # the object that owns the bytes; records are views of it
    trail trail


cdef object malformed(const source *src, const step *field, str problem):
    """Return the error for the field that is being read.

    Args:
        field: which; NULL: what stands at the cursor, which is no field.
        problem: what stands there, as in "an answer with ...".
    """
    label = (<Program>src.trail.program).label
    pos = (src.reader.pos if field == NULL else src.at) - src.start
    where = path_of(&src.trail, field)
    return MalformedError(f"{label}: {problem} at byte {pos} ({where})", problem=problem,
                          place=where, pos=pos)


cdef str kind_of(uint8_t op):
    """Return what to call the value of a field that has a length."""
    return "a string" if op == STRING else "bytes"


cdef str count_of(int64_t count, str unit):
    """Return a number with its unit: "1 byte", "2 bytes"."""
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


cdef int64_t read_compact(source *src) noexcept:
    """Read a length or count that is stored plus one (KIP-482).

    Brokers keep it in 32 bits with a sign, so a large one is negative to them.
    """
    cdef uint32_t stored = kf_read_uvarint(&src.reader)
    return <int32_t>(stored - 1) if src.lenient else <int64_t>stored - 1


cdef int64_t read_length(source *src, const step *field, uint8_t op) except -2:
    """Read the length of a string (two bytes unless compact) or of bytes; return -1 for null."""
    cdef int64_t length
    if field.compact:
        length = read_compact(src)
    elif op == STRING:
        length = kf_read_i16(&src.reader)
    else:
        length = kf_read_i32(&src.reader)
    if src.reader.bad:
        raise malformed(src, field, "a length that cannot be read")
    if length >= 0:
        if <uint64_t>length > kf_left(&src.reader):
            left = count_of(kf_left(&src.reader), "byte")
            raise malformed(src, field, f"{kind_of(op)} of length {length} in {left}")
        if src.lenient and op == STRING and length > MAX_TEXT:
            raise malformed(src, field, f"a string of length {length}")
        return length
    if length < -1 and not src.lenient:
        raise malformed(src, field, f"{kind_of(op)} of length {length}")
    if not field.nullable:
        raise malformed(src, field, "a null that the version does not allow")
    return -1


cdef object read_text(source *src, const step *field, uint8_t op):
    """Read a string, bytes or records: a length, then that many bytes."""
    cdef int64_t length = read_length(src, field, op)
    cdef const uint8_t *at
    cdef Py_ssize_t pos
    if length < 0:
        return None
    pos = src.reader.pos - src.start
    at = kf_read_span(&src.reader, length)
    if op == BYTES:
        return PyBytes_FromStringAndSize(<const char *>at, <Py_ssize_t>length)
    if op == RECORDS:
        # The cast makes one index one byte, whatever shape the caller's buffer has.
        return PyMemoryView_FromObject(<object>src.data).cast("B")[pos:pos + length]
    try:
        return PyUnicode_DecodeUTF8(<const char *>at, <Py_ssize_t>length, NULL)
    except UnicodeDecodeError as error:
        if src.lenient or (<str>field.name).endswith(PROSE):
            return PyUnicode_DecodeUTF8(<const char *>at, <Py_ssize_t>length, "replace")
        raise malformed(src, field, f"a string that is not UTF-8 ({error.reason})") from error


cdef object read_scalar(source *src, const step *field, uint8_t op):
    """Read anything but arrays and structs."""
    cdef const uint8_t *at
    cdef int64_t raw
    cdef double real
    if op == INT32:
        value = PyLong_FromLong(kf_read_i32(&src.reader))
    elif op == INT16:
        value = PyLong_FromLong(kf_read_i16(&src.reader))
    elif op == INT64:
        value = kf_read_i64(&src.reader)
    elif op >= STRING:
        return read_text(src, field, op)
    elif op == BOOL:
        value = kf_read_i8(&src.reader) != 0
    elif op == INT8:
        value = PyLong_FromLong(kf_read_i8(&src.reader))
    elif op == UINT16:
        value = PyLong_FromLong(<uint16_t>kf_read_i16(&src.reader))
    elif op == UINT32:
        value = <uint32_t>kf_read_i32(&src.reader)
    elif op == UUID:
        at = kf_read_span(&src.reader, UUID_LEN)
        value = None if at == NULL else PyBytes_FromStringAndSize(<const char *>at, UUID_LEN)
    else:
        raw = kf_read_i64(&src.reader)
        memcpy(&real, &raw, sizeof(real))
        value = real
    if src.reader.bad:
        raise malformed(src, field, "too few bytes")
    return value


cdef object read_array(source *src, const step *field):
    """Read a count, then that many elements."""
    cdef int64_t count = read_count(src, field)
    cdef Py_ssize_t i, first
    cdef place *here
    cdef list made
    cdef Program program
    if count < 0:
        return None
    first = 0 if src.blind else <Py_ssize_t>min(count, <int64_t>FIRST_ELEMENTS)
    made = PyList_New(first)
    here = &src.trail.places[src.trail.depth]
    descend(&src.trail, field)
    program = None if field.program == NULL else <Program>field.program
    for i in range(<Py_ssize_t>count):
        here.index = i
        src.at = src.reader.pos
        if program is not None:
            element = read(program, src)
        else:
            element = read_scalar(src, field, field.item)
        if i < first:
            Py_INCREF(element)  # PyList_SET_ITEM takes the reference
            PyList_SET_ITEM(made, i, element)
        elif not src.blind:
            PyList_Append(made, element)
    src.trail.depth -= 1
    return made


cdef int64_t read_count(source *src, const step *field) except -2:
    """Read the number of an array's elements, which the remaining bytes can hold; -1 for null."""
    cdef int64_t count
    if field.compact:
        count = read_compact(src)
    else:
        count = kf_read_i32(&src.reader)
    if src.reader.bad:
        raise malformed(src, field, "a count that cannot be read")
    if count < 0:
        if field.nullable and (count == -1 or src.lenient):
            return -1
        raise malformed(src, field, "a null that the version does not allow" if count == -1
                        else f"an array of {count} elements")
    if count > MAX_ELEMENTS or count > <int64_t>kf_left(&src.reader) // field.item_size:
        left = count_of(kf_left(&src.reader), "byte")
        raise malformed(src, field, f"an array of {count_of(count, 'element')} in {left}")
    return count


cdef object read_struct(source *src, const step *field):
    """Read a nested struct; a nullable one has a byte in front that says whether it is there."""
    cdef int8_t mark = 1
    if field.nullable:
        mark = kf_read_i8(&src.reader)
        if src.reader.bad:
            raise malformed(src, field, "too few bytes")
        if mark < 0:
            return None
    descend(&src.trail, field)
    made = read(<Program>field.program, src)
    src.trail.depth -= 1
    return made


cdef inline object read_value(source *src, const step *field):
    """Read the value of one field."""
    if field.op == ARRAY:
        return read_later(src, field) if field == src.later else read_array(src, field)
    if field.op == STRUCT:
        return read_struct(src, field)
    return read_scalar(src, field, field.op)


cdef object read(Program program, source *src):
    """Read one struct at the cursor."""
    cdef Py_ssize_t i
    cdef const step *field
    made = None if src.blind else program.blank()
    for i in range(program.count):
        field = &program.steps[i]
        if field.present and field.tag < 0:
            src.at = src.reader.pos
            value = read_value(src, field)
        else:
            value = None if src.blind else default_of(field)
        if not src.blind:
            field.set(<object>field.member, made, value)
    if program.flexible:
        read_tags(program, src, made)
    return made


cdef int read_tags(Program program, source *src, object made) except -1:
    """Read the tagged section: known tags into their fields, unknown ones skipped."""
    cdef uint32_t count = kf_read_uvarint(&src.reader)
    cdef uint32_t i, tag, last = 0
    cdef Py_ssize_t known = program.count - program.tagged
    cdef Py_ssize_t first_known = known
    cdef int64_t size
    cdef kf_reader outer
    cdef const step *field
    if src.reader.bad:
        raise malformed(src, NULL, "a count of tagged fields that cannot be read")
    if count > MAX_TAGS or count > kf_left(&src.reader) // 2:
        raise malformed(src, NULL, f"a section of {count} tagged fields")
    for i in range(count):
        tag = kf_read_uvarint(&src.reader)
        if src.lenient:
            refuse_foreign(program, src, tag)
            known = first_known
        elif i != 0 and tag <= last:
            raise malformed(src, NULL, f"tag {tag} behind tag {last}")
        last = tag
        outer = src.reader
        size = <int64_t>kf_read_uvarint(&outer)
        while known < program.count and program.steps[known].tag < tag:
            known += 1
        if src.lenient and known < program.count and program.steps[known].tag == tag:
            src.reader = outer  # brokers read a size, and then go by what the value takes
        else:
            kf_enter(&outer, &src.reader, size)
        if outer.bad:
            src.reader = outer
            raise malformed(src, NULL, f"too few bytes for tag {tag}")
        if known < program.count and program.steps[known].tag == tag:
            field = &program.steps[known]
            src.at = src.reader.pos
            value = read_value(src, field)
            if not src.blind:
                field.set(<object>field.member, made, value)
            if src.lenient:
                continue
            if src.reader.pos != src.reader.end:
                left = count_of(kf_left(&src.reader), "byte")
                raise malformed(src, field, f"{left} left over in tag {tag}")
        src.reader = outer
    return 0


cdef object read_later(source *src, const step *field):
    """Check an array, and return what makes its elements when they are asked for."""
    cdef kf_reader front = src.reader
    src.blind = True
    read_array(src, field)
    src.blind = False
    return later_of(src, field, front)


cdef class Elements:
    """The elements of an array that was checked, made one by one in their order.

    Keeps the bytes of the message until it is dropped. `len` is the number of those to come.
    """

    cdef source src
    cdef const step *field
    cdef Py_ssize_t left
    cdef Py_buffer view
    cdef object program      # keeps the steps

    def __dealloc__(self):
        PyBuffer_Release(&self.view)

    def __len__(self):
        return self.left

    def __iter__(self):
        return self

    def __next__(self):
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        if self.field.program == NULL:
            return read_scalar(&self.src, self.field, self.field.item)
        return read(<Program>self.field.program, &self.src)


cdef Elements later_of(source *src, const step *field, kf_reader front):
    """Return the elements of the array that begins at `front`."""
    cdef Elements made = Elements.__new__(Elements)
    PyObject_GetBuffer(<object>src.data, &made.view, PyBUF_SIMPLE)
    made.program = <object>src.trail.program
    made.field = field
    made.src = src[0]
    made.src.reader = front
    made.left = <Py_ssize_t>max(read_count(&made.src, field), 0)
    descend(&made.src.trail, field)
    return made


cdef int refuse_foreign(Program program, const source *src, uint32_t tag) except -1:
    """Refuse a tag that brokers know, but not in this version."""
    cdef Py_ssize_t i
    for i in range(program.count):
        if program.steps[i].foreign_tag == <int64_t>tag:
            raise malformed(src, NULL, f"tag {tag}, which the version does not have,")
    return 0


def decode(Program program not None, object data):
    """Read one message that ends where `data` ends.

    Args:
        data: bytes-like; `records` fields of the result are views of it.

    Raises:
        MalformedError: the bytes do not follow the schema.
    """
    return scan(program, data, True, NULL, False)[0]


def decode_as_brokers_do(Program program not None, object data):
    """Read one message at the start of `data` as Kafka's brokers read; return it and the position.

    Brokers take any sequence of tags, and the same tag twice. They do not use the size of a tag
    that they know. Bytes that are not UTF-8 become U+FFFD. Each negative length stands for null.
    But strings have at most 32767 bytes, and a tag of another version is refused.
    """
    return scan(program, data, False, NULL, True)


def decode_front(Program program not None, object data):
    """Read one message at the start of `data`; return it and the position after it."""
    return scan(program, data, False, NULL, False)


def decode_later(Program program not None, object data, str name not None):
    """Read one message as `decode` does, but the array `name` is an iterator of its elements.

    All bytes are checked now. The iterator makes an element when it is asked for the next one.

    Args:
        data: bytes that do not change.
        name: an array of the message itself.
    """
    cdef Py_ssize_t i
    for i in range(program.count):
        if <object>program.steps[i].name == name and program.steps[i].op == ARRAY:
            return scan(program, data, True, &program.steps[i], False)[0]
    raise ValueError(f"{program.label} has no array {name}")


cdef tuple scan(Program program, object data, bint exact, const step *later, bint lenient):
    """Read one message; return it and the position after it."""
    cdef source src
    cdef Py_buffer view
    src.later = later
    src.blind = False
    src.lenient = lenient
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        src.start = src.at = <const uint8_t *>view.buf
        src.reader = kf_reader_of(view.buf, <size_t>view.len)
        src.data = <void *>data
        src.trail.program = <void *>program
        src.trail.depth = 0
        made = read(program, &src)
        if exact and src.reader.pos != src.reader.end:
            raise malformed(&src, NULL, f"{count_of(kf_left(&src.reader), 'byte')} left over")
        return made, src.reader.pos - src.start
    finally:
        PyBuffer_Release(&view)
