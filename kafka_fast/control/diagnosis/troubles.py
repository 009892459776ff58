"""What has gone wrong between one client and its brokers: the last trouble of each subject.

    links: refused, lost, unreadable ─┐               ┌─► one WARNING for each subject and cause
    answers that are an error code ───┼─► Troubles ───┤
    answers that nobody can read ─────┘               └─► why a wait timed out: text and cause

A trouble has a *subject*: a connection, a partition, a topic, or the group. After an unreadable
answer or a refusal the client goes on, because another try may succeed. If a wait times out, its
error tells the last trouble of the subject that was waited for.

Thread: control; getters may be called from any.
"""

from __future__ import annotations

import enum
import logging
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from kafka_fast.control.connections.connection_key import ConnectionKey
from kafka_fast.control.diagnosis.outages import QUIET, Outages, says_only_away
from kafka_fast.control.messages import LinkClosed
from kafka_fast.errors import (
    BrokerError,
    ConnectionReason,
    CoordinatorLoadInProgress,
    ErrorCode,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    ProtocolError,
    drop_frames,
    fresh_copy,
)
from kafka_fast.instants import LONG_AGO
from kafka_fast.logs import RECOVERY, Log, in_seconds
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value

__all__ = ["About", "Reason", "Subject", "Trouble", "Troubles", "timeout_error"]

SETTLING = 5.0
"""Seconds for which errors are not logged that come while leaders move: metadata are stale, or the
new leader is not ready yet. A broker that stops in good order moves all of its partitions."""

UNSETTLED = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)
"""Errors that come while leaders move, whether or not they ask for new metadata."""

GATHERING = 5.0
"""Seconds for which errors of a coordinator are not logged.

For the first group of a cluster the topic of offsets has to be created first.
"""

LULL = 3.0
"""Seconds without an error after which the next one does not continue a row, at least.

Success is not told by every part of a client. Errors that go on come at the pace of retries.
"""

LOADING = 15.0
"""Seconds for which COORDINATOR_LOAD_IN_PROGRESS is not logged."""


class About(enum.Enum):
    """Subjects of which each client has one."""

    METADATA = "metadata"
    COORDINATOR = "finding the group's coordinator"
    GROUP = "what the coordinator is asked"
    PRODUCER_ID = "the producer id"

    @property
    def recovered(self) -> str:
        """What the log says when the subject is in order again."""
        return RECOVERED[self]


RECOVERED = {
    About.METADATA: "metadata are there",
    About.COORDINATOR: "the group's coordinator is found",
    About.GROUP: "the group's coordinator answers without an error",
    About.PRODUCER_ID: "there is a producer id",
}

Subject: TypeAlias = ConnectionKey | str | TopicPartition | About
"""A connection, a topic by its name, a partition, or one of `About`."""


class Reason(NamedTuple):
    """Why something has not come."""

    text: str
    cause: KafkaError | None = None
    """The error behind the text. Others keep this object too, so raise a copy."""
    is_expected: bool = False
    """Whether this may well be normal, as far as is known by now."""


class Trouble(Value, frozen=False):
    """The last thing that went wrong about one subject."""

    error: KafkaError
    """Names the node. For an answer it also names the API, its version and the place."""
    began: float
    """When the first try of a row failed. All tries of the row ended with this error."""
    at: float
    """When the last try of the row failed."""
    tries: int = 1
    """How many tries the row has."""
    is_over: bool = False
    """A later try succeeded."""
    is_past: bool = False
    """The subject is a connection, and has a link again."""
    is_told: bool = False
    """The log has it."""

    def __str__(self) -> str:
        if self.tries == 1:
            return str(self.error)
        return f"{self.error} ({self.tries} times in {in_seconds(self.at - self.began)})"


