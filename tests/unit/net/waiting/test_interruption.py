"""An exception that is kept until what it interrupted has come to its end."""

from __future__ import annotations

import gc
import weakref

import pytest

from kafka_fast.net.waiting.interruption import Interruption


class Left:
    """Something that the interrupted function holds."""


def work(seen: list[weakref.ref[Left]]) -> None:
    left = Left()
    seen.append(weakref.ref(left))
    interruption = Interruption()
    try:
        raise KeyboardInterrupt
    except BaseException as error:  # noqa: BLE001  raised at the end
        interruption.keep_error(error)
    assert interruption
    interruption.raise_it()


def test_it_is_raised_at_the_end_and_leaves_no_cycle() -> None:
    seen: list[weakref.ref[Left]] = []
    gc.disable()
    try:
        with pytest.raises(KeyboardInterrupt) as raised:
            work(seen)
        assert raised.traceback
        del raised
        assert seen[0]() is None, "freed without the garbage collector"
    finally:
        gc.enable()


def test_without_an_exception_there_is_nothing_to_raise() -> None:
    assert not Interruption()
