"""Hints for those who use the names of another client. See the .pyx."""

from cpython.object cimport PyObject

# Add a hint to the TypeError that is set, if a call named an argument as another client does.
# `method` is the function's name.
cdef void hint_at_argument(str method, PyObject* names, dict hints) noexcept