class Troubles:
    """The troubles of one client."""

    def __init__(self, log: Log, retry_backoff_max: float = 0.0) -> None:
        """Take where troubles are logged, and how far apart retries may be.

        Args:
            log: the client's. A new trouble is a warning there.
            retry_backoff_max: seconds between two tries, at most.
        """
        self._lull = max(LULL, 2 * retry_backoff_max)
        self.closed: Counter[str] = Counter()
        """Links that were closed, by reason."""
        self.malformed: Counter[str] = Counter()
        """Answers that were not what their request asked for, by API."""
        self.failed_handshakes = 0
        """TLS handshakes that failed, or after which the broker refused this client."""
        self.logins: Counter[str] = Counter()
        """Logins that brokers have accepted: `first` ones of a link, and `renewed` ones."""
        self.failed_logins: Counter[str] = Counter()
        """Logins that failed, by the class of the error."""
        self.failures = 0
        """How often a node could not be reached, or the link to it broke."""
        self.outages = Outages(log)
        """Of the nodes. Control thread."""
        self._log = log
        self._last: dict[Subject, Trouble] = {}
        self._explained: dict[int, ProtocolError] = {}  # by link

    # ---- what happens ----

    def note(
        self, subject: Subject, error: KafkaError, now: float, *, is_no_news: bool = False
    ) -> None:
        """Keep what has gone wrong, and log it if it is new.

        Args:
            subject: of the trouble.
            error: names what has failed.
            now: the time.
            is_no_news: nobody needs what has failed, or the reason is known and told elsewhere.
        """
        drop_frames(error)
        trouble = self._last.get(subject)
        if trouble is not None and _goes_on(trouble, error, now):
            if now - trouble.at > self._lull:
                trouble.began, trouble.tries = now, 0
            trouble.error, trouble.at, trouble.tries = error, now, trouble.tries + 1
            trouble.is_past = False
        else:
            trouble = self._last[subject] = Trouble(error, now, now)
        if is_no_news:
            self._log.debug("%s", error, extra={"kind": type(error)})
            return
        trouble.is_told = trouble.is_told or self._is_told_elsewhere(subject, error, now)
        if isinstance(subject, ConnectionKey):
            self._log_of_node(subject, trouble, now)
        else:
            is_settled = now - trouble.began >= _patience(subject, error)
            level = logging.WARNING if is_settled and not trouble.is_told else logging.DEBUG
            self._log.log(level, "%s", error, extra={"kind": type(error)})
            trouble.is_told = trouble.is_told or is_settled

    def _log_of_node(self, key: ConnectionKey, trouble: Trouble, now: float) -> None:
        """Log the last trouble of a connection, unless its node is known to be away."""
        outages, error = self.outages, trouble.error
        is_news = outages.note(key, error, now)
        if not outages.was_reached(key):
            is_news = not trouble.is_told
        if is_news:
            times = outages.times(key, now)
            self._log.warning("%s%s", error, times, extra={"kind": type(error)})
            outages.note_told(key, error)
        else:
            self._log.debug("%s", error, extra={"kind": type(error)})
        trouble.is_told = True

    def _is_told_elsewhere(self, subject: Subject, error: KafkaError, now: float) -> bool:
        """Tell whether the other bootstrap connection met the same trouble, and logged it."""
        if not _is_bootstrap(subject):
            return False
        troubles = (trouble for key, trouble in self._last.items() if _is_bootstrap(key))
        return any(trouble.is_told and _goes_on(trouble, error, now) for trouble in troubles)

    def end_trouble(self, subject: Subject, now: float) -> None:
        """End the trouble of a subject after a success: its next trouble is a new one.

        That a trouble is over is logged, if the trouble was.
        """
        trouble = self._last.get(subject)
        if trouble is None or trouble.is_over:
            return
        trouble.is_over = True
        if trouble.is_told:
            what = subject.recovered if isinstance(subject, About) else f"{subject}: no more errors"
            after = in_seconds(now - trouble.began)
            self._log.info("%s, after %s", what, after, extra=RECOVERY)

    def forget_subject(self, subject: Subject) -> None:
        """End the trouble of a subject that is gone. Nothing was mended, so nothing is logged."""
        trouble = self._last.get(subject)
        if trouble is not None:
            trouble.is_over = True

    def pass_by(self, key: ConnectionKey, now: float) -> None:
        """Count a connection's trouble as past: it has a link again, which may or may not work."""
        self.outages.handle_ready(key, now)
        trouble = self._last.get(key)
        if trouble is not None:
            trouble.is_past = True

    def note_failure(
        self, key: ConnectionKey, error: KafkaError, now: float, *, is_spare: bool = False
    ) -> None:
        """Count a connection that failed or broke, and keep why.

        Args:
            key: the connection.
            error: why it failed.
            now: the time.
            is_spare: nobody needs the connection, so that its end is no news. That its broker
                sent what cannot be read, or refused this client, still is.
        """
        self.failures += 1
        self.note(key, error, now, is_no_news=is_spare and says_only_away(error))

    def note_closed(self, event: LinkClosed) -> ProtocolError | None:
        """Count a closed link; return what `explain` said of it."""
        self.closed[event.reason.name.lower()] += 1
        return self._explained.pop(event.link_id, None)

    def explain(self, link_id: int, error: ProtocolError) -> None:
        """Keep what was wrong with the answer for which a link is about to be closed."""
        self._explained[link_id] = error

    def count_login(self, error: KafkaError | None, *, is_first: bool) -> None:
        """Count a login over a new link, or a renewed one; `error` says why it failed."""
        if error is None:
            self.logins["first" if is_first else "renewed"] += 1
        else:
            self.failed_logins[type(error).__name__] += 1

    def note_malformed(self, api: str) -> None:
        """Count an answer that could not be read, or that does not fit its request."""
        self.malformed[api] += 1

    # ---- getters ----

    def stats(self) -> dict[str, object]:
        """Return what was counted, as `metrics()` has it."""
        return {
            "malformed_answers": dict(self.malformed),
            "links_closed": dict(self.closed),
            "link_failures": self.failures,
            "failed_handshakes": self.failed_handshakes,
            "logins": dict(self.logins),
            "failed_logins": dict(self.failed_logins),
        }

    def last_of(self, subject: Subject, since: float = LONG_AGO) -> Trouble | None:
        """Return the last trouble of a subject, if it was not before `since`."""
        trouble = self._last.get(subject)
        return None if trouble is None or trouble.at < since else trouble

    def now(self, subject: Subject, since: float = LONG_AGO) -> Trouble | None:
        """Return the last trouble of a subject, unless it was before `since` or is over."""
        trouble = self.last_of(subject, since)
        return None if trouble is None or trouble.is_over or trouble.is_past else trouble

    def last(self, since: float, subjects: Iterable[Subject] | None = None) -> Trouble | None:
        """Return the last trouble of several subjects.

        Args:
            since: troubles before this time are left out.
            subjects: the subjects; None: all connections.
        """
        if subjects is None:
            troubles = [
                trouble
                for key, trouble in list(self._last.items())
                if isinstance(key, ConnectionKey)
            ]
        else:
            troubles = [self._last[key] for key in subjects if key in self._last]
        recent = [trouble for trouble in troubles if trouble.at >= since]
        return max(recent, key=lambda trouble: trouble.at, default=None)


