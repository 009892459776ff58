"""The waits of users' threads for the metadata of a topic.

    caller ── want ──► kf-control ── TopicSettled ──► settle ──► every caller that waits

Any number of threads may wait, for the same topic or for different ones. The control thread wakes
them after each of its turns.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from kafka_fast.control.view import View
from kafka_fast.errors import KafkaError, KafkaTimeoutError, fresh_copy
from kafka_fast.logs import ClientLog, LongWait, Waiting
from kafka_fast.net.waiting.steps import Steps, Wait


class TopicWaits(ABC):
    """The waits of one client's callers; a subclass knows the client."""

    def __init__(self, view: View, now: Callable[[], float]) -> None:
        """Start with no caller waiting and no topic settled.

        Args:
            view: of the client. A long wait is logged as `kafka_fast.<kind>`, with its id.
            now: returns monotonic seconds.
        """
        self._view = view
        self._now = now
        self._log = ClientLog(f"kafka_fast.{view.kind}", view.client_id)
        self._settled: dict[str, KafkaError | None] = {}
        self._waiting: dict[str, int] = {}  # callers by topic, under `_counting`
        self._counting = threading.RLock()  # reentrant: a signal handler may wait as well
        self._failure: KafkaError | None = None

    # ---- what differs from client to client; caller's thread ----

    @abstractmethod
    def _want(self, topic: str) -> None:
        """Have the control thread settle a topic."""

    @abstractmethod
    def _give_up(self, topic: str) -> None:
        """Tell the control thread that no caller waits for the topic any longer."""

    @abstractmethod
    def _check(self) -> None:
        """Raise if the caller's wait is to end."""

    @abstractmethod
    def _ends(self) -> Callable[[], bool]:
        """Return a function that tells whether `_check` would raise in this thread."""

    @abstractmethod
    def _late(self, topic: str, began: float, deadline: float) -> KafkaTimeoutError:
        """Return the error of a wait that has timed out."""

    @abstractmethod
    def _describe(self, topic: str, began: float, deadline: float, now: float) -> Waiting | None:
        """Return what the log says of a long wait."""

    # ---- the wait ----

    def await_topic(
        self, topic: str, deadline: float, is_known: Callable[[], object] | None = None
    ) -> Steps[None]:
        """Ask for the topic's metadata and wait for the answer. Caller's thread.

        Args:
            topic: its name.
            deadline: when to give up.
            is_known: returns whether the caller has what it needs, from whatever source; None:
                only an answer that comes after this call counts.

        Raises:
            KafkaTimeoutError: the topic was not settled by the deadline.
            BrokerError: the topic cannot be used.
            AuthenticationError, TlsError: brokers refuse this client, and it has no other link.
        """
        self._settled.pop(topic, None)
        self._want(topic)
        yield from self._await_answer(topic, deadline, is_known)

    def _await_answer(
        self, topic: str, deadline: float, is_known: Callable[[], object] | None
    ) -> Steps[None]:
        """Wait for the answer about a topic that was asked for; as `await_topic`."""
        self._count(topic, 1)
        try:
            yield from self._until_known(topic, deadline, is_known)
        except BaseException:  # Ctrl-C and cancellations, too
            if self._count(topic, -1) == 0:
                self._give_up(topic)
            raise
        self._count(topic, -1)

    def _count(self, topic: str, by: int) -> int:
        """Count a caller that begins or ends its wait; return how many wait now."""
        with self._counting:
            count = self._waiting.pop(topic, 0) + by
            if count:
                self._waiting[topic] = count
            return count

    def _until_known(
        self, topic: str, deadline: float, is_known: Callable[[], object] | None
    ) -> Steps[None]:
        began = self._now()
        long = LongWait(self._log)
        ends = self._ends()
        refusals = self._view.watch_refusals()
        while True:
            if is_known is not None and is_known():
                return
            error = self._failure or self._settled.get(topic)
            if error is not None:
                raise fresh_copy(error)
            if is_known is None and topic in self._settled:
                return
            self._check()
            refusals.raise_refusal()
            now = self._now()
            if now >= deadline:
                raise self._late(topic, began, deadline)
            long.log_if_long(now, lambda at: self._describe(topic, began, deadline, at))
            yield Wait(
                lambda: (
                    (is_known is not None and is_known())
                    or self._failure is not None
                    or self._is_settled(topic, is_known is None)
                    or refusals.has_news
                    or ends()
                ),
                min(deadline, long.deadline),
                f"metadata of topic {topic!r}",
            )

    def _is_settled(self, topic: str, counts_success: bool) -> bool:
        if topic not in self._settled:
            return False
        return counts_success or self._settled[topic] is not None

    def settle(self, topic: str, error: KafkaError | None) -> None:
        """Record that a topic is known (None), or why it cannot be used. Control thread."""
        self._settled[topic] = error

    def fail_all(self, failure: KafkaError) -> None:
        """End all waits with `failure`, now and later: the client has failed. Control thread."""
        self._failure = failure
