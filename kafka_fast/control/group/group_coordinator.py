"""The coordinator of one group, with what is specific to groups.

`Coordinators` finds the coordinator and keeps it. Most requests are calls to `target`. The member's
own requests depend on their order, so they go over the link that `want_link` returns.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kafka_fast.config import CommonSettings
from kafka_fast.control.connections.link_errors import IdleConnectionError
from kafka_fast.control.connections.links import Link
from kafka_fast.control.context import Context
from kafka_fast.control.diagnosis.troubles import About, Reason
from kafka_fast.control.metadata.metadata import Node
from kafka_fast.control.requests.meanings import MOVED
from kafka_fast.control.requests.targets import Coordinator, CoordinatorKind
from kafka_fast.errors import ERRORS, KafkaError, UnsupportedVersionError, broker_error
from kafka_fast.protocol.apis.groups.heartbeat import HeartbeatRequest
from kafka_fast.protocol.apis.groups.join_group import JoinGroupRequest
from kafka_fast.protocol.apis.groups.leave_group import LeaveGroupRequest
from kafka_fast.protocol.apis.groups.offset_commit import OffsetCommitRequest
from kafka_fast.protocol.apis.groups.offset_fetch import OffsetFetchRequest
from kafka_fast.protocol.apis.groups.sync_group import SyncGroupRequest
from kafka_fast.protocol.schema import Request, Response

R = TypeVar("R", bound=Response)

NEEDED: tuple[type[Request], ...] = (
    JoinGroupRequest,
    SyncGroupRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    OffsetFetchRequest,
    OffsetCommitRequest,
)
"""APIs that a coordinator must offer. This is checked before the first request."""


class GroupCoordinator:
    """One group's coordinator. Control thread only."""

    def __init__(
        self,
        group_id: str,
        context: Context[CommonSettings],
        *,
        on_fatal: Callable[[KafkaError], None],
    ) -> None:
        """Register `on_fatal` with `Coordinators`. Nothing is looked up yet.

        Args:
            group_id: the group.
            context: the client's.
            on_fatal: called when this client will have no coordinator: not authorized, bad group.
        """
        self.group_id = group_id
        self.target = Coordinator(CoordinatorKind.GROUP, group_id)
        self._coordinators = context.requester.coordinators
        self._cluster = context.cluster
        self._connections = context.connections
        self._links = context.links
        self._timeout = context.settings.request_timeout
        self._checked = -1  # the last link that was found to offer all NEEDED
        self._coordinators.follow(CoordinatorKind.GROUP, group_id, on_fatal)

    # ---- getters ----

    @property
    def node(self) -> Node | None:
        """The coordinator, if it is known."""
        return self._coordinators.node(CoordinatorKind.GROUP, self.group_id)

    @property
    def link(self) -> Link | None:
        """The ready link to the coordinator, or None."""
        return self._coordinators.link(CoordinatorKind.GROUP, self.group_id)

    def why_waiting(self) -> Reason | None:
        """Return why the coordinator has not answered an open request; None if that is not known.

        Any thread.
        """
        reason = self._coordinators.why_waiting(CoordinatorKind.GROUP, self.group_id)
        if reason is not None:
            return reason
        trouble = self._connections.troubles.now(About.GROUP)
        if trouble is None:
            return None
        text = f"its coordinator, {self.node}, answers {trouble}"
        return Reason(text, trouble.error, is_expected=not trouble.is_told)

    # ---- commands ----

    def want_link(self, now: float) -> Link | None:
        """Return the ready link to the coordinator; if there is none, work towards one."""
        link = self._coordinators.want_link(CoordinatorKind.GROUP, self.group_id, now)
        if link is None or link.id == self._checked:
            return link
        try:
            for needed in NEEDED:
                link.versions.pick(needed)
        except UnsupportedVersionError as error:
            self._coordinators.refuse_coordinator(CoordinatorKind.GROUP, self.group_id, error, now)
            return None
        self._checked = link.id
        return link

    def look_again(self) -> None:
        """Ask the brokers again which node the coordinator is: it has been silent for long."""
        self._coordinators.look_again(CoordinatorKind.GROUP, self.group_id)

    def want_beside(self, now: float) -> Link | None:
        """Return a ready link to the coordinator on which no JoinGroup waits, or None.

        If the coordinator is known, a missing link is opened.
        """
        node = self.node
        if node is None:
            return None
        key = self._links.request_key(node.id)
        link = self._links.link_to(key)
        if link is None:
            self._connections.want_link(node, key.role, now, self._cluster.cluster_id)
        return link

    def send_request(
        self,
        link: Link,
        body: Request,
        response_class: type[R],
        handle: Callable[[R, float], None],
        handle_failure: Callable[[KafkaError, float], None],
        *,
        timeout: float | None = None,
    ) -> int:
        """Send a member's request over the link that `want_link` returned.

        See `InFlightRequests.send_request`.
        """

        def lost(error: KafkaError, now: float) -> None:
            self.handle_moved(str(error), now)
            handle_failure(error, now)

        return self._connections.requests.send_request(
            link,
            body,
            response_class,
            handle,
            lost,
            timeout=self._timeout if timeout is None else timeout,
        )

    # ---- in ----

    def handle_moved(self, reason: str, now: float) -> None:
        """Look for the coordinator again: the node is not the coordinator, or not reachable."""
        self._coordinators.handle_moved(CoordinatorKind.GROUP, self.group_id, reason, now)

    def handle_heartbeats_lost(self, error: KafkaError, now: float) -> None:
        """Look for the coordinator again after the link of a member's heartbeats was lost.

        The node is still the coordinator if it has only closed an idle connection.
        """
        if not isinstance(error, IdleConnectionError):
            self.handle_moved(str(error), now)

    def note_success(self, now: float) -> None:
        """Clear the group's trouble: the coordinator answered without an error."""
        self._connections.troubles.end_trouble(About.GROUP, now)

    def handle_error(self, code: int, now: float, what: str) -> bool:
        """Take an error code of the coordinator; return whether it has to be looked for again.

        Args:
            code: the error code.
            now: the time.
            what: the API.
        """
        if code in ERRORS and ERRORS[code].retriable:
            text = f"{what} in group {self.group_id!r}: {ERRORS[code].description}"
            self._connections.troubles.note(About.GROUP, broker_error(code, text), now)
        if code in MOVED:
            self.handle_moved(ERRORS[code].name, now)
            return True
        return False