def _is_bootstrap(subject: Subject) -> bool:
    return isinstance(subject, ConnectionKey) and subject.is_bootstrap


def _goes_on(trouble: Trouble, error: KafkaError, now: float) -> bool:
    """Tell whether an error continues a row: it is of the same kind, whatever its text says."""
    if trouble.is_over or now - trouble.at >= QUIET:
        return False
    return _kind(trouble.error) == _kind(error)


def _kind(error: KafkaError) -> tuple[type[KafkaError], int | ConnectionReason | None]:
    """Return what makes two errors of one subject the same: the class, and its code if it has one.

    A text is no key: it names the address that was tried last, and how long that took.
    """
    if isinstance(error, BrokerError):
        return type(error), error.code
    return type(error), error.reason if isinstance(error, KafkaConnectionError) else None


def _patience(subject: Subject, error: KafkaError) -> float:
    """Return for how many seconds an error may be normal, and is not logged."""
    if subject in (About.COORDINATOR, About.GROUP, About.PRODUCER_ID):
        return LOADING if isinstance(error, CoordinatorLoadInProgress) else GATHERING
    is_unsettled = isinstance(error, BrokerError) and (
        error.refresh_metadata or error.code in UNSETTLED
    )
    return SETTLING if is_unsettled else 0.0


def last_trouble(trouble: Trouble | None) -> Reason | None:
    """Return a trouble as the reason why a wait timed out."""
    return None if trouble is None else Reason(f"last trouble: {trouble}", trouble.error)


def timeout_error(what: str, *reasons: Reason | None) -> KafkaTimeoutError:
    """Return the error of a wait that timed out.

    Args:
        what: what was waited for, and how long.
        reasons: why it has not come, the most telling one first; None: not known.
    """
    known = [reason for reason in reasons if reason is not None]
    error = KafkaTimeoutError("; ".join([what, *(reason.text for reason in known if reason.text)]))
    causes = (reason.cause for reason in known)
    cause = next((candidate for candidate in causes if candidate is not None), None)
    error.__cause__ = None if cause is None else fresh_copy(cause)
    return error
