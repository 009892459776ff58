"""Finds the frame whose `for` statement has just asked for an iterator.

Only such an iterator is on the stack of its frame and nowhere else, so only there the drop of the
iterator is the end of the loop. An iterator in a variable outlives an exception that its frame has
caught: it may be dropped much later, without an exception. So the caller's bytecode has to say that
the iterator goes into a `for` statement at once:

    for record in consumer              GET_ITER, FOR_ITER
    for record in islice(consumer, 10)  a call, GET_ITER, FOR_ITER; the C iterator is on the stack
    async for record in consumer        GET_AITER, GET_ANEXT

Bytecode that is not known here, such as that of a later Python, is no `for` statement. Then the
last record of a loop is done only when the next one is asked for.
"""

from __future__ import annotations

from types import FrameType

WORD = 2
"""Bytes of an instruction, or of a cache entry."""

IGNORED = frozenset({"CACHE", "EXTENDED_ARG", "SETUP_FINALLY"})
"""What may stand in between; Python 3.10 has SETUP_FINALLY in `async for`."""

STATEMENTS = ("GET_ITER", "FOR_ITER"), ("GET_AITER", "GET_ANEXT")
"""How a statement begins: it gets the iterator, and asks it for the first item."""


def looping_frame(frame: FrameType) -> FrameType | None:
    """Return the frame if a `for` statement of it has just called `__iter__` or `__aiter__`."""
    # Here: it costs a millisecond, which a consumer that never loops need not pay.
    from opcode import opname

    code, at = frame.f_code.co_code, frame.f_lasti
    following = (opname[code[pos]] for pos in range(at, len(code), WORD))
    names = (name for name in following if name not in IGNORED)
    current, second = next(names, None), next(names, None)
    if (current, second) in STATEMENTS or (second, next(names, None)) == STATEMENTS[0]:
        return frame
    return None
