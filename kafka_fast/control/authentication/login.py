"""The login over one link: accepted once, and renewed before the broker's session ends (KIP-368).

A broker tells how long a session lives, and closes a link that carries other requests after that.
So the login is renewed at a random 85 to 95 % of that time. Brokers refuse two renewals within a
second. A renewal that comes later than the session's end is accepted all the same, if no other
request goes before it: the link's gate sees to that.

A renewal begins a little ahead of that, with the work that it needs before its first message. So
requests wait at the gate for the broker only, and not for a user's function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kafka_fast.control.authentication.dialogue import Accepted, Authentication, AuthenticationStep
from kafka_fast.control.authentication.mechanism import Mechanism, Work
from kafka_fast.control.connections.negotiation import NodeVersions
from kafka_fast.instants import LONG_AGO, NEVER

__all__ = ["Login", "LoginStep"]

LoginStep: TypeAlias = bytes | Work | None
"""What comes next: a request to send, something to do, or nothing: the broker has accepted."""

SESSION_SHARE = (0.85, 0.95)
"""The parts of a session's lifetime between which it is renewed, by chance."""

LEAD = 0.03
LEAD_MAX = 30.0
"""The part of a session's lifetime by which a renewal's work is ahead of the gate, and the seconds
at most: what the work brings must still be good."""

RENEWAL_INTERVAL = 1.05
"""Seconds from one login to the next over the same link."""


class Login:
    """One link's login. Control thread; texts may be asked for by any."""

    def __init__(
        self,
        mechanism: Mechanism,
        host: str,
        versions: NodeVersions,
        client_id: str,
        random: Callable[[], float],
    ) -> None:
        """Prepare the login; `begin_dialogue` starts its first dialogue.

        Args:
            mechanism: with the client's credentials.
            host: the broker's name, as advertised or configured.
            versions: what the broker and this client share.
            client_id: of all requests.
            random: returns a float in [0, 1).
        """
        self._mechanism = mechanism
        self._host = host
        self._versions = versions
        self._client_id = client_id
        self._random = random
        self._dialogue: Authentication | None = None
        self._asked_at = 0.0  # when the last request was sent
        self._accepted_at = LONG_AGO
        self.renew_at = NEVER
        """When no more requests may be sent before the login is renewed."""
        self.prepare_at = NEVER
        """When a renewal may begin, before the gate is shut."""

    # ---- getters ----

    @property
    def is_under_way(self) -> bool:
        """Whether there is a dialogue, for the first login or for a renewal."""
        return self._dialogue is not None

    @property
    def may_begin_at(self) -> float:
        """The time before which the broker would refuse a dialogue."""
        return self._accepted_at + RENEWAL_INTERVAL

    @property
    def work(self) -> Work | None:
        """What is being done for the dialogue, and has no result yet."""
        return None if self._dialogue is None else self._dialogue.work

    @property
    def awaited(self) -> str:
        """The request that has no answer yet; "" if there is none."""
        return "" if self._dialogue is None else self._dialogue.awaited

    def describe(self) -> str:
        """Return what a dialogue waits for; the text goes on from the broker's name. Any thread."""
        work, awaited = self.work, self.awaited
        if work is not None:
            return f"waits for a login: {work.what}"
        return f"has not answered {awaited}" if awaited else "waits for the login to be renewed"

    def guess(self) -> str:
        """Return why the broker may have closed the link during a dialogue."""
        return f": some brokers refuse a login so ({self._mechanism.name})"

    # Steps; they raise what `Authentication` raises

    def begin_dialogue(self, now: float) -> LoginStep:
        """Start the first dialogue, or a renewal; return its first step."""
        self._dialogue = Authentication(
            self._mechanism, self._host, self._versions, self._client_id
        )
        is_renewal = self._accepted_at != LONG_AGO
        return self._note(self._dialogue.first_step(is_renewal=is_renewal), now)

    def handle_frame(self, data: bytes, now: float) -> LoginStep:
        """Take the answer to the last request."""
        assert self._dialogue is not None
        return self._note(self._dialogue.handle_frame(data), now)

    def handle_result(self, result: object, now: float) -> LoginStep:
        """Take the result of the last `Work`, or the exception that its function has raised."""
        assert self._dialogue is not None
        return self._note(self._dialogue.handle_result(result), now)

    def close(self) -> None:
        """Give the dialogue up, if there is one."""
        dialogue, self._dialogue = self._dialogue, None
        if dialogue is not None:
            dialogue.close()

    def _note(self, step: AuthenticationStep, now: float) -> LoginStep:
        if isinstance(step, Accepted):
            self.close()
            self._accepted_at = now
            least, most = SESSION_SHARE
            share = least + (most - least) * self._random()
            # The session began some time after the last request was sent.
            self.renew_at = self._asked_at + step.lifetime * share
            lead = min(step.lifetime * LEAD, LEAD_MAX)
            self.prepare_at = max(self.renew_at - lead, self.may_begin_at)
            return None
        if isinstance(step, bytes):
            self._asked_at = now
        return step
