"""Records of named fields, for the planes' commands and events, for settings and for messages.

    class RouteWanted(Value):
        queue_ids: tuple[int, ...]

    class Query(Value, frozen=False):
        tries: int = 0
        asked: list[str] = field(factory=list)

Values are like slotted dataclasses, and type checkers take them for such. But a dataclass runs
generated source, which costs half a millisecond at import, and a client has a hundred of them. The
price is one more microsecond per object, so objects that are made for each record are no Values.

Fields are the annotated names of the class body; those of base classes come first. Two values are
equal if their classes and their fields are: a tuple with the same items is not equal.

A module of such classes has `from __future__ import annotations`. Without it a class body has
no `__annotations__` from Python 3.14 on (PEP 649), and evaluating them would cost an import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[Any], Any]:
        """Stand in for `typing.dataclass_transform`, which Python 3.10 does not have."""
        return lambda decorated: decorated


__all__ = ["Value", "assert_never", "field", "field_names", "replace"]

T = TypeVar("T")
V = TypeVar("V", bound="Value")

_set = object.__setattr__  # a frozen class refuses `self.name = value`

_LATER = {"__annotate__", "__annotate_func__"}
"""What a class body has in place of `__annotations__` from Python 3.14 on."""


class _Factory:
    """Makes a new default of a field for each object."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make


def field(*, factory: Callable[[], T]) -> T:
    """Declare a field with a default that `factory` makes for each object."""
    made: Any = _Factory(factory)
    return made  # type: ignore[no-any-return]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class ValueType(type):
    """Turns the annotated names of a class body into slots, and their values into defaults."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        frozen: bool = True,
        eq: bool = True,
        kw_only: bool = False,
    ) -> ValueType:
        """Make the class.

        Args:
            name: name of the class.
            bases: base classes.
            namespace: the class body.
            frozen: whether fields cannot be set after the construction.
            eq: whether objects are compared by their fields, and not by identity.
            kw_only: whether the constructor takes keywords only.

        Raises:
            TypeError: the module evaluates its annotations, or leaves that for later.
        """
        annotations = namespace.get("__annotations__", {})
        if _LATER & namespace.keys() or {*map(type, annotations.values())} - {str}:
            raise TypeError(f"{name}: its module needs `from __future__ import annotations`")
        own = [key for key, text in annotations.items() if not text.startswith("ClassVar")]
        inherited: tuple[str, ...] = ()
        defaults: dict[str, Any] = {}
        for base in bases:
            inherited += getattr(base, "_fields", ())
            defaults.update(getattr(base, "_defaults", {}))
        defaults.update((key, namespace.pop(key)) for key in own if key in namespace)
        fields = (*inherited, *own)
        namespace["__slots__"] = tuple(own)
        namespace["_fields"] = fields
        namespace["_defaults"] = defaults
        namespace["_positional"] = namespace["__match_args__"] = () if kw_only else fields
        if not frozen:
            namespace.update(__setattr__=_set, __delattr__=object.__delattr__, __hash__=None)
        if not eq:
            namespace.update(__eq__=object.__eq__, __hash__=object.__hash__)
        return super().__new__(mcls, name, bases, namespace)


class Value(metaclass=ValueType):
    """Base of all records of named fields."""

    _fields: ClassVar[tuple[str, ...]]
    _positional: ClassVar[tuple[str, ...]]
    _defaults: ClassVar[dict[str, Any]]

    def __init__(self, *values: Any, **named: Any) -> None:
        if len(values) > len(self._positional):
            raise TypeError(
                f"{type(self).__name__} takes {len(self._positional)} positional arguments, "
                f"not {len(values)}"
            )
        for name, value in zip(self._positional, values, strict=False):
            _set(self, name, value)
        if len(values) < len(self._fields):
            self._set_rest(self._fields[len(values) :], named)
        if named:
            raise TypeError(f"{type(self).__name__} has no field, or has it already: {[*named]}")

    def _set_rest(self, names: tuple[str, ...], named: dict[str, Any]) -> None:
        """Set the fields that were not given by position, from `named`, which is emptied."""
        for name in names:
            if name in named:
                value = named.pop(name)
            elif name in self._defaults:
                value = self._defaults[name]
                if type(value) is _Factory:
                    value = value.make()
            else:
                raise TypeError(f"{type(self).__name__} needs {name}")
            _set(self, name, value)

    def _items(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self._fields])

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} of {type(self).__name__} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name} of {type(self).__name__} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._items() == other._items()

    def __hash__(self) -> int:
        return hash((type(self), self._items()))

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in self._fields]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self._items())


def _restore(cls: type[V], items: tuple[Any, ...]) -> V:
    """Make an object from all its fields, for `pickle` and `copy`."""
    return cls(**dict(zip(cls._fields, items, strict=True)))


def field_names(kind: type[Value]) -> tuple[str, ...]:
    """Return the names of a class's fields, in the order of the constructor."""
    return kind._fields


def replace(value: V, **changes: Any) -> V:
    """Return a copy with other values in some fields."""
    fields = {name: getattr(value, name) for name in value._fields}
    return type(value)(**{**fields, **changes})


def assert_never(value: NoReturn) -> NoReturn:
    """End a `match` on a closed union: type checkers refuse a case that is left out.

    Python 3.10 has no `typing.assert_never`.
    """
    raise AssertionError(f"{value!r} is of none of the expected kinds")
