"""A call: a request to the brokers about one or more items, with its answers and retries.

Each API has its own subclass. It says what to send and what an answer means. The requester decides
the rest: which node, which link, when to try again, when to give up.

    class Call                      written by                   example
    ───────────────────────────────────────────────────────────────────────────────────
    target, timeout, …              the user                     Leaders()
    build(items, version)           the user                     a ListOffsetsRequest
    read(answer, items, source)     the user                     (partition, Done(offset)), …
    handle_done, handle_failed      the user, or CollectingCall  once for each item
    handle_ended                    the user, or CollectingCall  after the last item

A call that is not about several things (a producer id) has one item: `ONLY`. A user that wants all
results at once extends `CollectingCall`, and writes only what is sent and what answers mean.

Thread: control.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from kafka_fast.control.diagnosis.troubles import Subject
from kafka_fast.control.requests.meanings import Meaning
from kafka_fast.control.requests.targets import Target
from kafka_fast.errors import KafkaError
from kafka_fast.instants import NEVER
from kafka_fast.protocol.apis import api_name
from kafka_fast.protocol.schema import Request, Response
from kafka_fast.values import Value, field

__all__ = ["ONLY", "AnswerSource", "Call", "CollectingCall", "Results"]


class AnswerSource(Value):
    """Where an answer comes from, and when."""

    version: int
    """The version of the API."""
    node: str
    """The node's name in errors."""
    now: float
    is_bootstrap: bool = False
    """The node is one that the user has named, in bootstrap.servers."""
    node_id: int = -1
    """The node's id; a number of no meaning for a bootstrap server."""


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")


class Only(str):
    """A text that equals no other: a topic may be called ONLY."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = object.__hash__


ONLY = Only("ONLY")
"""The one item of a call that is not about several things."""


class Call(ABC, Generic[K, V]):
    """One kind of request. Subclasses say what is sent, and read the answers."""

    request_class: ClassVar[type[Request]]
    """The message class of the request."""
    response_class: ClassVar[type[Response]]
    """The message class of the answer."""
    read_later: ClassVar[str | None] = None
    """An array of the answer that `read` gets as an iterator; see `Message.decode`."""
    max_tries: int | None = None
    """How many tries of one item may fail; None: as many as the deadline allows."""
    is_repeatable: bool = True
    """An item may be sent again after its connection broke. Then nobody knows whether the first try
    was carried out.
    """
    waits_for_answer: bool = False
    """An item in flight at the call's deadline ends later, with its answer or its connection. Until
    then nobody knows whether it was carried out.
    """
    is_slow: bool = False
    """A node may work on it for long. The call goes over a connection of `Role.SLOW`, so that no
    other request waits behind it. A try that takes longer than `timeout` closes this connection.
    Not for `AnyNode` and coordinators.
    """
    beside_after: float = NEVER
    """Seconds without an answer after which another node is asked as well. The first answer counts.
    For `AnyNode` only.
    """

    def __init__(self, target: Target[K], *, timeout: float) -> None:
        """Take where the call goes, and how long one try may last."""
        self.target = target
        """Where the items go."""
        self.timeout = timeout
        """Seconds that a node has for one try (request.timeout.ms)."""

    @property
    def api(self) -> str:
        """The API's name."""
        return api_name(self.response_class.api_key)

    def describe(self, item: K) -> str:
        """Return the request and its item, for errors: "ListOffsets of orders-3"."""
        return self.api if item == ONLY else f"{self.api} of {item}"

    def subject(self, item: K) -> Subject | None:
        """Return the subject under which a failed try is kept; None: it is not kept."""
        return None

    def max_version(self, items: Sequence[K]) -> int | None:
        """Return the highest version that can be used for these items; None: any."""
        return None

    def max_items(self, version: int) -> int | None:
        """Return how many items one request takes; None: any number."""
        return None

    def may_send(self, item: K) -> bool:
        """Tell whether an item may be sent now. If not, it waits, at most until the deadline.

        Each tick asks again. So only events of the control plane may change the result.
        """
        return True

    def settle_unsent(self, item: K, now: float) -> Meaning[V] | None:
        """Return how an item ends without being sent; None: send it."""
        return None

    def unsupported(self, item: K, version: int) -> KafkaError | None:
        """Return why an item cannot be asked in this version of the API; None: it can."""
        return None

    def unsendable(self, error: Exception) -> KafkaError:
        """Return why the items fail whose request could not be built or encoded.

        Here the error is raised again: what goes into a request of ours fits.
        """
        raise error

    @abstractmethod
    def build(self, items: Sequence[K], version: int) -> Request:
        """Return the request for these items."""

    @abstractmethod
    def read(
        self, answer: Any, items: Sequence[K], source: AnswerSource
    ) -> Iterable[tuple[K, Meaning[V]]]:
        """Return what an answer means for the items that are still open.

        An item that is left out is asked about again. Results for other items are dropped.

        Args:
            answer: the decoded response.
            items: the items of the request that are still open.
            source: the version, the node and the time.
        """

    def handle_read(self, now: float) -> None:
        """Act on an answer as a whole, after each of its items was handled. Here: do nothing."""
        return

    @abstractmethod
    def handle_done(self, item: K, value: V, now: float) -> None:
        """Take the answer for an item; it is not open any more."""

    @abstractmethod
    def handle_failed(self, item: K, error: KafkaError, now: float) -> None:
        """Take why there will be no answer for an item; it is not open any more."""

    def handle_no_nodes(self, error: KafkaError, now: float) -> None:
        """Take why all nodes could not be asked: the metadata named none by the deadline."""

    def handle_ended(self, now: float) -> None:
        """Act when no item is open any more. Here: do nothing.

        This is not called after `discard` or `cancel`: then nobody waits for the rest.
        """


class Results(Value, Generic[K, V], frozen=False, eq=False):
    """What became of the items of a call."""

    values: dict[K, V] = field(factory=dict)
    """The answers."""
    errors: dict[K, KafkaError] = field(factory=dict)
    """Why the other items have no answer."""
    no_nodes: KafkaError | None = None
    """Why a call to all nodes has asked none: the metadata named none in time."""

    def only(self: Results[str, T]) -> T | KafkaError:
        """Return what became of `ONLY`."""
        error = self.errors.get(ONLY)
        return self.values[ONLY] if error is None else error


class CollectingCall(Call[K, V]):
    """A call whose user wants the results of all items at once."""

    def __init__(
        self,
        target: Target[K],
        *,
        timeout: float,
        on_ended: Callable[[Results[K, V], float], None],
    ) -> None:
        """Take the target, and whom to tell.

        Args:
            target: where the items go.
            timeout: seconds for one try.
            on_ended: called with the results and the time, once.
        """
        super().__init__(target, timeout=timeout)
        self._results: Results[K, V] = Results()
        self._on_ended = on_ended

    def handle_done(self, item: K, value: V, now: float) -> None:
        """Keep the answer."""
        self._results.values[item] = value

    def handle_failed(self, item: K, error: KafkaError, now: float) -> None:
        """Keep the error."""
        self._results.errors[item] = error

    def handle_no_nodes(self, error: KafkaError, now: float) -> None:
        """Keep the error."""
        self._results.no_nodes = error

    def handle_ended(self, now: float) -> None:
        """Pass the results on."""
        self._on_ended(self._results, now)
