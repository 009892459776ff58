"""Hints for those who use the names of another client: what kafka_fast calls the same thing.

A name that exists must not pay for this. A `__getattr__` would make each call of a method some 25
ns slower: of compiled classes always, of all others before Python 3.12, because the interpreter
then makes a bound method for the call. Entries of the class itself would be listed by `dir()`, so a
mock with that class as its spec would take them for methods. So the hints of a class are entries of
a class of their own. It stands last in the method resolution order, but not among the bases: only a
look-up that found nothing else comes there, and `dir()` goes by the bases.

Wrong names of arguments are looked at when a call has failed. A `HintedMethod` stands in the class
for a Python function and calls it as the interpreter would: without a frame, without a bound method
and without a copy of the arguments. To whoever looks at it, it is that function. (To set the
function's own vectorcall would do, but Python 3.11 does not go by it.)

Thread: any, with the GIL.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        PyObject* tp_mro
        PyObject* tp_dict
        const char* tp_name
        const char* tp_doc
        unsigned long tp_flags
        Py_ssize_t tp_vectorcall_offset
    void PyType_Modified(PyTypeObject* changed)
    unsigned long Py_TPFLAGS_HAVE_VECTORCALL
    unsigned long Py_TPFLAGS_METHOD_DESCRIPTOR
    ctypedef PyObject* (*vectorcallfunc)(PyObject*, PyObject* const*, size_t, PyObject*) noexcept
    PyObject* PyObject_Vectorcall(PyObject* function, PyObject* const* arguments, size_t count,
                                  PyObject* names) noexcept
    Py_ssize_t PyVectorcall_NARGS(size_t count)
    bint PyErr_ExceptionMatches(object kind)
    void PyErr_Fetch(PyObject** kind, PyObject** value, PyObject** trace)
    void PyErr_Restore(PyObject* kind, PyObject* value, PyObject* trace)
    void PyErr_SetObject(object kind, object value)

from types import FunctionType, MethodType

cdef list kept_texts = []  # bytes that types point to, forever


# ---- attributes ----

cdef class OtherName:
    """An attribute that another client has. To look it up is an AttributeError with a hint."""

    cdef str name
    cdef str hint

    def __init__(self, str name not None, str hint not None) -> None:
        self.name = name
        self.hint = hint

    def __get__(self, instance, owner):
        owner = type(instance) if owner is None else owner
        found = behind(owner, self)
        if found is not None:
            getter = getattr(type(found), "__get__", None)
            return found if getter is None else getter(found, instance, owner)
        what = f"{owner.__name__!r} object" if instance is not None else f"type {owner.__name__!r}"
        # Without `obj` Python adds no guess of its own, which might be another name.
        raise AttributeError(f"{what} has no attribute {self.name!r}: {self.hint}", name=self.name)


cdef object behind(type owner, OtherName other):
    """Return what a class has under this name that was mixed in behind the hints, or None."""
    cdef bint is_behind = False
    for base in owner.__mro__:
        entry = vars(base).get(other.name)
        if is_behind and entry is not None:
            return entry
        is_behind = is_behind or entry is other
    return None


def name_attributes(type owner not None, hints not None) -> None:
    """Have a class, and all that are derived from it, answer to other clients' names.

    Args:
        owner: the class. A name that the class or an instance has itself wins.
        hints: other name -> what to write instead.
    """
    put_last(owner, type("NamesOfOtherClients", (), {
        "__slots__": (), **{name: OtherName(name, hint) for name, hint in hints.items()},
    }))


cdef int put_last(type owner, type names) except -1:
    """Put the names behind a class and behind those that are derived from it already.

    Python computes the order of a class that is derived later from the order of its bases.
    """
    cdef PyTypeObject* raw = <PyTypeObject*>owner
    cdef PyObject* before = raw.tp_mro
    if names in owner.__mro__:
        return 0  # derived from two classes that have the names
    order = (*(base for base in owner.__mro__ if base is not object), names, object)
    Py_INCREF(order)
    raw.tp_mro = <PyObject*>order
    Py_XDECREF(before)
    PyType_Modified(raw)
    for derived in owner.__subclasses__():
        put_last(derived, names)
    return 0


def hint_at_names(type owner not None, attributes not None, arguments=None) -> None:
    """Have a class answer to the names of other clients.

    Args:
        owner: the class; its methods are replaced, so others are derived from it later.
        attributes: as for `name_attributes`.
        arguments: as for `hint_at_arguments`, which a compiled method is not given to here: it may
            have its own way to them.
    """
    name_attributes(owner, attributes)
    hint_at_arguments(owner, {
        method: hints for method, hints in (arguments or {}).items()
        if isinstance(getattr(owner, method), FunctionType)
    })


def hint_at_arguments(type owner not None, arguments not None) -> None:
    """Have methods of a class, inherited ones too, answer to other clients' names of arguments.

    Args:
        owner: the class.
        arguments: method -> what `HintedMethod` takes.
    """
    for method, hints in arguments.items():
        hinted = HintedMethod(getattr(owner, method), dict(hints), f"{owner.__name__}.{method}")
        setattr(owner, method, hinted)


def hint_at_new(type owner not None, hints not None, str surplus not None) -> None:
    """Have the constructor of a named tuple answer to other clients' arguments.

    Args:
        owner: the class.
        hints: as for `HintedMethod`.
        surplus: what is told about an argument by position that the class has no field for.
    """
    hinted = HintedMethod(owner.__new__, dict(hints), owner.__name__, surplus)
    owner.__new__ = staticmethod(hinted)


def name_type(type owner not None, str module not None, str signature="") -> None:
    """Have a compiled class named after the module where users find it.

    Otherwise the name has the extension module in it, and Python cuts it off in its errors.

    Args:
        owner: the class.
        module: the module's name.
        signature: of the constructor, for inspect.signature; "": users make no such objects.
    """
    cdef bytes name = f"{module}.{owner.__name__}".encode()
    cdef bytes doc = f"{owner.__name__}{signature}\n--\n\n{owner.__doc__}".encode()
    kept_texts.append((name, doc))
    (<PyTypeObject*>owner).tp_name = PyBytes_AS_STRING(name)
    if signature:
        (<PyTypeObject*>owner).tp_doc = PyBytes_AS_STRING(doc)


# ---- constructors ----

cdef dict makers = {}  # class -> what its users are told who make an empty object


@cython.binding(False)  # to inspect.signature it is like the `__new__` of any compiled class
def refused_new(owner, *arguments, **named):
    """Refuse to make an object without its fields."""
    raise TypeError(makers.get(owner, f"{owner.__name__} is not made by its users"))


def refuse_new(type owner not None, str said not None) -> None:
    """Have `owner.__new__(owner)` raise a TypeError.

    It would return an object without its fields, whose methods read from nowhere. Neither a call of
    the class nor a `__new__` in Cython comes here: both go by the type's slot.

    Args:
        owner: a final compiled class: derived classes would get this `__new__` as their slot.
        said: how such objects are made.
    """
    makers[owner] = said
    (<dict><object>(<PyTypeObject*>owner).tp_dict)["__new__"] = refused_new
    PyType_Modified(<PyTypeObject*>owner)


# ---- arguments ----

cdef class HintedMethod:
    """A function of a class that tells what an argument is called which a call has named wrongly.

    Args:
        function: a function, or a coroutine function.
        hints: other name -> what to write instead; none of them is one of the function's.
        name: what the function is called in errors; "": its own name.
        surplus: what is told about an argument too many by position; "": nothing.
    """

    cdef vectorcallfunc enter  # for the interpreter, which finds it by the type
    cdef object function
    cdef dict hints
    cdef str name
    cdef str surplus

    def __init__(self, function not None, dict hints not None, str name="", str surplus="") -> None:
        self.enter = enter_hinted
        self.function = function
        self.hints = hints
        self.name = name or function.__qualname__
        self.surplus = surplus

    def __call__(self, *arguments, **named):
        return self.function(*arguments, **named)

    def __get__(self, instance, owner):
        return self.function if instance is None else MethodType(self, instance)

    @property
    def __class__(self):
        """What `isinstance` goes by: to mocks and to inspect this is a function."""
        return FunctionType

    @property
    def __wrapped__(self):
        """The function, whose signature this has."""
        return self.function

    def __getattr__(self, name):
        return getattr(self.function, name)


cdef PyObject* enter_hinted(PyObject* method, PyObject* const* arguments, size_t count,
                            PyObject* names) noexcept:
    cdef HintedMethod own = <HintedMethod>method
    cdef PyObject* result = PyObject_Vectorcall(<PyObject*>own.function, arguments, count, names)
    if result == NULL:
        hint_at_argument(own.name, names, own.hints)
        if own.surplus:
            hint_at_surplus(own, PyVectorcall_NARGS(count))
    return result


cdef int let_be_a_method() except -1:
    """Tell the interpreter how to enter a HintedMethod, and that it needs no bound method."""
    cdef HintedMethod probe = HintedMethod(print, {})
    cdef PyTypeObject* raw = <PyTypeObject*>HintedMethod
    raw.tp_vectorcall_offset = <char*>&probe.enter - <char*><void*>probe
    raw.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR
    PyType_Modified(raw)
    return 0


let_be_a_method()


cdef void raise_instead(PyObject* kind, PyObject* value, PyObject* trace, str said) noexcept:
    """Set a TypeError in place of an error that was fetched."""
    Py_XDECREF(kind)
    Py_XDECREF(value)
    Py_XDECREF(trace)
    PyErr_SetObject(TypeError, TypeError(said))


cdef void hint_at_surplus(HintedMethod method, Py_ssize_t count) noexcept:
    """Replace the TypeError that is set, if a call had more arguments by position than there are.

    The first argument of a constructor is the class, which no caller has written.
    """
    cdef PyObject* kind
    cdef PyObject* value
    cdef PyObject* trace
    if not PyErr_ExceptionMatches(TypeError):
        return
    PyErr_Fetch(&kind, &value, &trace)  # nothing below may run while an error is set
    most = method.function.__code__.co_argcount
    if count <= most:
        PyErr_Restore(kind, value, trace)
        return
    raise_instead(
        kind, value, trace,
        f"{method.name}() takes {most - 1} arguments, but {count - 1} were given: {method.surplus}"
    )


cdef void hint_at_argument(str method, PyObject* names, dict hints) noexcept:
    cdef PyObject* kind
    cdef PyObject* value
    cdef PyObject* trace
    if names == NULL or not PyErr_ExceptionMatches(TypeError):
        return
    PyErr_Fetch(&kind, &value, &trace)  # nothing below may run while an error is set
    for name in <tuple>names:
        hint = hints.get(name)
        if hint is not None:
            raise_instead(
                kind, value, trace,
                f"{method}() got an unexpected keyword argument {name!r}: {hint}"
            )
            return
    PyErr_Restore(kind, value, trace)
