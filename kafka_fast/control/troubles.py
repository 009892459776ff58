"""What has gone wrong between one client and its brokers: the home of every "last trouble".

    links: refused, lost, nonsense ───┐               ┌─► one WARNING for each subject and cause
    answers that are an error code ───┼─► Troubles ───┤
    answers that nobody can read ─────┘               └─► why a wait was in vain: text and cause

A trouble has a *subject*: the connection that it was met at, a partition, a topic, the group. That
a broker talks nonsense, or refuses, is no reason to give up: another try may go well. But whoever
has waited in vain is told the last trouble of what the wait was for.

Thread: control; getters may be called from any.
"""

from __future__ import annotations

import enum
import logging
import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from kafka_fast.control.connection_key import ConnectionKey
from kafka_fast.control.instants import LONG_AGO
from kafka_fast.control.plane import LinkClosed
from kafka_fast.errors import (
    BrokerError,
    CoordinatorLoadInProgress,
    KafkaError,
    KafkaTimeoutError,
    ProtocolError,
    drop_frames,
    fresh_copy,
)
from kafka_fast.logs import in_seconds
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value

__all__ = ["About", "Reason", "Subject", "Trouble", "Troubles", "late"]

QUIET = 60.0
"""Seconds without a trouble after which the same one is news again."""

SETTLING = 1.0
"""Seconds for which an answer that our metadata are stale is no news: leaders move."""

GATHERING = 5.0
"""Seconds for which errors of a coordinator are no news: the first group's has to be made."""

LOADING = 15.0
"""Seconds for which it is no news that a coordinator loads what it coordinates."""


class About(enum.Enum):
    """Subjects that a client has one of."""

    METADATA = "metadata"
    COORDINATOR = "finding the group's coordinator"
    GROUP = "what the coordinator is asked"
    PRODUCER_ID = "the producer id"


Subject: TypeAlias = ConnectionKey | str | TopicPartition | About
"""A connection, a topic by its name, a partition, or one of `About`."""


class Reason(NamedTuple):
    """Why something has not come."""

    text: str
    cause: KafkaError | None = None
    """The error behind it; kept by others, so copies of it are raised."""
    is_expected: bool = False
    """Whether this is a part of normal life, as far as can be told by now."""


class Trouble(Value, frozen=False):
    """The last thing that went wrong about one subject.

    Attributes:
        error: what it was; names the node, and in an answer the API, its version and the place.
        began: when it happened first, in a row of tries that all ended so.
        at: when it happened last.
        tries: how often, in that row.
        is_over: it has gone well since.
        is_past: of a connection: it has a link again.
        is_told: the log has it.
    """

    error: KafkaError
    began: float
    at: float
    tries: int = 1
    is_over: bool = False
    is_past: bool = False
    is_told: bool = False

    def __str__(self) -> str:
        if self.tries == 1:
            return str(self.error)
        return f"{self.error} ({self.tries} times in {in_seconds(self.at - self.began)})"


