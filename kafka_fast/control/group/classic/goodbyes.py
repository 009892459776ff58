"""A classic member leaves its group in a way that the coordinator notices at once.

    leave ──► named ─────────────────────────────► LeaveGroup ──► done
          └─► the first join is under way ──► named ──┘

Otherwise the other members would wait for its session to time out. A broker reads the requests of a
connection one after the other, and answers a JoinGroup only when the other members have joined. It
would read a LeaveGroup behind a JoinGroup too late, so the LeaveGroup goes over another connection.
The answer to a first JoinGroup tells the member's id, so a LeaveGroup waits for that answer. Both
waits are short.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.control.group.classic import classic_messages
from kafka_fast.control.group.group_coordinator import GroupCoordinator
from kafka_fast.instants import NEVER
from kafka_fast.protocol.apis.groups.leave_group import LeaveGroupResponse
from kafka_fast.values import Value

GOODBYE_PATIENCE = 5.0
"""Seconds that a goodbye waits for a member id, or for a connection."""


class Goodbye(Value, frozen=False, eq=False):
    """A LeaveGroup that is not sent yet."""

    reason: str
    done: Callable[[], None]
    by: float
    """When it is given up."""
    beside: bool
    """It goes over another connection than the member's requests."""
    member_id: str = ""  # "": not known yet


class Goodbyes:
    """The goodbyes of one consumer that are still to be sent. Control thread only."""

    def __init__(self, coordinator: GroupCoordinator) -> None:
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
            member_id: the id of the member.
            reason: for the coordinator's log.
            done: called when the coordinator has answered, or cannot be told.
            now: the time.
            beside: a JoinGroup or SyncGroup is in flight on the link to the coordinator.
        """
        self._unsaid.append(Goodbye(reason, done, now + GOODBYE_PATIENCE, beside, member_id))
        self.tick(now)

    def await_name(
        self, reason: str, done: Callable[[], None], now: float
    ) -> Callable[[str, float], None]:
        """Tell the coordinator that a member is gone, as soon as the member's id is known.

        Returns:
            A function to call with the member id and the time. The id is empty if there is none.
        """
        goodbye = Goodbye(reason, done, now + GOODBYE_PATIENCE, beside=False)
        self._unsaid.append(goodbye)

        def take(member_id: str, now: float) -> None:
            if goodbye in self._unsaid:
                goodbye.member_id = member_id
                if not member_id:
                    self._end(goodbye)
                self.tick(now)
            elif member_id:  # too late for `done`, but the coordinator can still be told
                self.say(member_id, reason, lambda: None, now, beside=False)

        return take

    def tick(self, now: float) -> None:
        """Send the goodbyes that can be sent, and give up those that are too late."""
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
            coordinator.send_request(
                link,
                classic_messages.leave_request(
                    coordinator.group_id, goodbye.member_id, goodbye.reason, link
                ),
                LeaveGroupResponse,
                lambda response, then: goodbye.done(),
                lambda error, then: goodbye.done(),
            )
        elif coordinator.node is None or not goodbye.beside:
            self._end(goodbye)  # the coordinator has moved, or cannot be reached

    def _end(self, goodbye: Goodbye) -> None:
        self._unsaid.remove(goodbye)
        goodbye.done()
