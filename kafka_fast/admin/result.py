"""`AdminResult`: what became of each thing that a call of `Admin` was about."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from kafka_fast.control.admin.operation import OperationResults
from kafka_fast.errors import KafkaError, fresh_copy
from kafka_fast.logs import get_logger, some_of

if TYPE_CHECKING:
    from typing_extensions import Self

K = TypeVar("K", bound=Hashable)
V_co = TypeVar("V_co", covariant=True)

_log = get_logger("kafka_fast.admin")


class AdminResult(Mapping[K, V_co]):
    """A value or a typed error for each item of a call, in the order in which they were given.

    `result[key]` returns the item's value, or raises its error. So do `items()`, `values()` and
    `get()`: no failure is taken for a success. `errors` and `succeeded` raise nothing.

    A result with errors that is dropped before anybody has looked for them is logged.

    Examples:
        >>> created = admin.create_topics([NewTopic("orders", 6), NewTopic("logs", 1)])
        >>> created.errors
        {'logs': TopicAlreadyExists("CreateTopics of topic 'logs': Topic 'logs' already exists.")}
        >>> created["orders"].partition_count
        6
    """

    __slots__ = ("_errors", "_is_seen", "_keys", "_name", "_values", "throttle_time_ms")

    def __init__(self, name: str, results: OperationResults[K, V_co]) -> None:
        """Take the results of an operation.

        Args:
            name: of the method, for the log.
            results: item by item.
        """
        self._name = name
        self._keys = tuple(results.keys)
        self._values = results.values
        self._errors = results.errors
        self._is_seen = not results.errors
        self.throttle_time_ms: int = results.throttle_time_ms
        """The longest time for which a broker asked this client to wait, because of a quota."""

    @property
    def errors(self) -> dict[K, KafkaError]:
        """The items that have failed, with their errors."""
        self._is_seen = True
        return {key: self._errors[key] for key in self._keys if key in self._errors}

    @property
    def succeeded(self) -> dict[K, V_co]:
        """The other items, with their values."""
        return {key: self._values[key] for key in self._keys if key in self._values}

    def raise_first(self) -> Self:
        """Raise the error of the first item that has failed; return the result if none has."""
        for error in self.errors.values():
            raise fresh_copy(error)
        return self

    def __getitem__(self, key: K) -> V_co:
        """Return an item's value.

        Raises:
            KafkaError: the item has failed.
            KeyError: the call was not about this item.
        """
        self._is_seen = True
        error = self._errors.get(key)
        if error is not None:
            raise fresh_copy(error)
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        """Tell whether the call was about this item."""
        return key in self._values or key in self._errors

    def __iter__(self) -> Iterator[K]:
        """Iterate over all items, also those that have failed."""
        return iter(self._keys)

    def __len__(self) -> int:
        """Return the number of items, also of those that have failed."""
        return len(self._keys)

    def __repr__(self) -> str:
        failed = f", {len(self._errors)} failed" if self._errors else ""
        return f"<AdminResult of {self._name}: {len(self._values)} succeeded{failed}>"

    def __del__(self) -> None:
        """Log the errors that nobody has looked for."""
        if getattr(self, "_is_seen", True):
            return
        _log.error(
            "%s: %d of %d failed, and nobody has looked for the errors: %s",
            self._name,
            len(self._errors),
            len(self._keys),
            some_of(self._errors.values()),
        )
