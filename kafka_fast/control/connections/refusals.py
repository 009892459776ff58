"""Refused logins and certificates, for the waits of users: they end at once, as the next try would.

    connection ── refused ──► Refusals ◄── watch ── a wait of a user's thread
                                              └─ check ─► AuthenticationError, TlsError

The client goes on trying in the background, with backoff. So what it has accepted (records,
commits) is done once the credentials are. A wait hears of refusals that come while it lasts, so a
call that is made again waits for the next try.

One node of several may refuse, because its configuration is another one. A wait that needs no such
node goes on. It needs one if that is what it lacks, or if there is no other link.

Thread: control; watches belong to any.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.control.connections.link_errors import REFUSALS
from kafka_fast.control.connections.links import Links
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.errors import KafkaError, fresh_copy

__all__ = ["RefusalWatch", "Refusals"]


class Refusals:
    """The refusals that one client has met."""

    def __init__(self, links: Links) -> None:
        """Take the links: while there is none, a refusal ends every wait.

        Args:
            links: those that may be used now.
        """
        self.links = links
        self.last: KafkaError | None = None
        """The latest refusal."""
        self.count = 0

    def note(self, error: KafkaError) -> None:
        """Keep a refusal, for the waits that watch. Control thread."""
        self.last = error
        self.count += 1  # last: a watch that sees this reads the error

    def watch(self) -> RefusalWatch:
        """Return what looks out for refusals from now on. Any thread."""
        return RefusalWatch(self)


class RefusalWatch:
    """One wait's look-out for refusals. The thread that waits."""

    def __init__(self, refusals: Refusals) -> None:
        """Look out for refusals that come from now on."""
        self._refusals = refusals
        self._seen = refusals.count

    @property
    def has_news(self) -> bool:
        """Whether there was a refusal since the last `raise_refusal`. Any thread."""
        return self._refusals.count != self._seen

    def raise_refusal(self, missing: Callable[[], Reason | None] = lambda: None) -> None:
        """Raise if what is waited for needs a node that has refused this client.

        Args:
            missing: returns what the wait still lacks.

        Raises:
            AuthenticationError: the login was refused.
            TlsError: a certificate was.
        """
        if not self.has_news:
            return
        self._seen = self._refusals.count
        reason = missing()
        cause = None if reason is None else reason.cause
        if isinstance(cause, REFUSALS):
            raise fresh_copy(cause)
        if self._refusals.last is not None and not self._refusals.links.has_any:
            raise fresh_copy(self._refusals.last)
