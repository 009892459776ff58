"""A coroutine that usually need not wait."""

from cpython.object cimport PyObject


# A step of a coroutine or an iterator, as PyIter_Send takes it.
ctypedef int (*send_function)(PyObject* steps, PyObject* value, PyObject** result) except -1


cdef class ReadyCall:
    cdef object rest   # the coroutine that goes on where the work has to wait; None: none is needed
    cdef bint is_begun
    cdef object __weakref__

    cdef object begin(self)
    cdef int drop(self) except -1
    cdef str name(self)


# Let instances of a type return results without raising a StopIteration.
cdef int set_send(object kind, send_function send) except -1

# The same for a subclass of ReadyCall.
cdef int send_in_steps(object kind) except -1
