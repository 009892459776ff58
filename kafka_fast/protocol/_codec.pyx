"""Run the field programs that `schema.py` compiles: bytes to messages and back.

A Program is the flat list of the fields of one struct in one version. Reading walks the list with
one cursor and stores each value into its slot; writing walks it the other way. Arrays and nested
structs point to the Program of their elements. Nothing here knows any Kafka API.

Bytes come from a peer, so they are hostile: a count is compared with the bytes that are left and
with a fixed limit before anything is made of it, and every fault is a MalformedError that names
message, version, field and position. A wrong value in a message to encode is the caller's fault
and raises TypeError or ValueError with the same path.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.list cimport PyList_Append, PyList_New, PyList_SET_ITEM
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport INT64_MAX, INT64_MIN
from libc.string cimport memcpy, memmove

from kafka_fast.errors import MalformedError, UnsupportedVersionError


cdef extern from "kf_wire.h" nogil:
    size_t kf_left(const kf_reader *reader)
    kf_reader kf_reader_of(const void *data, size_t len)
    const uint8_t *kf_read_span(kf_reader *reader, int64_t len)
    int8_t kf_read_i8(kf_reader *reader)
    int16_t kf_read_i16(kf_reader *reader)
    int32_t kf_read_i32(kf_reader *reader)
    int64_t kf_read_i64(kf_reader *reader)
    uint32_t kf_read_uvarint(kf_reader *reader)
    void kf_enter(kf_reader *outer, kf_reader *inner, int64_t len)
    uint8_t *kf_put_i8(uint8_t *at, int8_t value)
    uint8_t *kf_put_i16(uint8_t *at, int16_t value)
    uint8_t *kf_put_i32(uint8_t *at, int32_t value)
    uint8_t *kf_put_i64(uint8_t *at, int64_t value)
    uint8_t *kf_put_uvarint(uint8_t *at, uint64_t raw)
    uint8_t *kf_put_bytes(uint8_t *at, const void *data, size_t len)
    size_t kf_uvarint_size(uint64_t raw)
    enum: KF_VARINT_MAX

cdef extern from "Python.h":
    ctypedef struct slots "PyTypeObject":
        descrsetfunc tp_descr_set
        descrgetfunc tp_descr_get
        object (*tp_new)(PyTypeObject *, object, PyObject *)
    PyTypeObject *Py_TYPE(object)
    const char *PyUnicode_AsUTF8AndSize(object, Py_ssize_t *) except NULL
    object PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *)
    object PyLong_FromLong(long)
    object PyMemoryView_FromObject(object)

cdef tuple EMPTY = ()


# ---- where an error happened ----

cdef str path_of(const trail *at, const step *field):
    """Return "topics[3].partitions[0].leader_id" for the field that the loop is at."""
    cdef int i
    cdef list parts = []
    for i in range(at.depth):
        name = <object>at.places[i].at.name
        parts.append(name if at.places[i].index < 0 else f"{name}[{at.places[i].index}]")
    if field != NULL and (at.depth == 0 or at.places[at.depth - 1].at != field):
        parts.append(<object>field.name)
    return ".".join(parts) or "its end"


cdef object malformed(const source *src, const step *field, str reason):
    """Return the error for the bytes at the cursor."""
    label = (<Program>src.trail.program).label
    pos = src.reader.pos - src.start
    return MalformedError(f"{label}: {path_of(&src.trail, field)} at byte {pos}: {reason}")


cdef str refusal(const sink *out, const step *field, object reason):
    """Return the message of the error for a value that cannot be encoded."""
    label = (<Program>out.trail.program).label
    return f"{label}: {path_of(&out.trail, field)}: {reason}"


cdef int descend(trail *at, const step *field) except -1:
    """Go one level deeper, into `field`."""
    if at.depth == MAX_DEPTH:
        raise SystemError("a schema nests deeper than MAX_DEPTH")
    at.places[at.depth].at = field
    at.places[at.depth].index = -1
    at.depth += 1
    return 0


# ---- reading ----

cdef int64_t read_length(source *src, const step *field, bint wide) except -2:
    """Read the length of a string (two bytes unless `wide` or compact); return -1 for null."""
    cdef int64_t length
    if field.compact:
        length = <int64_t>kf_read_uvarint(&src.reader) - 1
    elif wide:
        length = kf_read_i32(&src.reader)
    else:
        length = kf_read_i16(&src.reader)
    if src.reader.bad:
        raise malformed(src, field, "no length that can be read")
    if length >= 0:
        if <uint64_t>length > kf_left(&src.reader):
            left = kf_left(&src.reader)
            raise malformed(src, field, f"a length of {length} with {left} bytes left")
    elif length < -1:
        raise malformed(src, field, f"a length of {length}")
    elif not field.nullable:
        raise malformed(src, field, "null where the version does not allow it")
    return length


cdef object read_text(source *src, const step *field, uint8_t op):
    """Read a string, bytes or records: a length, then that many bytes."""
    cdef int64_t length = read_length(src, field, op != STRING)
    cdef const uint8_t *at
    cdef Py_ssize_t pos
    if length < 0:
        return None
    pos = src.reader.pos - src.start
    at = kf_read_span(&src.reader, length)
    if op == BYTES:
        return PyBytes_FromStringAndSize(<const char *>at, <Py_ssize_t>length)
    if op == RECORDS:
        return PyMemoryView_FromObject(<object>src.data)[pos:pos + length]
    try:
        return PyUnicode_DecodeUTF8(<const char *>at, <Py_ssize_t>length, NULL)
    except UnicodeDecodeError as error:
        raise malformed(src, field, f"not UTF-8: {error.reason}") from error


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
        raise malformed(src, field, "the bytes end inside the field")
    return value


cdef object read_array(source *src, const step *field):
    """Read a count, then that many elements."""
    cdef int64_t count
    cdef Py_ssize_t i, first
    cdef place *here
    cdef list made
    cdef Program program
    if field.compact:
        count = <int64_t>kf_read_uvarint(&src.reader) - 1
    else:
        count = kf_read_i32(&src.reader)
    if src.reader.bad:
        raise malformed(src, field, "no count that can be read")
    if count < 0:
        if count == -1 and field.nullable:
            return None
        raise malformed(src, field, "null where the version does not allow it" if count == -1
                        else f"a count of {count}")
    if count > MAX_ELEMENTS or count > <int64_t>kf_left(&src.reader) // field.item_size:
        left = kf_left(&src.reader)
        raise malformed(src, field, f"{count} elements with {left} bytes left")
    first = <Py_ssize_t>min(count, <int64_t>FIRST_ELEMENTS)
    made = PyList_New(first)
    here = &src.trail.places[src.trail.depth]
    descend(&src.trail, field)
    program = None if field.program == NULL else <Program>field.program
    for i in range(<Py_ssize_t>count):
        here.index = i
        if program is not None:
            element = program.read(src)
        else:
            element = read_scalar(src, field, field.item)
        if i < first:
            Py_INCREF(element)  # PyList_SET_ITEM takes the reference
            PyList_SET_ITEM(made, i, element)
        else:
            PyList_Append(made, element)
    src.trail.depth -= 1
    return made


cdef object read_struct(source *src, const step *field):
    """Read a nested struct; a nullable one has a byte in front that says whether it is there."""
    cdef int8_t mark = 1
    if field.nullable:
        mark = kf_read_i8(&src.reader)
        if src.reader.bad:
            raise malformed(src, field, "the bytes end inside the field")
        if mark < 0:
            return None
    descend(&src.trail, field)
    made = (<Program>field.program).read(src)
    src.trail.depth -= 1
    return made


cdef inline object read_value(source *src, const step *field):
    """Read the value of one field."""
    if field.op == ARRAY:
        return read_array(src, field)
    if field.op == STRUCT:
        return read_struct(src, field)
    return read_scalar(src, field, field.op)


# ---- writing ----

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
    except TypeError as error:
        kind = type(value).__name__
        raise TypeError(refusal(out, field, f"bytes expected, not {kind}")) from error
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


cdef int64_t whole(sink *out, const step *field, object value, int64_t low, int64_t high) except? -1:
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
            program.write(out, element)
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
        (<Program>field.program).write(out, value)
        out.trail.depth -= 1
    return 0


cdef int write_value(sink *out, const step *field, object value) except -1:
    """Write the value of one field."""
    if field.op == ARRAY:
        return write_array(out, field, value)
    if field.op == STRUCT:
        return write_struct(out, field, value)
    return write_scalar(out, field, value, field.op)


# ---- defaults ----

cdef object default_of(const step *field):
    """Return the default of a field: a fresh object where the value can be changed."""
    if field.default_null:
        return None
    if field.op == ARRAY:
        return []
    if field.op == STRUCT:
        return (<Program>field.program).make()
    return <object>field.default


cdef bint is_default(const step *field, object value) except -1:
    """Tell whether a value need not be written: it is what the reader assumes anyway."""
    if value is None or field.default_null:
        return value is None and field.default_null
    if field.op == ARRAY:
        return len(value) == 0
    if field.op == STRUCT:
        return value == default_of(field)
    return value is <object>field.default or value == <object>field.default


cdef class Program:
    """The fields of one struct in one version, ready to run.

    Args:
        cls: class of the struct; its instances are made without calling `__init__`.
        label: how errors call it: "MetadataRequest v9".
        flexible: the struct ends with a section of tagged fields.
        fields: one tuple per field: (name, op, item, present, nullable, compact, ignorable, tag,
            default, program). Fields with a tag come last, in ascending order of tag.
    """

    def __cinit__(self, object cls, str label, bint flexible, list fields):
        cdef Py_ssize_t i
        cdef step *field
        self.cls = cls
        self.label = label
        self.flexible = flexible
        self.keep = list(fields)
        self.count = len(fields)
        self.steps = <step *>PyMem_Calloc(max(self.count, 1), sizeof(step))
        if self.steps == NULL:
            raise MemoryError()
        self.min_size = 1 if flexible else 0
        for i, (name, op, item, present, nullable, compact, ignorable, tag, default, sub) in (
                enumerate(fields)):
            field = &self.steps[i]
            member = getattr(cls, name)
            self.keep.append(member)
            field.name = <void *>name
            field.member = <void *>member
            field.set = (<slots *>Py_TYPE(member)).tp_descr_set
            field.get = (<slots *>Py_TYPE(member)).tp_descr_get
            field.op, field.item = op, item
            field.present, field.nullable, field.compact = present, nullable, compact
            field.ignorable, field.tag = ignorable, tag
            field.default = <void *>default
            field.default_null = default is None
            field.program = NULL if sub is None else <void *>sub
            if op == ARRAY:
                field.item_size = max(1, least(item, False, compact, sub))
            if tag >= 0:
                self.tagged += present
            elif present:
                self.min_size += least(op, nullable, compact, sub)

    def __dealloc__(self):
        PyMem_Free(self.steps)

    cdef object make(self):
        """Return an instance whose fields have their defaults."""
        cdef Py_ssize_t i
        made = (<slots *>self.cls).tp_new(<PyTypeObject *>self.cls, EMPTY, NULL)
        for i in range(self.count):
            self.steps[i].set(<object>self.steps[i].member, made, default_of(&self.steps[i]))
        return made

    def fill(self, object made, dict values):
        """Set every field of a new instance, to its value in `values` or to its default."""
        cdef Py_ssize_t i, taken = 0
        cdef step *field
        for i in range(self.count):
            field = &self.steps[i]
            if <object>field.name in values:
                taken += 1
                field.set(<object>field.member, made, values[<object>field.name])
            else:
                field.set(<object>field.member, made, default_of(field))
        if taken != len(values):
            names = {<object>self.steps[i].name for i in range(self.count)}
            extra = ", ".join(sorted(name for name in values if name not in names))
            raise TypeError(f"{self.cls.__name__} has no field {extra}")

    cdef object read(self, source *src):
        """Read one struct at the cursor."""
        cdef Py_ssize_t i
        cdef const step *field
        made = (<slots *>self.cls).tp_new(<PyTypeObject *>self.cls, EMPTY, NULL)
        for i in range(self.count):
            field = &self.steps[i]
            if field.present and field.tag < 0:
                field.set(<object>field.member, made, read_value(src, field))
            else:
                field.set(<object>field.member, made, default_of(field))
        if self.flexible:
            self.read_tags(src, made)
        return made

    cdef int read_tags(self, source *src, object made) except -1:
        """Read the tagged section: known tags into their fields, unknown ones skipped."""
        cdef uint32_t count = kf_read_uvarint(&src.reader)
        cdef uint32_t i, tag, last = 0
        cdef Py_ssize_t known = self.count - self.tagged
        cdef kf_reader outer
        cdef const step *field
        if src.reader.bad or count > MAX_TAGS or count > kf_left(&src.reader) // 2:
            raise malformed(src, NULL, f"a section of {count} tagged fields")
        for i in range(count):
            tag = kf_read_uvarint(&src.reader)
            if i != 0 and tag <= last:
                raise malformed(src, NULL, f"tag {tag} follows tag {last}")
            last = tag
            outer = src.reader
            kf_enter(&outer, &src.reader, <int64_t>kf_read_uvarint(&outer))
            if outer.bad:
                src.reader = outer
                raise malformed(src, NULL, f"the bytes end inside tag {tag}")
            while known < self.count and self.steps[known].tag < tag:
                known += 1
            if known < self.count and self.steps[known].tag == tag:
                field = &self.steps[known]
                field.set(<object>field.member, made, read_value(src, field))
                if src.reader.pos != src.reader.end:
                    raise malformed(src, field, f"{kf_left(&src.reader)} bytes left in tag {tag}")
            src.reader = outer
        return 0

    cdef int write(self, sink *out, object value) except -1:
        """Write one struct."""
        cdef Py_ssize_t i
        cdef const step *field
        if type(value) is not self.cls:
            kind = type(value).__name__
            raise TypeError(refusal(out, NULL, f"{self.cls.__name__} expected, not {kind}"))
        for i in range(self.count):
            field = &self.steps[i]
            if not field.present:
                if not field.ignorable and not is_default(
                        field, field.get(<object>field.member, value, self.cls)):
                    raise UnsupportedVersionError(
                        refusal(out, field, "set, but this version cannot carry it"))
            elif field.tag < 0:
                write_value(out, field, field.get(<object>field.member, value, self.cls))
        if self.flexible:
            self.write_tags(out, value)
        return 0

    cdef int write_tags(self, sink *out, object value) except -1:
        """Write the tagged fields that differ from their defaults."""
        cdef Py_ssize_t i, size, count = 0
        cdef size_t at, head
        cdef const step *field
        cdef list values = []
        for i in range(self.count - self.tagged, self.count):
            field = &self.steps[i]
            item = field.get(<object>field.member, value, self.cls)
            if not is_default(field, item):
                values.append((i, item))
        reserve(out, KF_VARINT_MAX)
        out.pos = kf_put_uvarint(out.pos, <uint64_t>len(values))
        for i, item in values:
            field = &self.steps[i]
            reserve(out, KF_VARINT_MAX)
            out.pos = kf_put_uvarint(out.pos, <uint64_t>field.tag)
            at = <size_t>(out.pos - out.start)
            write_value(out, field, item)
            size = (out.pos - out.start) - <Py_ssize_t>at
            head = kf_uvarint_size(<uint64_t>size)
            reserve(out, head)  # the size stands before the value, so the value moves up
            memmove(&out.start[at + head], &out.start[at], <size_t>size)
            kf_put_uvarint(&out.start[at], <uint64_t>size)
            out.pos = &out.pos[head]
        return 0

    def decode(self, object data):
        """Read one message that ends where `data` ends.

        Args:
            data: bytes-like; `records` fields of the result are views of it.

        Raises:
            MalformedError: the bytes do not follow the schema.
        """
        return self.scan(data, True)[0]

    def decode_front(self, object data):
        """Read one message at the start of `data`; return it and the position after it."""
        return self.scan(data, False)

    cdef tuple scan(self, object data, bint exact):
        """Read one message; return it and the position after it."""
        cdef source src
        cdef Py_buffer view
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            src.start = <const uint8_t *>view.buf
            src.reader = kf_reader_of(view.buf, <size_t>view.len)
            src.data = <void *>data
            src.trail.program = <void *>self
            src.trail.depth = 0
            made = self.read(&src)
            if exact and src.reader.pos != src.reader.end:
                raise malformed(&src, NULL, f"{kf_left(&src.reader)} bytes left over")
            return made, src.reader.pos - src.start
        finally:
            PyBuffer_Release(&view)

    def encode(self, object value):
        """Return the bytes of one message.

        Raises:
            TypeError, ValueError: a field holds what its type cannot express.
            UnsupportedVersionError: a field is set that this version does not have.
        """
        cdef sink out
        out.start = out.pos = out.end = NULL
        out.trail.program = <void *>self
        out.trail.depth = 0
        try:
            self.write(&out, value)
            return PyBytes_FromStringAndSize(<const char *>out.start, out.pos - out.start)
        finally:
            PyMem_Free(out.start)


cdef Py_ssize_t least(uint8_t op, bint nullable, bint compact, Program sub) except -1:
    """Return the least number of bytes that a field of this kind takes."""
    if op == STRUCT:
        return 1 if nullable else sub.min_size
    if op == ARRAY or op == BYTES or op == RECORDS:
        return 1 if compact else 4
    if op == STRING:
        return 1 if compact else 2
    if op == UUID:
        return UUID_LEN
    if op == INT64 or op == FLOAT64:
        return 8
    if op == INT32 or op == UINT32:
        return 4
    return 2 if op == INT16 or op == UINT16 else 1
