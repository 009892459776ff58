"""When to ask for metadata, and for which topics.

`RefreshSchedule` knows names and times, not answers: the cluster tells it which topics are still
unresolved after an answer. At most one request is in flight. A request is due in these cases:

* nothing was asked yet, or `metadata.max.age.ms` has passed since the last full answer: it asks for
  every topic;
* a part of the client wants a full refresh (after an error code, or a lost link): every topic, once
  the gate of full refreshes is open;
* the last answer for some topics was of no use yet (unknown, or without a leader): those topics,
  once the gate of topics is open;
* topics are wanted for the first time, or a user asks for them anew: those topics, at once.

A gate opens one retry.backoff.ms after an answer, and exponentially later with each answer that
brought nothing new (KIP-580, KIP-951). A failed request closes a gate for everything, new topics
included. So brokers that answer nothing but errors see one request per step of the backoff.
"""

from __future__ import annotations

from kafka_fast.control.connections.backoff import Backoff
from kafka_fast.instants import LONG_AGO, NEVER
from kafka_fast.values import Value

__all__ = ["Ask", "RefreshSchedule"]


class Ask(Value):
    """One metadata request: its topics, and the reason for the log."""

    topics: tuple[str, ...]
    is_full: bool
    reason: str
    is_all: bool = False
    """It asks for all topics of the cluster, not only for those wanted by name."""


class _Gate:
    """Holds back requests that bring nothing: each one in a row doubles the wait."""

    __slots__ = ("_backoff", "_fruitless", "opens_at")

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._fruitless = 0
        self.opens_at = LONG_AGO

    def close(self, now: float, *, fruitful: bool) -> None:
        """Close for one step of the backoff."""
        self._fruitless = 0 if fruitful else self._fruitless + 1
        self.opens_at = now + self._backoff.delay(max(self._fruitless - 1, 0))

    def pass_through(self, now: float) -> None:
        """Reset the count if the last request was long ago: that row of failures is over."""
        if now - self.opens_at > self._backoff.maximum:
            self._fruitless = 0

    def forgive(self) -> None:
        """Reset the count, but open no earlier."""
        self._fruitless = 0

    def open(self) -> None:
        """Open now and reset the count."""
        self._fruitless = 0
        self.opens_at = LONG_AGO


