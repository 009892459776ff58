"""An operation: one kind of administrative request, about one or more items.

    class Operation      written by               example (DeleteTopics)
    ─────────────────────────────────────────────────────────────────────────────────────
    target, items        the subclass             Controller(), the names of the topics
    build                the subclass             a DeleteTopicsRequest
    outcomes             the subclass             ("orders", Done(None)), ("logs", Refused(…))
    permission, final    the subclass, as data    "DELETE on the topic"
    results, retries     here

The requester finds the nodes, splits the items over them, and tries again what may be tried again.

Every error names the item and the API. One that says that something is not permitted also names
the permission. If an item was sent before, and no answer says what came of that, its error may be
the work of that first try: then it says so (`explained`).

Thread: control; a user's thread makes the object, and gives it away.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from kafka_fast.control.admin.arguments import items_for
from kafka_fast.control.requests.call import ONLY, AnswerSource, Call
from kafka_fast.control.requests.meanings import (
    MOVED,
    Done,
    Meaning,
    NotDone,
    Refused,
    Retry,
    meaning_of,
)
from kafka_fast.control.requests.targets import Target
from kafka_fast.errors import (
    BrokerError,
    ErrorCode,
    KafkaError,
    UsageError,
    error_description,
    reworded,
)
from kafka_fast.instants import NEVER
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value, field, replace

__all__ = ["NO_SUCH_PARTITION", "NO_SUCH_TOPIC", "ONLY", "Operation", "OperationResults"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

NOT_PERMITTED = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    }
)
"""What brokers answer to who lacks a permission."""

NO_SUCH_TOPIC: Mapping[int, str] = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic"}
"""`Operation.words` where an item is a topic."""
NO_SUCH_PARTITION: Mapping[int, str] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such partition"
}
"""`Operation.words` where an item is a partition."""

UNDONE = MOVED | {ErrorCode.THROTTLING_QUOTA_EXCEEDED}
"""Errors of a try that has changed nothing. Others that pass, as REQUEST_TIMED_OUT, do not say."""


class OperationResults(Value, Generic[K, V], frozen=False, eq=False):
    """What became of the items of an operation."""

    keys: list[K]
    """The items, in the order in which they were asked for."""
    values: dict[K, V] = field(factory=dict)
    """The answers."""
    errors: dict[K, KafkaError] = field(factory=dict)
    """Why the other items have no answer."""
    no_nodes: KafkaError | None = None
    """Why an operation of all nodes has asked none: the metadata named none in time."""
    client_id: str = ""
    """The client's, for the log."""
    throttle_time_ms: int = 0
    """The longest time for which a broker asked this client to wait, because of a quota."""


