"""The message codec: a program of fields per (struct, version), and the two loops that run it."""

from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)

ctypedef int (*descrsetfunc)(object, object, object) except -1
ctypedef object (*descrgetfunc)(object, object, object)


cdef extern from "kf_wire.h" nogil:
    ctypedef struct kf_reader:
        const uint8_t *pos
        const uint8_t *end
        bint bad


cpdef enum Op:
    """What a step reads or writes. An ARRAY has the op of its elements in `item`."""
    BOOL = 1
    INT8 = 2
    INT16 = 3
    UINT16 = 4
    INT32 = 5
    UINT32 = 6
    INT64 = 7
    FLOAT64 = 8
    UUID = 9
    STRING = 10
    BYTES = 11
    RECORDS = 12
    STRUCT = 13
    ARRAY = 14


cdef enum:
    MAX_ELEMENTS = 1000000   # of one array, as Kafka's own readers since 4.4
    MAX_TAGS = 10000         # of one tagged section, as Kafka's own readers since 4.4
    FIRST_ELEMENTS = 1000    # list slots made before the elements have been read
    MAX_DEPTH = 12           # nested structs and arrays; the deepest message has 5
    UUID_LEN = 16
    NULL_STRUCT = -1         # a nullable struct is preceded by one byte: -1 null, 1 present


cdef struct step:
    # One field of a struct. The pointers are borrowed: the Program keeps the objects.
    uint8_t op
    uint8_t item             # op of an array's elements, else 0
    bint present             # the version carries the field; if not, it takes its default
    bint nullable            # null is allowed in this version
    bint compact             # lengths are unsigned varints plus one (KIP-482)
    bint ignorable           # a value that the version cannot carry is dropped, not an error
    int64_t tag              # number of a tagged field, -1 for a positional one
    Py_ssize_t item_size     # least bytes of one element of an array
    void *name               # str
    void *member             # the slot's member descriptor
    descrsetfunc set         # its type's tp_descr_set: stores without looking the name up
    descrgetfunc get         # its type's tp_descr_get
    void *default            # value of an absent field; unused for arrays and structs
    bint default_null        # the default is null (of any kind)
    void *program            # Program of a struct or of an array's structs


cdef struct place:
    # Where the loop is, for messages of errors.
    const step *at
    Py_ssize_t index         # element of the array, -1 in a struct


cdef struct trail:
    void *program            # the outermost Program
    int depth
    place places[MAX_DEPTH]


cdef struct source:
    kf_reader reader
    const uint8_t *start     # first byte of the message: positions in errors count from here
    void *data               # the object that owns the bytes; records are views of it
    trail trail


cdef struct sink:
    uint8_t *start
    uint8_t *pos             # next byte to write
    uint8_t *end             # end of what is reserved
    trail trail


cdef class Program:
    cdef readonly str label         # "MetadataRequest v9"
    cdef readonly object cls        # class of the structs it makes
    cdef readonly bint flexible     # a tagged section ends the struct
    cdef readonly Py_ssize_t min_size   # least bytes of one struct
    cdef list keep                  # owns what the steps point to
    cdef step *steps
    cdef Py_ssize_t count
    cdef Py_ssize_t tagged          # number of the steps, the last ones, that have a tag

    cdef object make(self)
    cdef tuple scan(self, object data, bint exact)
    cdef object read(self, source *src)
    cdef int read_tags(self, source *src, object made) except -1
    cdef int write(self, sink *out, object value) except -1
    cdef int write_tags(self, sink *out, object value) except -1