class RefreshSchedule:
    """Decides when a metadata request is due and what it asks for. Control thread only."""

    def __init__(self, backoff: Backoff, *, max_age: float, max_idle: float) -> None:
        """Start with no wanted topic, and with a first request due.

        Args:
            backoff: the pace of retries.
            max_age: seconds after which everything is asked for again.
            max_idle: seconds after which a topic that nobody uses is dropped.
        """
        self._max_age = max_age
        self._max_idle = max_idle
        # Every wanted topic → when it was used last. Requests name topics in this order.
        self._last_used: dict[str, float] = {}
        # Topics never asked for or asked for anew, and topics without a useful answer. Neither
        # holds the topics of the request in flight: a topic that is added meanwhile is asked for
        # once more after it.
        self._new: dict[str, None] = {}
        self._unresolved: dict[str, None] = {}
        # Topics asked for anew, until a request that was sent since then is answered.
        self._outdated: set[str] = set()
        # Why a full refresh was requested, since the last full request was sent.
        self._full_reason: str | None = None
        self._last_full: float | None = None
        self._wants_all = False
        self._in_flight: Ask | None = None
        self._full_gate = _Gate(backoff)
        self._topic_gate = _Gate(backoff)
        self._failure_gate = _Gate(backoff)

    # ---- getters ----

    @property
    def in_flight(self) -> Ask | None:
        """The request that has no answer yet."""
        return self._in_flight

    def is_wanted(self, topic: str) -> bool:
        """Tell whether `topic` is asked for at all."""
        return topic in self._last_used

    def wanted(self) -> tuple[str, ...]:
        """Return the topics that a full refresh asks for."""
        return tuple(self._last_used)

    def is_outdated(self, topic: str) -> bool:
        """Tell whether no request has been answered that was sent after `ask_anew`."""
        return topic in self._outdated

    def next_deadline(self) -> float:
        """Return when `poll` has something; infinity while a request is in flight."""
        if self._in_flight is not None:
            return NEVER
        due = [self._full_due_at()]
        if self._new:
            due.append(LONG_AGO)
        if self._unresolved:
            due.append(self._topic_gate.opens_at)
        return max(min(due), self._failure_gate.opens_at)

    def _full_due_at(self) -> float:
        if self._last_full is None:
            return LONG_AGO
        expires_at = LONG_AGO if self._full_reason is not None else self._last_full + self._max_age
        return max(expires_at, self._full_gate.opens_at)

    # ---- commands ----

    def want_topic(self, topic: str, now: float) -> None:
        """Ask for `topic` from now on; the first time, at once."""
        if topic not in self._last_used:
            self._new[topic] = None
            self._topic_gate.forgive()
        self._last_used[topic] = now

    def want_all(self, wants_all: bool) -> None:
        """Let full refreshes ask for all topics, or only for those wanted by name."""
        if wants_all and not self._wants_all:
            self.request_full("all topics are wanted")
        self._wants_all = wants_all

    def touch(self, topic: str, now: float) -> None:
        """Note that `topic` is in use, so that it is not dropped as idle."""
        if topic in self._last_used:
            self._last_used[topic] = now

    def ask_again(self, topic: str) -> None:
        """Ask for one wanted topic again, as soon as its gate opens."""
        if topic in self._last_used and topic not in self._new:
            self._unresolved[topic] = None

    def ask_anew(self, topic: str, now: float) -> None:
        """Ask for `topic` at once, even if it is known or being asked for: a user waits for news.

        Only the gate of failures holds this back.
        """
        self.want_topic(topic, now)
        self._new[topic] = None
        self._outdated.add(topic)

    def is_asking(self, topic: str) -> bool:
        """Tell whether a request for `topic` is in flight or queued."""
        if topic in self._new or topic in self._unresolved:
            return True
        return self._in_flight is not None and topic in self._in_flight.topics

    def request_full(self, reason: str) -> None:
        """Ask for every wanted topic, as soon as the gate of full refreshes opens."""
        self._full_reason = self._full_reason or reason

    def drop_idle(self, now: float) -> list[str]:
        """Forget the topics that were not used for metadata.max.idle.ms, and return them."""
        idle = [
            topic
            for topic, used in self._last_used.items()
            if now - used > self._max_idle and topic not in self._new
        ]
        for topic in idle:
            del self._last_used[topic]
            self._unresolved.pop(topic, None)
            self._outdated.discard(topic)
        return idle

    def start_over(self) -> None:
        """Forget the request in flight and ask for everything (a rebootstrap).

        The gate of failures stays closed: a broker may demand one rebootstrap after the other.
        """
        self._in_flight = None
        self._last_full = None

    # ---- out ----

    def poll(self, now: float) -> Ask | None:
        """Return the request that is due, which then counts as in flight; None if none is."""
        if now < self.next_deadline():
            return None
        if now >= self._full_due_at():
            reason = self._full_reason or "metadata.max.age.ms"
            topics = dict.fromkeys((*self._new, *self._last_used))
            reason = reason if self._last_full is not None else "first"
            ask = Ask(tuple(topics), True, reason, self._wants_all)
            self._full_reason = None
            self._full_gate.pass_through(now)
            self._unresolved.clear()
        else:
            topics = dict(self._new)
            if now >= self._topic_gate.opens_at:
                topics |= self._unresolved
                self._unresolved.clear()
            ask = Ask(tuple(topics), False, "topics to resolve")
        self._topic_gate.pass_through(now)
        self._new.clear()
        self._in_flight = ask
        return ask

    # ---- in ----

    def handle_topic(self, topic: str) -> None:
        """Count a topic of an answer as up to date, unless it was asked for anew meanwhile."""
        if topic not in self._new:
            self._outdated.discard(topic)

    def handle_answer(self, unresolved: set[str], *, fruitful: bool, now: float) -> None:
        """End the request in flight with a usable answer, and set when the next may be sent.

        Args:
            unresolved: of the topics asked for, those that must be asked for again.
            fruitful: whether the answer changed anything.
            now: the time.
        """
        ask, self._in_flight = self._in_flight, None
        if ask is None:
            return
        self._failure_gate.open()
        for topic in ask.topics:
            self.handle_topic(topic)
        if ask.is_full:
            self._last_full = now
            self._full_gate.close(now, fruitful=fruitful)
        for topic in ask.topics:
            if topic in unresolved and topic in self._last_used:
                self._unresolved[topic] = None
        self._topic_gate.close(now, fruitful=fruitful or not unresolved)

    def handle_failure(self, now: float) -> None:
        """Ask again for everything that the failed request asked for, after a backoff."""
        ask, self._in_flight = self._in_flight, None
        self._failure_gate.close(now, fruitful=False)
        if ask is None:
            return
        if ask.is_full and self._last_full is not None:
            self.request_full(ask.reason)
        for topic in ask.topics:
            if topic in self._last_used and not ask.is_full:
                self._unresolved[topic] = None
