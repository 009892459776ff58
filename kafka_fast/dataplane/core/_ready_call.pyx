"""A coroutine that usually need not wait: its work is done in C, in its first step.

    await call ─► begin() ─┬─► the result, at once
                           └─► `rest`: a coroutine that does the work where it has to wait

To its callers it is a coroutine: nothing happens before it is awaited, tasks can be made of it, and
one that is never awaited is warned of.

Thread: that of an event loop.
"""

from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF

cdef extern from "Python.h":
    """
    /* Cython has no name for this slot. */
    static inline void kf_set_am_send(PyTypeObject *type, void *send) {
        type->tp_as_async->am_send = (sendfunc)send;
    }
    """
    int PYGEN_RETURN
    int PyErr_WarnEx(object category, const char* message, Py_ssize_t stack_level) except -1
    int PyIter_Send(PyObject* steps, PyObject* value, PyObject** result) except -1
    void kf_set_am_send(PyTypeObject* type, void* send)


cdef class ReadyCall:
    def __init__(self, *arguments, **named):
        raise TypeError(f"{type(self).__name__} is not made by its users")

    cdef object begin(self):
        """Do the work, and return its result; or set `rest`, if the work has to wait."""
        raise NotImplementedError

    cdef int drop(self) except -1:
        """Let go of what `begin` would need: it is not called any more."""
        raise NotImplementedError

    def __await__(self):
        if self.rest is not None and self.rest.cr_frame is not None:
            raise RuntimeError("coroutine is being awaited already")
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return take_step(self, None)

    def send(self, value):
        """Go on after a wait, as a coroutine's method of this name."""
        return take_step(self, value)

    def throw(self, kind, value=None, traceback=None):
        """Raise an exception where the call waits, as a coroutine's method of this name."""
        rest = self.rest
        self.is_begun = True
        if rest is None:
            self.drop()
            raise (kind if isinstance(kind, BaseException) else kind() if value is None else value)
        try:
            return rest.throw(kind if value is None else value)
        except BaseException:
            if rest.cr_frame is None:  # else it runs, and this call comes from within it
                self.rest = None
            raise

    def close(self):
        """End the call where it waits, as a coroutine's method of this name."""
        rest = self.rest
        self.is_begun = True
        if rest is None:
            self.drop()
            return
        rest.close()
        self.rest = None

    def __reduce__(self):
        """Refuse to be copied, as coroutines do: a copy would do the work once more."""
        raise TypeError(
            f"a call of {self.name()} cannot be pickled or copied: await it, and use what it "
            "returns"
        )

    # What asyncio and debuggers read of coroutines.

    @property
    def __name__(self):
        return self.name().rpartition(".")[2]

    @property
    def __qualname__(self):
        return self.name()

    @property
    def cr_await(self):
        return self.rest

    @property
    def cr_frame(self):
        return None if self.rest is None else self.rest.cr_frame

    @property
    def cr_running(self):
        return False if self.rest is None else self.rest.cr_running

    def __dealloc__(self):
        if not self.is_begun:  # by C's function: at the interpreter's end modules may be gone
            text = f"coroutine '{self.name()}' was never awaited".encode()
            PyErr_WarnEx(RuntimeWarning, text, 1)

    cdef str name(self):
        return type(self).__name__


cdef int step(ReadyCall call, PyObject* value, PyObject** result) except -1:
    """Take a step; `result` gets a new reference to what is returned, or yielded.

    This is the type's am_send: with it, a result costs no StopIteration. No `try` in here: it would
    cost as much as the rest. If `rest` raises it stays, and refuses to be awaited again.
    """
    cdef int how
    result[0] = NULL
    if not call.is_begun:
        call.is_begun = True
        outcome = call.begin()
        if call.rest is None:
            Py_INCREF(outcome)
            result[0] = <PyObject*>outcome
            return PYGEN_RETURN
    elif call.rest is None:
        raise RuntimeError("cannot reuse already awaited coroutine")
    rest = call.rest  # a reference of its own: what it runs may call methods of `call`
    how = PyIter_Send(<PyObject*>rest, value, result)
    if how == PYGEN_RETURN:
        call.rest = None
    return how


cdef object take_step(ReadyCall call, object value):
    """Take a step as an iterator does: a result is raised as a StopIteration."""
    cdef PyObject* result = NULL
    cdef int how = step(call, <PyObject*>value, &result)
    outcome = <object>result
    Py_DECREF(outcome)
    if how == PYGEN_RETURN:
        raise StopIteration(outcome)
    return outcome


cdef int set_send(object kind, send_function send) except -1:
    kf_set_am_send(<PyTypeObject*>kind, <void*>send)
    return 0


cdef int send_in_steps(object kind) except -1:
    return set_send(kind, <send_function>step)


send_in_steps(ReadyCall)
