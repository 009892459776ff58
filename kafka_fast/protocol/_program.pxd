"""Programs: the fields of one struct in one version, as `_decode` and `_encode` run them."""

from libc.stdint cimport int64_t, uint8_t

ctypedef int (*descrsetfunc)(object, object, object) except -1
ctypedef object (*descrgetfunc)(object, object, object)


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
    int64_t foreign_tag      # number that it has in other versions only, or -1
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


cdef class Program:
    cdef readonly str label         # "MetadataRequest v9"
    cdef readonly object cls        # class of the structs it makes
    cdef readonly bint flexible     # a tagged section ends the struct
    cdef readonly Py_ssize_t min_size   # least bytes of one struct
    cdef list keep                  # owns what the steps point to
    cdef step *steps
    cdef Py_ssize_t count
    cdef Py_ssize_t tagged          # number of the steps, the last ones, that have a tag

    cdef object blank(self)         # an instance without any field set
    cdef object make(self)          # an instance with every default
    cdef bint is_blank(self, object value) except -1


cdef object default_of(const step *field)
cdef bint is_default(const step *field, object value) except -1
cdef str path_of(const trail *at, const step *field)
cdef int descend(trail *at, const step *field) except -1
