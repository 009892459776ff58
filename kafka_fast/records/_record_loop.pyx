"""What the iterators of `for` and `async for` over a consumer share: they see how a loop ends.

A loop that ends by `break` or `return` has done its last record. A loop that is ended by an
exception has not. `with` cannot tell the two apart if the exception is caught inside the block,
so the iterator itself has to. It can: CPython drops the iterator of a `for` statement in the
frame of that statement, and while it unwinds an exception, that exception is still set.

Two conditions make a drop count as `break` or `return`:

* No exception is set.
* The frame that runs now is the one whose `for` statement runs this loop. A generator that is
  closed, or a traceback that is freed, drops what it holds in the frame of somebody else.

The frame is not owned, which would be a cycle. Its address stays its own while it is compared: the
iterator is on the frame's stack (see `consumer/reading/for_statement.py`), so it cannot outlive the
frame.

Thread: the consumer's user.
"""

from cpython.object cimport PyObject, PyTypeObject, destructor

from kafka_fast._hints import refused_new

cdef extern from "Python.h":
    void* PyErr_Occurred()
    void* PyEval_GetFrame()


cdef class RecordLoop:
    """The iterator of one loop; a base class.

    Args:
        records: what all loops of the consumer take their records from.
        frame: the frame whose `for` statement runs this loop; None: not known, and the loop's last
            record is never done by leaving the loop.
    """

    def __cinit__(self, made_of=None, *others, **named):
        cdef RecordIterator records
        if not isinstance(made_of, RecordIterator):
            refused_new(type(self))
        records = made_of
        if records.holder == <void*>self:
            # An earlier loop at this address: the garbage collector took its `records` away first.
            records.detach()
        self.records = records

    def __init__(self, RecordIterator records not None, object frame) -> None:
        self.frame = NULL if frame is None else <void*>frame

    def __reduce__(self):
        raise TypeError(
            "a loop over a consumer cannot be pickled or copied: make a Consumer where it is "
            "needed, and begin a loop there"
        )

    cdef bint is_undisturbed(self) noexcept:
        """Return whether this loop got the latest record, and nobody has woken the consumer."""
        return self.records.asker == <void*>self

    cpdef bint begin_next(self) noexcept:
        """Note that the next record is asked for; return whether it is the first of this loop.

        An interruption from now on is seen.
        """
        cdef bint is_first = not self.has_begun
        self.has_begun = True
        self.interruptions = self.records.interruptions
        return is_first

    cpdef ConsumerRecord take_next(self):
        """Return the next record, and note that this loop has it."""
        cdef RecordIterator records = self.records
        cdef ConsumerRecord record = records.take()
        records.is_left = False
        records.holder = <void*>self
        records.asker = <void*>self if records.interruptions == self.interruptions else NULL
        return record


cdef destructor dealloc_rest = NULL  # what Cython has generated


cdef void dealloc(PyObject* loop) noexcept:
    """Note how a loop ends, and free it.

    `__dealloc__` cannot do this: Cython puts the exception that is set aside before it.
    """
    cdef RecordIterator records = (<RecordLoop>loop).records
    cdef void* frame = (<RecordLoop>loop).frame
    if records is not None and records.holder == <void*>loop:
        records.holder = records.asker = NULL
        records.is_left = PyErr_Occurred() == NULL and frame != NULL and PyEval_GetFrame() == frame
    records = None
    dealloc_rest(loop)


cdef int note_how_loops_end() except -1:
    global dealloc_rest
    cdef PyTypeObject* kind = <PyTypeObject*>RecordLoop
    dealloc_rest = kind.tp_dealloc
    kind.tp_dealloc = <destructor>dealloc
    return 0


note_how_loops_end()
