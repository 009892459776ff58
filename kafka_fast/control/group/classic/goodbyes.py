"""A classic member leaves its group in a way that the coordinator notices at once.

    leave ──► named ─────────────────────────────► LeaveGroup ──► done
          └─► the first join is under way ──► named ──┘

Otherwise the other members would wait for its session to time out. A broker reads the requests of a
connection one after the other, and answers a JoinGroup only when the other members have come. A
LeaveGroup behind a JoinGroup would be read too late, so it goes over another connection. A
JoinGroup without a member id makes a member whose id only the answer tells; the LeaveGroup waits
for that answer. Neither wait is long.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.control.group.classic import messages
from kafka_fast.control.group.coordinator import GroupCoordinator
from kafka_fast.control.instants import NEVER
from kafka_fast.protocol.apis.leave_group import LeaveGroupResponse
from kafka_fast.values import Value

PATIENCE = 5.0
"""Seconds that a goodbye waits for a name, or for a connection."""


class Goodbye(Value, frozen=False, eq=False):
    """One that is not said yet."""

    reason: str
    done: Callable[[], None]
    by: float
    beside: bool
    member_id: str = ""


class Goodbyes:
    """What the coordinator is still to be told of one consumer's former lives."""

    def __init__(self, coordinator: GroupCoordinator) -> None:
        """Begin with nothing to say."""
        self._coordinator = coordinator
        self._unsaid: list[Goodbye] = []

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        return min((goodbye.by for goodbye in self._unsaid), default=NEVER)

    def say(
        self, member_id: str, reason: str, done: Callable[[], None], now: float, *, beside: bool
    ) -> None:
        """Tell the coordinator that a member is gone.

        Args:
            member_id: the member's.
            reason: for the coordinator's log.
            done: called when the coordinator has heard, or will not.
            now: the time.
            beside: the link to the coordinator carries a request that waits for others.
        """
        self._unsaid.append(Goodbye(reason, done, now + PATIENCE, beside, member_id))
        self.tick(now)

    def await_name(
        self, reason: str, done: Callable[[], None], now: float
    ) -> Callable[[str, float], None]:
        """Tell it as soon as the member has a name.

        Returns:
            To be called with the member id and the time; with an empty one if it gets none.
        """
        goodbye = Goodbye(reason, done, now + PATIENCE, beside=False)
        self._unsaid.append(goodbye)

        def take(member_id: str, now: float) -> None:
            if goodbye in self._unsaid:
                goodbye.member_id = member_id
                if not member_id:
                    self._end(goodbye)
                self.tick(now)
            elif member_id:  # later than anybody waits for
                self.say(member_id, reason, lambda: None, now, beside=False)

        return take

    def tick(self, now: float) -> None:
        """Say what can be said by now, and give up what is too late."""
        for goodbye in list(self._unsaid):
            if now >= goodbye.by:
                self._end(goodbye)
            elif goodbye.member_id:
                self._try(goodbye, now)

    def _try(self, goodbye: Goodbye, now: float) -> None:
        coordinator = self._coordinator
        link = coordinator.want_beside(now) if goodbye.beside else coordinator.link
        if link is not None:
            self._unsaid.remove(goodbye)
            coordinator.ask(
                link,
                messages.leave_request(
                    coordinator.group_id, goodbye.member_id, goodbye.reason, link
                ),
                LeaveGroupResponse,
                lambda response, then: goodbye.done(),
                lambda error, then: goodbye.done(),
            )
        elif coordinator.node is None or not goodbye.beside:
            self._end(goodbye)  # it is somewhere else by now, or not to be reached

    def _end(self, goodbye: Goodbye) -> None:
        self._unsaid.remove(goodbye)
        goodbye.done()
