"""What calls of `Admin` return that are about several things: values, and errors beside them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from kafka_fast.control.admin.operation import OperationResults
from kafka_fast.errors import KafkaError, fresh_copy
from kafka_fast.logs import ClientLog, some_of

if TYPE_CHECKING:
    from typing_extensions import Self

K = TypeVar("K", bound=Hashable)
V_co = TypeVar("V_co", covariant=True)


class _Result(Mapping[K, V_co]):
    """Values, with errors that somebody is to look at."""

    __slots__ = ("_errors", "_is_seen", "_name", "_results", "_values", "throttle_time_ms")

    def __init__(
        self,
        name: str,
        values: Mapping[K, V_co],
        results: OperationResults[Any, Any],
    ) -> None:
        """Take what a call has brought.

        Args:
            name: of the method, for the log.
            values: what was made of the answers.
            results: of the operation.
        """
        self._name = name
        self._values = values
        self._results = results
        self._errors = {key: results.errors[key] for key in results.keys if key in results.errors}
        self._is_seen = not self._errors
        self.throttle_time_ms: int = results.throttle_time_ms
        """The longest time for which a broker asked this client to wait, because of a quota."""

    def raise_first(self) -> Self:
        """Raise the first error; return the result if there is none."""
        self._is_seen = True
        for error in self._errors.values():
            raise fresh_copy(error)
        return self

    def __repr__(self) -> str:
        failed = f", {len(self._errors)} failed" if self._errors else ""
        return f"<{type(self).__name__} of {self._name}: {len(self._values)} values{failed}>"

    def __del__(self) -> None:
        """Log the errors that nobody has looked for."""
        if getattr(self, "_is_seen", True):
            return
        ClientLog("kafka_fast.admin", self._results.client_id).error(
            "%s: %d of %d failed, and nobody has looked for the errors: %s",
            self._name,
            len(self._errors),
            len(self._results.keys),
            some_of(self._errors.values()),
        )


class AdminResult(_Result[K, V_co]):
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

    __slots__ = ()

    def __init__(self, name: str, results: OperationResults[K, V_co]) -> None:
        """Take the results of an operation.

        Args:
            name: of the method, for the log.
            results: item by item.
        """
        values = {key: results.values[key] for key in results.keys if key in results.values}
        super().__init__(name, values, results)

    @property
    def errors(self) -> dict[K, KafkaError]:
        """The items that have failed, with their errors."""
        self._is_seen = True
        return dict(self._errors)

    @property
    def succeeded(self) -> dict[K, V_co]:
        """The other items, with their values."""
        return dict(self._values)

    def __getitem__(self, key: K) -> V_co:
        """Return an item's value.

        Raises:
            KafkaError: the item has failed.
            KeyError: the call was not about this item.
        """
        error = self._errors.get(key)
        if error is not None:
            self._is_seen = True
            raise fresh_copy(error)
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        """Tell whether the call was about this item."""
        return key in self._values or key in self._errors

    def __iter__(self) -> Iterator[K]:
        """Iterate over all items, also those that have failed."""
        return iter(self._results.keys)

    def __len__(self) -> int:
        """Return the number of items, also of those that have failed."""
        return len(self._results.keys)


class NodesResult(_Result[K, V_co]):
    """What the nodes of a cluster answered, as one mapping; and the errors of nodes that did not.

    If `errors` has a node, what only that node knows is missing. A result with errors that is
    dropped before anybody has looked for them is logged.
    """

    __slots__ = ()

    @property
    def errors(self) -> dict[int, KafkaError]:
        """The ids of the nodes that have not answered, with their errors."""
        self._is_seen = True
        return dict(self._errors)

    def __getitem__(self, key: K) -> V_co:
        """Return a value; KeyError if no node has told it."""
        return self._values[key]

    def __iter__(self) -> Iterator[K]:
        """Iterate over what the nodes have told."""
        return iter(self._values)

    def __len__(self) -> int:
        """Return how much the nodes have told."""
        return len(self._values)
