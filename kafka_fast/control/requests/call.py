"""A call: something that is asked of the brokers, or ordered from them, about one or more items.

Each API has its own subclass, which says what to send and what an answer means. All else is the
requester's: which node, which link, when to try again, when to give up.

    class Call                      written by                   example
    ───────────────────────────────────────────────────────────────────────────────────
    target, timeout, …              the user                     Leaders()
    build(items, version)           the user                     a ListOffsetsRequest
    read(answer, items, source)     the user                     (partition, Done(offset)), …
    handle_done, handle_failed      the user                     once for each item

What is not per item (a producer id) has one item: `ONLY`.

Thread: control.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from kafka_fast.control.instants import NEVER
from kafka_fast.control.requests.meanings import Meaning
from kafka_fast.control.requests.targets import Target
from kafka_fast.control.troubles import Subject
from kafka_fast.errors import KafkaError
from kafka_fast.protocol.apis import api_name
from kafka_fast.protocol.schema import Request, Response
from kafka_fast.values import Value

__all__ = ["ONLY", "AnswerSource", "Call"]


class AnswerSource(Value):
    """Where an answer comes from, and when."""

    version: int
    """Of the API."""
    node: str
    """What errors call the node."""
    now: float


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ONLY = "ONLY"
"""The item of a call that has no others."""


class Call(ABC, Generic[K, V]):
    """One kind of question or order. Subclasses say what is sent, and read the answers.

    Attributes:
        request_class: of the request.
        response_class: of its answer.
        target: where the items go.
        timeout: seconds that a node has for one try (request.timeout.ms).
        max_tries: tries for one item that count as failed; None: as many as its time allows.
        is_repeatable: an item may be sent again after a connection broke under it, when nobody
            knows whether the first try was carried out.
        waits_for_answer: what is in flight at the call's deadline ends with its answer, or with
            its connection: until then nobody knows whether it was carried out.
        is_slow: a node may work on it for long. It goes over a connection of its own, which nobody
            else's request has to wait for, and which its end at `timeout` closes. Not for
            `AnyNode` and coordinators.
        beside_after: seconds without an answer after which another node is asked beside the first;
            the first answer counts. For `AnyNode` only.
    """

    request_class: ClassVar[type[Request]]
    response_class: ClassVar[type[Response]]
    max_tries: int | None = None
    is_repeatable: bool = True
    waits_for_answer: bool = False
    is_slow: bool = False
    beside_after: float = NEVER

    def __init__(self, target: Target, *, timeout: float) -> None:
        """Take where the call goes, and how long one try may last."""
        self.target = target
        self.timeout = timeout

    @property
    def api(self) -> str:
        """The API's name."""
        return api_name(self.response_class.api_key)

    def describe(self, item: K) -> str:
        """Return what is asked about an item, for errors: "ListOffsets of orders-3"."""
        return self.api if item == ONLY else f"{self.api} of {item}"

    def subject(self, item: K) -> Subject | None:
        """Return whose trouble a failed try is; None: it is kept nowhere."""
        return None

    def max_version(self, items: Sequence[K]) -> int | None:
        """Return the highest version that says all there is to say of these items; None: any."""
        return None

    def max_items(self, version: int) -> int | None:
        """Return how many items one request takes; None: any number."""
        return None

    def may_send(self, item: K) -> bool:
        """Tell whether an item may be sent now; else it waits, until its deadline at most.

        What makes it true is an event of the control plane: the next tick looks again.
        """
        return True

    def settle_unsent(self, item: K, now: float) -> Meaning[V] | None:
        """Return how an item ends that is about to be sent and need not be; None: send it."""
        return None

    @abstractmethod
    def build(self, items: Sequence[K], version: int) -> Request:
        """Return the request for these items."""

    @abstractmethod
    def read(
        self, answer: Any, items: Sequence[K], source: AnswerSource
    ) -> Iterable[tuple[K, Meaning[V]]]:
        """Return what an answer means for the items that are still open.

        An item that is left out is asked about again. What is said of others is not used.

        Args:
            answer: the decoded response.
            items: that it was asked for and nobody has given up.
            source: the version, the node and the time.
        """

    def handle_read(self, now: float) -> None:
        """Take note that an answer has been read to its end, and its items are told."""
        return

    @abstractmethod
    def handle_done(self, item: K, value: V, now: float) -> None:
        """Take the answer for an item; it is not open any more."""

    @abstractmethod
    def handle_failed(self, item: K, error: KafkaError, now: float) -> None:
        """Take why there will be no answer for an item; it is not open any more."""