class Troubles:
    """The troubles of one client."""

    def __init__(self, logger: logging.Logger) -> None:
        """Begin without any.

        Args:
            logger: the client's; a trouble that is news is a warning there.
        """
        self.closed: Counter[str] = Counter()
        """Links that were closed, by reason."""
        self.malformed: Counter[str] = Counter()
        """Answers that were not what their request asked for, by API."""
        self.failures = 0
        """How often a node could not be reached, or the link to it broke."""
        self._logger = logger
        self._last: dict[Subject, Trouble] = {}
        self._explained: dict[int, ProtocolError] = {}  # by link

    # What happens

    def note(self, subject: Subject, error: KafkaError, now: float) -> None:
        """Keep what has gone wrong, and log it if that is news."""
        drop_frames(error)
        trouble = self._last.get(subject)
        if trouble is not None and _goes_on(trouble, error, now):
            trouble.error, trouble.at, trouble.tries = error, now, trouble.tries + 1
            trouble.is_past = False
        else:
            trouble = self._last[subject] = Trouble(error, now, now)
        trouble.is_told = trouble.is_told or self._is_told_elsewhere(subject, error, now)
        is_settled = now - trouble.began >= _patience(subject, error)
        level = logging.WARNING if is_settled and not trouble.is_told else logging.DEBUG
        self._logger.log(level, "%s", error, extra={"kind": type(error)})
        trouble.is_told = trouble.is_told or is_settled

    def _is_told_elsewhere(self, subject: Subject, error: KafkaError, now: float) -> bool:
        """Tell whether the other connection to bootstrap.servers has met, and told, the same."""
        if not _is_bootstrap(subject):
            return False
        found = (trouble for it, trouble in self._last.items() if _is_bootstrap(it))
        return any(it.is_told and _goes_on(it, error, now) for it in found)

    def clear(self, subject: Subject) -> None:
        """It has gone well: the next trouble of this subject is news."""
        trouble = self._last.get(subject)
        if trouble is not None:
            trouble.is_over = True

    def pass_by(self, key: ConnectionKey) -> None:
        """A connection has a link again; that it goes well has yet to be seen."""
        trouble = self._last.get(key)
        if trouble is not None:
            trouble.is_past = True

    def note_failure(self, key: ConnectionKey, error: KafkaError, now: float) -> None:
        """Count that a connection has no link any more, and keep why."""
        self.failures += 1
        self.note(key, error, now)

    def note_closed(self, event: LinkClosed) -> ProtocolError | None:
        """Count that a link was closed; return what was wrong with its last answer, if anything."""
        self.closed[event.reason.name.lower()] += 1
        return self._explained.pop(event.link_id, None)

    def explain(self, link_id: int, error: ProtocolError) -> None:
        """Say what was wrong with the answer that a link is about to be closed for."""
        self._explained[link_id] = error

    def note_malformed(self, api: str) -> None:
        """Count an answer that could not be read, or that does not fit its request."""
        self.malformed[api] += 1

    # Getters

    def stats(self) -> dict[str, object]:
        """Return what was counted, as `metrics()` has it."""
        return {
            "malformed_answers": dict(self.malformed),
            "links_closed": dict(self.closed),
            "link_failures": self.failures,
        }

    def of(self, subject: Subject, since: float = LONG_AGO) -> Trouble | None:
        """Return the last trouble about a subject, if there was one since then."""
        trouble = self._last.get(subject)
        return None if trouble is None or trouble.at < since else trouble

    def now(self, subject: Subject, since: float = LONG_AGO) -> Trouble | None:
        """Likewise, if it is not known to be over."""
        trouble = self.of(subject, since)
        return None if trouble is None or trouble.is_over or trouble.is_past else trouble

    def last(self, since: float, subjects: Iterable[Subject] | None = None) -> Trouble | None:
        """Return the last trouble since then.

        Args:
            since: the time.
            subjects: that it may be about; None: any connection.
        """
        if subjects is None:
            found = [it for key, it in list(self._last.items()) if isinstance(key, ConnectionKey)]
        else:
            found = [self._last[key] for key in subjects if key in self._last]
        recent = [it for it in found if it.at >= since]
        return max(recent, key=lambda it: it.at, default=None)


def _is_bootstrap(subject: Subject) -> bool:
    return isinstance(subject, ConnectionKey) and subject.is_bootstrap


def _goes_on(trouble: Trouble, error: KafkaError, now: float) -> bool:
    """Tell whether an error is one more of a row; they may differ in numbers, such as seconds."""
    if trouble.is_over or now - trouble.at >= QUIET or type(trouble.error) is not type(error):
        return False
    return re.sub(r"\d+", "", str(trouble.error)) == re.sub(r"\d+", "", str(error))


def _patience(subject: Subject, error: KafkaError) -> float:
    """Return for how many seconds an error is part of normal life."""
    if subject in (About.COORDINATOR, About.GROUP, About.PRODUCER_ID):
        return LOADING if isinstance(error, CoordinatorLoadInProgress) else GATHERING
    return SETTLING if isinstance(error, BrokerError) and error.refresh_metadata else 0.0


def last_trouble(trouble: Trouble | None) -> Reason | None:
    """Return a trouble as the reason of a wait in vain."""
    return None if trouble is None else Reason(f"last trouble: {trouble}", trouble.error)


def late(what: str, *reasons: Reason | None) -> KafkaTimeoutError:
    """Return what a wait in vain raises.

    Args:
        what: was waited for, and how long.
        reasons: why it has not come, the most telling one first; None: not known.
    """
    known = [it for it in reasons if it is not None]
    error = KafkaTimeoutError("; ".join([what, *(it.text for it in known if it.text)]))
    causes = (it.cause for it in known)
    cause = next((it for it in causes if it is not None), None)
    error.__cause__ = None if cause is None else fresh_copy(cause)
    return error