class Operation(Call[K, V]):
    """One administrative request. Subclasses say what is sent, and read the answers."""

    name: ClassVar[str]
    """The method of `Admin`."""
    noun: ClassVar[str] = ""
    """What an item is, for errors: "topic"."""
    permission: ClassVar[str]
    """What a principal needs: "DELETE on the topic"."""
    since: ClassVar[str] = "2.1"
    """The first version of Apache Kafka whose brokers have the API."""
    at_controllers: ClassVar[bool] = False
    """Whether a client may also ask controllers for it (bootstrap.controllers), as in Java."""
    final: ClassVar[frozenset[int]] = frozenset()
    """Error codes that another try would not change, though they pass in other requests."""
    words: ClassVar[Mapping[int, str]] = {}
    """What an error code means here, if the broker has no words of its own, and Kafka's are odd."""
    explained: ClassVar[Mapping[int, str]] = {}
    """What an error code may mean if nobody knows what an earlier try of the item has done."""

    def __init__(
        self,
        target: Target[K],
        items: Iterable[K] | None,
        *,
        retry_on_quota: bool = True,
    ) -> None:
        """Take what the operation is about. Nothing is sent before `AdminControl.run_operation`.

        Args:
            target: where the items go.
            items: what is asked about; twice the same is asked once. None: all nodes.
            retry_on_quota: whether an item waits, and is sent again, while the cluster refuses it
                for its quota on changes (KIP-599). Otherwise it fails.

        Raises:
            TypeError: an item is none.
            UsageError: there can be no such item.
        """
        super().__init__(target, timeout=NEVER)
        self.items = items_for(target, items)
        self._retries_on_quota = retry_on_quota
        self._results: OperationResults[K, V] = OperationResults(list(self.items or ()))
        self._unanswered: set[K] = set()  # sent, and not answered yet
        self._uncertain: set[K] = set()  # what an earlier try has done is not known
        self._on_ended: Callable[[OperationResults[K, V]], None] = lambda results: None

    def begin(self, timeout: float, on_ended: Callable[[OperationResults[K, V]], None]) -> None:
        """Take what the control thread knows.

        Args:
            timeout: seconds that a node has for one try.
            on_ended: called with the results, once.
        """
        self.timeout = timeout
        self._on_ended = on_ended

    # ---- what an operation is ----

    @abstractmethod
    def outcomes(
        self, answer: Any, items: Sequence[K], source: AnswerSource
    ) -> Iterable[tuple[K, Meaning[V]]]:
        """Return what an answer means for the items that are still open, as `read` does."""

    @property
    def timeout_ms(self) -> int:
        """The milliseconds that a broker has for one try, for requests that say so."""
        return int(self.timeout * 1000)

    def refusal(self, item: K, code: int, said: str | None = None) -> NotDone:
        """Return what an error code means for an item.

        Args:
            item: the item.
            code: of the error.
            said: the broker's own words, if it has any.
        """
        text = said or self.words.get(code) or error_description(code)
        if code in NOT_PERMITTED:
            text = f"{text} (needs {self.permission})"
        if item in self._uncertain and code in self.explained:
            text = f"{text}; {self.explained[code]}"
        topic = item.topic if isinstance(item, TopicPartition) else None
        meaning = meaning_of(code, self.api, topic=topic)
        error = reworded(meaning.error, f"{self.describe(item)}: {text}")
        if code in self.final:
            return Refused(error)
        if code == ErrorCode.THROTTLING_QUOTA_EXCEEDED:
            return Retry(error) if self._retries_on_quota else Refused(error)
        return replace(meaning, error=error)

    def done_or_refusal(self, item: K, code: int, said: str | None = None) -> Meaning[None]:
        """Return what an error code means for an item whose answer has nothing else to say.

        Args:
            item: the item.
            code: of the error; 0: the item is done.
            said: the broker's own words, if it has any.
        """
        return self.refusal(item, code, said) if code else Done(None)

    def all_refused(
        self, items: Iterable[K], code: int, said: str | None = None
    ) -> Iterator[tuple[K, NotDone]]:
        """Return the outcomes of a request that the broker has refused as a whole.

        Args:
            items: the items of the request.
            code: of the error.
            said: the broker's own words, if it has any.
        """
        for item in items:
            yield item, self.refusal(item, code, said)

    # ---- what all operations do ----

    def describe(self, item: K) -> str:
        """Return the request and its item, for errors: "CreateTopics of topic 'orders'"."""
        if item == ONLY:
            return self.api
        shown = repr(item) if isinstance(item, str) else str(item)
        return f"{self.api} of {self.noun} {shown}" if self.noun else f"{self.api} of {shown}"

    def unsendable(self, error: Exception) -> KafkaError:
        """Return the error of items that the user has described by something that does not fit."""
        if isinstance(error, KafkaError):
            return error
        if isinstance(error, (TypeError, ValueError, AttributeError, OverflowError)):
            return UsageError(f"{self.name}: {error}")
        # A mapping of the user's own may raise anything. No operation of other users ends with it.
        failure = UsageError(f"{self.name}: {type(error).__name__}: {error}")
        failure.__cause__ = error
        return failure

    def settle_unsent(self, item: K, now: float) -> Meaning[V] | None:
        """Note the try that follows. If the one before was not answered, it may have succeeded."""
        if item in self._unanswered:
            self._uncertain.add(item)
        self._unanswered.add(item)
        return None

    def read(
        self, answer: Any, items: Sequence[K], source: AnswerSource
    ) -> Iterator[tuple[K, Meaning[V]]]:
        """Return what the answer means, and keep for how long the broker throttles this client."""
        throttle: int = getattr(answer, "throttle_time_ms", 0)
        self._results.throttle_time_ms = max(self._results.throttle_time_ms, throttle)
        for item, meaning in self.outcomes(answer, items, source):
            if not isinstance(meaning, Done) and _says_undone(meaning.error):
                self._unanswered.discard(item)
            yield item, meaning

    def handle_done(self, item: K, value: V, now: float) -> None:
        """Keep the answer."""
        self._note_key(item)
        self._results.values[item] = value

    def handle_failed(self, item: K, error: KafkaError, now: float) -> None:
        """Keep the error.

        Who is not permitted to see where the item goes has not asked for what it needs itself.
        """
        if isinstance(error, BrokerError) and error.code in NOT_PERMITTED:
            text = str(error.args[0])
            if f"needs {self.permission}" not in text:
                needs = f"{self.describe(item)} needs {self.permission}"
                error = reworded(error, f"{text}; {needs}")
        self._note_key(item)
        self._results.errors[item] = error

    def _note_key(self, item: K) -> None:
        if self.items is None:  # the nodes, which only the metadata have named
            self._results.keys.append(item)

    def handle_no_nodes(self, error: KafkaError, now: float) -> None:
        """Keep why no node was asked."""
        self._results.no_nodes = error

    def handle_ended(self, now: float) -> None:
        """Pass the results on."""
        self._on_ended(self._results)


def _says_undone(error: KafkaError) -> bool:
    return isinstance(error, BrokerError) and error.code in UNDONE
