"""Records of named fields: what a slotted dataclass would do, which they stand in for."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from kafka_fast.values import Value, field, field_names, replace

ROOT = Path(__file__).parents[2]


class Point(Value):
    """A frozen one."""

    SIZE: ClassVar[int] = 2

    x: int
    y: int = 7
    """With a default."""

    @property
    def total(self) -> int:
        return self.x + self.y


class Other(Value):
    x: int
    y: int = 7


class Deep(Point):
    z: int = 9


class Tally(Value, frozen=False):
    count: int = 0
    seen: list[int] = field(factory=list)


class Options(Value, kw_only=True):
    a: int
    b: int = 2


class Node(Value, frozen=False, eq=False):
    name: str


def test_fields_by_position_by_name_and_by_default() -> None:
    assert (Point(1).x, Point(1).y) == (1, 7)
    assert Point(1, 2) == Point(y=2, x=1)
    assert Point(1, 2).total == 3
    assert Point.SIZE == 2


def test_a_class_without_fields() -> None:
    class Nothing(Value):
        """Says something by being there."""

    assert Nothing() == Nothing()
    assert repr(Nothing()) == "Nothing()"


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (Point, "Point needs x"),
        (lambda: Point(1, 2, 3), "takes 2 positional arguments, not 3"),  # type: ignore[call-arg]
        (lambda: Point(1, 2, z=3), r"no field, or has it already: \['z'\]"),  # type: ignore[call-arg]
        (lambda: Point(1, x=3), r"no field, or has it already: \['x'\]"),  # type: ignore[misc]
        (lambda: Options(1), "takes 0 positional arguments, not 1"),  # type: ignore[call-arg,misc]
    ],
)
def test_arguments_that_do_not_fit(call: object, complaint: str) -> None:
    assert callable(call)
    with pytest.raises(TypeError, match=complaint):
        call()


def test_a_frozen_one_cannot_change_and_has_no_dict() -> None:
    point = Point(1)
    with pytest.raises(AttributeError, match="x of Point cannot be set"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError, match="x of Point cannot be deleted"):
        del point.x
    assert not hasattr(point, "__dict__")


def test_others_can_change_and_are_not_hashable() -> None:
    tally = Tally()
    tally.count += 1
    tally.seen.append(3)
    assert tally == Tally(1, [3])
    assert Tally().seen == [], "a default of its own for each"
    with pytest.raises(TypeError, match="unhashable"):
        hash(tally)
    with pytest.raises(AttributeError):
        tally.other = 1  # type: ignore[attr-defined]


def test_equality_is_of_one_class() -> None:
    assert Point(1, 2) != Other(1, 2)
    assert Point(1, 2) != (1, 2)
    assert len({Point(1, 2), Point(1, 2), Other(1, 2)}) == 2


def test_identity_where_it_is_asked_for() -> None:
    one = Node("a")
    assert one != Node("a")
    assert len({one, one, Node("a")}) == 2


def test_fields_of_a_base_come_first() -> None:
    assert field_names(Deep) == ("x", "y", "z")
    assert Deep(1, 2, 3) == Deep(z=3, y=2, x=1)
    assert Deep(1) != Point(1)


def test_patterns() -> None:
    match Deep(1, 2):
        case Point(x, 2):
            assert x == 1
        case _:
            pytest.fail("no match")


def test_repr_names_the_fields() -> None:
    assert repr(Deep(1, 2)) == "Deep(x=1, y=2, z=9)"


@pytest.mark.parametrize("value", [Point(1, 2), Deep(3), Tally(2, [1]), Options(a=1)])
def test_copies(value: Value) -> None:
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.copy(value) == value
    assert copy.deepcopy(value) == value
    assert replace(value) == value


def test_replace() -> None:
    assert replace(Deep(1, 2), y=5) == Deep(1, 5)
    with pytest.raises(TypeError, match="no field"):
        replace(Point(1), other=1)


WITHOUT_STRINGS = """
from kafka_fast.values import Value

class Endpoint(Value):
    port: int
"""


def test_annotations_that_are_no_strings_are_refused() -> None:
    """Regression: from Python 3.14 on the class had no fields then, and no client connected."""
    with pytest.raises(TypeError, match="Endpoint: its module needs `from __future__ import ann"):
        exec(compile(WITHOUT_STRINGS, "endpoint", "exec", dont_inherit=True), {"__name__": "any"})
    code = compile("from __future__ import annotations\n" + WITHOUT_STRINGS, "endpoint", "exec")
    exec(code, scope := {"__name__": "any"})
    assert field_names(scope["Endpoint"]) == ("port",)


# Python 3.14's `logging` imports dataclasses itself, by way of `traceback`.
PROGRAM = """
import logging, sys
brought = set(sys.modules)
from kafka_fast import Producer

heavy = {"dataclasses", "inspect", "asyncio", "ssl", "kafka_fast.consumer"}
print(sorted(heavy & (set(sys.modules) - brought)))
"""


def test_a_client_imports_no_dataclasses() -> None:
    """Each runs generated source at import; `inspect` comes with them."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "[]\n", done.stderr
