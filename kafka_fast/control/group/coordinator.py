"""The broker that coordinates a group: found, kept, and found again when it has moved.

    ask ─► known and linked? ─► request ─► answer
              │ no                            │ NOT_COORDINATOR, link lost
              └─► FindCoordinator over any link ◄──┘   (with a backoff)

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kafka_fast.config import CommonSettings
from kafka_fast.control.connection_key import ConnectionKey, Role
from kafka_fast.control.context import Context
from kafka_fast.control.instants import LONG_AGO, NEVER
from kafka_fast.control.link import Link
from kafka_fast.control.metadata import Node, is_address
from kafka_fast.control.troubles import About, Reason, late
from kafka_fast.errors import (
    ERRORS,
    ErrorCode,
    KafkaError,
    KafkaTimeoutError,
    ProtocolError,
    UnsupportedVersionError,
    broker_error,
    error_description,
)
from kafka_fast.logs import get_logger
from kafka_fast.protocol.apis.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafka_fast.protocol.apis.heartbeat import HeartbeatRequest
from kafka_fast.protocol.apis.join_group import JoinGroupRequest
from kafka_fast.protocol.apis.leave_group import LeaveGroupRequest
from kafka_fast.protocol.apis.offset_commit import OffsetCommitRequest
from kafka_fast.protocol.apis.offset_fetch import OffsetFetchRequest
from kafka_fast.protocol.apis.sync_group import SyncGroupRequest
from kafka_fast.protocol.schema import Request, Response

logger = get_logger("kafka_fast.group")

R = TypeVar("R", bound=Response)

NEEDED: tuple[type[Request], ...] = (
    JoinGroupRequest,
    SyncGroupRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    OffsetFetchRequest,
    OffsetCommitRequest,
)
"""Who offers less cannot coordinate groups: found out before anything is asked."""

GROUP = 0
FIRST_VERSION_WITH_KEYS = 4

MOVED = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})


class Coordinator:
    """The way to one group's coordinator. Control thread only."""

    def __init__(
        self,
        group_id: str,
        context: Context[CommonSettings],
        *,
        on_fatal: Callable[[KafkaError], None],
    ) -> None:
        """Begin without knowing it.

        Args:
            group_id: the group.
            context: the client's.
            on_fatal: called when there will be no coordinator for us: not authorized, bad group.
        """
        self.group_id = group_id
        self._settings = context.settings
        self._cluster = context.cluster
        self._links = context.links
        self._discovery = context.discovery
        self._backoff = context.backoff
        self._on_fatal = on_fatal
        self._node: Node | None = None
        self._wanted = False
        self._asking = False
        self._failures = 0
        self._ask_at = LONG_AGO
        self._checked = -1  # the last link that was seen to offer what a group needs

    # Getters

    @property
    def node(self) -> Node | None:
        """The coordinator, if it is known."""
        return self._node

    @property
    def link(self) -> Link | None:
        """The ready link to it, or None."""
        return None if self._node is None else self._links.link_to(_key(self._node))

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        if not self._wanted or self._asking or self._node is not None:
            return NEVER
        # Without any link the first one that opens brings the next tick.
        return self._ask_at if self._discovery.any_link() is not None else NEVER

    # Commands

    def want(self, now: float) -> Link | None:
        """Return the ready link to the coordinator; if there is none, work towards one."""
        self._wanted = True
        if self._node is None:
            self.tick(now)
            return None
        link = self.link
        if link is None:
            self._links.want(self._node, Role.COORDINATOR, now, self._cluster.cluster_id)
        elif link.id != self._checked:
            try:
                for needed in NEEDED:
                    link.versions.pick(needed)
            except UnsupportedVersionError as error:
                self._node = None
                self._give_up(error, now)
                return None
            self._checked = link.id
        return link

    def want_beside(self, now: float) -> Link | None:
        """Return a ready link to it on which nothing waits; if there is none, work towards one.

        None also while the coordinator is not known.
        """
        if self._node is None:
            return None
        key = self._links.request_key(self._node.id)
        link = self._links.link_to(key)
        if link is None:
            self._links.want(self._node, key.role, now, self._cluster.cluster_id)
        return link

    def ask(
        self,
        link: Link,
        body: Request,
        response_class: type[R],
        handle: Callable[[R, float], None],
        handle_failure: Callable[[KafkaError, float], None],
        *,
        timeout: float | None = None,
        max_version: int | None = None,
    ) -> int:
        """Send a request to the coordinator over the link that `want` returned; see `Questions`."""

        def lost(error: KafkaError, now: float) -> None:
            self.handle_moved(str(error), now)
            handle_failure(error, now)

        return self._links.questions.ask(
            link,
            body,
            response_class,
            handle,
            lost,
            timeout=self._settings.request_timeout if timeout is None else timeout,
            max_version=max_version,
        )

    def tick(self, now: float) -> None:
        """Ask for the coordinator if that is due."""
        if not self._wanted or self._asking or self._node is not None or now < self._ask_at:
            return
        link = self._discovery.any_link()
        if link is None:
            self._cluster.request_refresh("looking for a group's coordinator")
            return
        request = FindCoordinatorRequest(key_type=GROUP)
        try:
            version = link.versions.pick(FindCoordinatorRequest)
        except UnsupportedVersionError as error:
            self._give_up(error, now)
            return
        if version >= FIRST_VERSION_WITH_KEYS:
            request.coordinator_keys = [self.group_id]
        else:
            request.key = self.group_id
        self._asking = True
        self._links.questions.ask(
            link,
            request,
            FindCoordinatorResponse,
            self._handle_found,
            lambda error, then: self._retry(then),
            timeout=self._settings.request_timeout,
        )

    def handle_moved(self, reason: str, now: float) -> None:
        """The node that was the coordinator says it is not, or cannot be reached: look again."""
        if self._node is not None:
            logger.info("group %s: its coordinator is lost: %s", self.group_id, reason)
            self._node = None
            self._ask_at = now + self._backoff.delay(0)

    def handle_connect_failed(self, key: ConnectionKey, error: KafkaError, now: float) -> None:
        """A connection could not be opened; perhaps the coordinator's."""
        if self._node is not None and key == _key(self._node):
            self.handle_moved(str(error), now)

    def note_refusal(self, error: KafkaError, now: float) -> None:
        """Keep what the coordinator answers while it is asked again and again."""
        self._links.troubles.note(About.GROUP, error, now)

    def why_silent(self) -> Reason | None:
        """Return why it has not answered a question that stays open; None if that is not known.

        Any thread.
        """
        reason = self.silence()
        if reason is not None:
            return reason
        trouble = self._links.troubles.now(About.GROUP)
        if trouble is None:
            return None
        return Reason(f"its coordinator, {self._node}, answers {trouble}", trouble.error)

    def late(self, what: str) -> KafkaTimeoutError:
        """Return what a wait in vain for the coordinator raises, before it has been asked."""
        return late(what, self.why_silent())

    def note_success(self) -> None:
        """The coordinator does what it is asked."""
        self._links.troubles.clear(About.GROUP)

    def silence(self) -> Reason | None:
        """Return why it cannot be asked now; None if it can. Any thread."""
        node = self._node
        if node is None:
            troubles = self._links.troubles
            trouble = troubles.now(About.COORDINATOR) or troubles.now(About.GROUP)
            if trouble is not None:
                return Reason(f"it has no coordinator yet: {trouble}", trouble.error)
            return Reason("its coordinator is looked for")
        if self.link is not None:
            return None
        trouble = self._links.troubles.now(_key(node))
        if trouble is None:
            return Reason(f"no connection to its coordinator, {node}, yet")
        return Reason(f"no connection to its coordinator: {trouble}", trouble.error)

    def handle_error(self, code: int, now: float, what: str = "") -> bool:
        """Take an error of any answer of the coordinator's; whether to look for it again.

        Args:
            code: of the error.
            now: the time.
            what: was asked: the API.
        """
        if code in ERRORS and ERRORS[code].retriable:
            asked = f"{what} in " if what else ""
            text = f"{asked}group {self.group_id!r}: {ERRORS[code].description}"
            self.note_refusal(broker_error(code, text), now)
        if code in MOVED:
            self.handle_moved(ERRORS[code].name, now)
            return True
        return False

    # In

    def _handle_found(self, response: FindCoordinatorResponse, now: float) -> None:
        self._asking = False
        found = response.coordinators[0] if response.coordinators else response
        if found.error_code:
            words = found.error_message or error_description(found.error_code)
            text = f"coordinator of group {self.group_id!r}: {words}"
            refusal = broker_error(found.error_code, text)
            if refusal.retriable:
                self._links.troubles.note(About.COORDINATOR, refusal, now)
                self._retry(now)
            else:
                self._give_up(refusal, now)
            return
        if not is_address(found.host, found.port):
            error = ProtocolError(
                f"the coordinator of group {self.group_id!r} has no address that can be used: "
                f"node {found.node_id} at {found.host!r}, port {found.port}"
            )
            self._links.troubles.note(About.COORDINATOR, error, now)
            self._retry(now)
            return
        self._links.troubles.clear(About.COORDINATOR)
        self._failures = 0
        self._node = Node(found.node_id, found.host, found.port)
        logger.info("group %s: its coordinator is %s", self.group_id, self._node)
        self.want(now)

    def _give_up(self, error: KafkaError, now: float) -> None:
        """Tell that there is none; who wants it all the same has it asked for no sooner."""
        self._retry(now)
        self._wanted = False
        self._on_fatal(error)

    def _retry(self, now: float) -> None:
        self._asking = False
        self._ask_at = now + self._backoff.delay(self._failures)
        self._failures += 1


def _key(node: Node) -> ConnectionKey:
    """Return the key of the connection to a node as the group's coordinator."""
    return ConnectionKey(Role.COORDINATOR, node.id)
