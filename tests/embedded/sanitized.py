"""Which tests AddressSanitizer leaves to `make sanitize-long`: those that repeat what others show.

`make sanitize-embedded` has to be quick. A test is marked `repeats` if the compiled code sees
nothing in it that it does not see in other tests; the mark says why. Without a sanitizer, and under
ThreadSanitizer, it runs like every other test.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def shown_by(few: Collection[str], names: Iterable[str], why: str) -> list[Any]:
    """Return all names as parameters; all but a few of them repeat what these few show.

    Args:
        few: the names of those that run under AddressSanitizer each time.
        names: all of them.
        why: the others repeat these.
    """
    names = list(names)
    assert set(few) < set(names), set(few) - set(names)
    repeats = pytest.mark.repeats(why)
    return [pytest.param(name, marks=() if name in few else repeats) for name in names]
