"""Finds the frame whose `for` statement has just asked for an iterator.

Only such an iterator is on the stack of its frame and nowhere else, so only there the drop of the
iterator is the end of the loop. An iterator in a variable outlives an exception that its frame has
caught: it may be dropped much later, without an exception. So the caller's bytecode has to say that
the iterator goes into a `for` statement at once:

    for record in consumer         GET_ITER, FOR_ITER
    async for record in consumer   GET_AITER, GET_ANEXT

These are no such statements:

* A loop over what a call has made of the consumer. `groupby`, `zip` and `takewhile` take a record
  that the body does not get, and other iterators may keep ours.
* A loop in a generator. The work on a record is done by the generator's caller, whose exception
  the generator may never see.
* Bytecode that is not known here, such as that of a later Python.

Then the last record of a loop is done only when the next one is asked for.
"""

from __future__ import annotations

from types import FrameType

WORD = 2
"""Bytes of an instruction, or of a cache entry."""

IGNORED = frozenset({"CACHE", "EXTENDED_ARG", "SETUP_FINALLY"})
"""What may stand in between; Python 3.10 has SETUP_FINALLY in `async for`."""

STATEMENTS = ("GET_ITER", "FOR_ITER"), ("GET_AITER", "GET_ANEXT")
"""How a statement begins: it gets the iterator, and asks it for the first item."""

LENGTH = 2
"""Instructions of such a beginning."""

GENERATOR = 0x20 | 0x200
"""CO_GENERATOR and CO_ASYNC_GENERATOR of `inspect`, whose import takes milliseconds."""


def looping_frame(frame: FrameType | None) -> FrameType | None:
    """Return the frame if a `for` statement of it has just called `__iter__` or `__aiter__`.

    Args:
        frame: the caller's; None: the call has come from C, and from no frame.
    """
    # Here: it costs a millisecond, which a consumer that never loops need not pay.
    from opcode import opname

    if frame is None or frame.f_code.co_flags & GENERATOR:
        return None
    code = frame.f_code.co_code
    begins: list[str] = []
    for at in range(frame.f_lasti, len(code), WORD):
        if (name := opname[code[at]]) not in IGNORED:
            begins.append(name)
            if len(begins) == LENGTH:
                break
    return frame if tuple(begins) in STATEMENTS else None
