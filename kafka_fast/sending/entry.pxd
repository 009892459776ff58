"""The short way into a method: a C function that is entered in place of the method's own.

Nearly all calls of `send` bring bytes, with a key or a callback at most. To unpack eight arguments
costs as much as to encode a record, so these calls are told apart by a look at what the caller has
put on the stack. All others go on to the method as it stands. A method's entry is a pointer in the
table that the type was made from. Only that pointer is replaced; signature and docstring stay as
they are.

That table is CPython's own affair. So a Python that is newer than those which were tried keeps its
methods as they stand, and so does any with `KAFKA_FAST_SHORT_CALLS=0` in its environment. A call
then costs a little more, and an error about the name of an argument has no hint.
"""

from cpython.object cimport PyObject
from libc.stdlib cimport getenv
from libc.string cimport strcmp

from kafka_fast._hints cimport hint_at_argument

cdef extern from "Python.h":
    ctypedef struct PyMethodDef:
        void* ml_meth
        int ml_flags
    ctypedef struct PyMethodDescrObject:
        PyMethodDef* d_method
    int PY_VERSION_HEX
    int METH_FASTCALL
    int METH_KEYWORDS
    bint is_plain_bytes "PyBytes_CheckExact"(PyObject* item)
    bint is_plain_str "PyUnicode_CheckExact"(PyObject* item)
    Py_ssize_t count_of "PyTuple_GET_SIZE"(PyObject* names)
    PyObject* item_of "PyTuple_GET_ITEM"(PyObject* names, Py_ssize_t i)

cdef extern from *:
    """
    #define kf_result_of(result) (result)
    """
    object result_of "kf_result_of"(PyObject* result)  # NULL: an error is set

ctypedef object (*entry)(object self, PyObject** args, Py_ssize_t count, PyObject* names)


ctypedef PyObject* (*raw_entry)(PyObject* self, PyObject** args, Py_ssize_t count,
                                PyObject* names) noexcept


cdef inline PyObject* call_as_it_stands(entry before, PyObject* self, PyObject** args,
                                        Py_ssize_t count, PyObject* names, str method,
                                        dict hints) noexcept:
    """Enter the method by its former entry; an error about a wrong name gets a hint.

    `result_of` takes what this returns. An error that comes out of this would have another line in
    its traceback.
    """
    cdef PyObject* result = (<raw_entry>before)(self, args, count, names)
    if result == NULL:
        hint_at_argument(method, names, hints)
    return result


cdef enum:
    TRIED_BELOW = 0x03100000  # 3.16


cdef inline entry replace_entry(object method, void* by) except? NULL:
    """Let the method enter at another C function; return its former entry, or NULL if it stays."""
    cdef PyMethodDef* definition = (<PyMethodDescrObject*>method).d_method
    cdef entry before = <entry>definition.ml_meth
    cdef const char* switch = getenv("KAFKA_FAST_SHORT_CALLS")
    if PY_VERSION_HEX >= TRIED_BELOW or (switch != NULL and strcmp(switch, "0") == 0):
        return NULL
    if definition.ml_flags != METH_FASTCALL | METH_KEYWORDS:
        raise SystemError(f"{method.__name__} is not called as its entry would be")
    definition.ml_meth = by
    return before


cdef inline bint is_only_name(PyObject* names, PyObject* name) noexcept:
    """Return whether a call names this argument, which is interned, and no other."""
    return count_of(names) == 1 and item_of(names, 0) == name


cdef inline bint names_third(PyObject* names, Py_ssize_t count) noexcept:
    """Return whether a call brings two arguments, and `key` by name: where a third would lie."""
    return count == 2 and is_only_name(names, <PyObject*>"key")


cdef inline PyObject* or_null(PyObject* item) noexcept:
    """Return NULL for None."""
    return NULL if item == <PyObject*>None else item
