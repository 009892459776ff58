"""The compiled form of a schema, which the two codec loops run.

A Program is the flat list of the fields of one struct in one version: for each field its wire
type, its slot in the instance and its default. Arrays and nested structs point to the Program of
their elements. `schema.py` makes Programs, `_decode` and `_encode` run them; nothing here or there
knows any Kafka API.
"""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject, PyTypeObject


cdef extern from "Python.h":
    ctypedef struct slots "PyTypeObject":
        descrsetfunc tp_descr_set
        descrgetfunc tp_descr_get
        object (*tp_new)(PyTypeObject *, object, PyObject *)
    PyTypeObject *Py_TYPE(object)


cdef tuple EMPTY = ()


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


cdef int descend(trail *at, const step *field) except -1:
    """Go one level deeper, into `field`."""
    if at.depth == MAX_DEPTH:
        raise SystemError("a schema nests deeper than MAX_DEPTH")
    at.places[at.depth].at = field
    at.places[at.depth].index = -1
    at.depth += 1
    return 0


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
    cdef Program program
    if value is None or field.default_null:
        return value is None and field.default_null
    if field.op == ARRAY:
        return len(value) == 0
    if field.op == STRUCT:
        program = <Program>field.program
        return type(value) is program.cls and program.is_blank(value)
    return value is <object>field.default or value == <object>field.default


cdef class Program:
    """The fields of one struct in one version, ready to run.

    Args:
        made: class of the struct; its instances are made without calling `__init__`.
        label: how errors call it: "MetadataRequest v9".
        flexible: the struct ends with a section of tagged fields.
        fields: one `schema.VersionedField` each; those with a tag come last, in ascending order.
    """

    def __cinit__(self, object made, str label, bint flexible, object fields):
        cdef Py_ssize_t i
        cdef step *field
        self.cls = made
        self.label = label
        self.flexible = flexible
        self.keep = list(fields)
        self.count = len(fields)
        self.steps = <step *>PyMem_Calloc(max(self.count, 1), sizeof(step))
        if self.steps == NULL:
            raise MemoryError()
        self.min_size = 1 if flexible else 0
        for i, (name, op, item, present, nullable, compact, ignorable, tag, foreign_tag, default,
                sub) in enumerate(fields):
            field = &self.steps[i]
            member = getattr(made, name)
            self.keep.append(member)
            field.name = <void *>name
            field.member = <void *>member
            field.set = (<slots *>Py_TYPE(member)).tp_descr_set
            field.get = (<slots *>Py_TYPE(member)).tp_descr_get
            field.op, field.item = op, item
            field.present, field.nullable, field.compact = present, nullable, compact
            field.ignorable = ignorable
            field.tag, field.foreign_tag = tag, foreign_tag
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

    cdef object blank(self):
        """Return an instance whose slots are empty: the caller fills every one of them."""
        return (<slots *>self.cls).tp_new(<PyTypeObject *>self.cls, EMPTY, NULL)

    cdef object make(self):
        """Return an instance whose fields have their defaults."""
        cdef Py_ssize_t i
        made = self.blank()
        for i in range(self.count):
            self.steps[i].set(<object>self.steps[i].member, made, default_of(&self.steps[i]))
        return made

    cdef bint is_blank(self, object value) except -1:
        """Tell whether every field of an instance has its default."""
        cdef Py_ssize_t i
        for i in range(self.count):
            item = self.steps[i].get(<object>self.steps[i].member, value, self.cls)
            if not is_default(&self.steps[i], item):
                return False
        return True

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
