"""The admin client's control plane: carries out operations. Sans-I/O.

    users' operations ──────────┐                     ┌─► commands for the data plane
    sockets, look-ups, time ────┼─► AdminControl ─────┼─► sockets and look-ups for the host
    events of the data plane ───┘                     └─► results, for the users

Beyond what every client's control plane does, it only starts operations, and ends those that ask
about topics that do not exist.

Thread: control, unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NoReturn, TypeVar

from kafka_fast.config import AdminSettings
from kafka_fast.control.admin.absent_topics import AbsentTopics
from kafka_fast.control.admin.operation import Operation, OperationResults
from kafka_fast.control.authentication.mechanism import Mechanism
from kafka_fast.control.client_control import ClientControl
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.control.diagnosis.waiting_reasons import reasons_of_several
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.controller_discovery import ControllerDiscovery
from kafka_fast.control.metadata.discovery import Discovery
from kafka_fast.control.metadata.metadata import ClusterChanges
from kafka_fast.control.requests.open_call import OpenCall
from kafka_fast.control.requests.targets import AnyNode, Controller, CoordinatorTarget, Leaders
from kafka_fast.errors import KafkaError, fresh_copy
from kafka_fast.logs import count_of, get_logger, some_of
from kafka_fast.values import assert_never

logger = get_logger("kafka_fast.admin")

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

TOPIC_IDLE = 10.0
"""Seconds for which the metadata of a topic are kept that no operation asks about."""


LOOKED_AT = 100
"""How many items are asked what they wait for. Of 50,000 this took seconds of an event loop."""


class RunningOperation:
    """An operation that was started, for its user's thread."""

    def __init__(self, opened: OpenCall[Any, Any]) -> None:
        """Take its call."""
        self._opened = opened

    def missing(self) -> Reason:
        """Return what the operation waits for. Any thread."""
        keys = list(self._opened)
        asked = ((str(key), self._opened.why_waiting(key)) for key in keys[:LOOKED_AT])
        return reasons_of_several(
            ((name, reason) for name, reason in asked if reason is not None),
            more=max(0, len(keys) - LOOKED_AT),
        )

    def give_up(self) -> None:
        """End it: nobody waits for its results any more. Control thread."""
        self._opened.cancel()


class AdminControl(ClientControl[AdminSettings, NoReturn, NoReturn]):
    """Policy of one admin client. Control thread only."""

    kind = "admin"
    logger = logger

    def __init__(
        self,
        settings: AdminSettings,
        client_id: str,
        random: Callable[[], float],
        wall_ms: Callable[[], int],
        mechanism: Mechanism | None = None,
    ) -> None:
        """Make the parts; no broker is contacted yet.

        Args:
            settings: the client's configuration.
            client_id: of all requests.
            random: returns a float in [0, 1).
            wall_ms: returns the Unix time in ms.
            mechanism: for the login over each connection; None: there is none.
        """
        cluster = Cluster(settings, random, max_idle=TOPIC_IDLE, allow_auto_create_topics=False)
        super().__init__(settings, client_id, random, wall_ms, cluster, mechanism=mechanism)
        self._absent = AbsentTopics(cluster, self.requester)
        self._open: dict[OpenCall[Any, Any], Operation[Any, Any]] = {}

    # ---- operations ----

    def run_operation(
        self,
        operation: Operation[K, V],
        deadline: float,
        done: Callable[[OperationResults[K, V] | KafkaError], None],
        now: float,
    ) -> RunningOperation | None:
        """Start an operation; None: it has failed at once.

        Args:
            operation: one that was not run before.
            deadline: when the items that are still open fail.
            done: called with the results, or with why this client cannot go on. Once.
            now: the time.
        """
        if self.fatal is not None:
            done(fresh_copy(self.fatal))
            return None
        if self.context.settings.uses_controllers and isinstance(operation.target, AnyNode):
            operation.target = Controller()  # others may be behind, or refuse (KIP-919)
        operation.begin(self.context.settings.request_timeout, done)
        opened = self.requester.open_call(operation, operation.items, deadline=deadline)
        self._open[opened] = operation
        if isinstance(operation.target, Leaders):
            leaders_call: OpenCall[Any, V] = opened
            self._absent.watch_operation(leaders_call, now)
        return RunningOperation(opened)

    def touch_topics(self, now: float) -> None:
        """Keep the metadata of the topics that operations wait for."""
        self._absent.touch_topics(now)

    # ---- what every client's control plane asks of its own parts ----

    def _discovery_class(self, settings: AdminSettings) -> type[Discovery]:
        return ControllerDiscovery if settings.uses_controllers else Discovery

    def _handle_changes(self, changes: ClusterChanges, now: float) -> None:
        """Do nothing: the requester reads the cluster itself."""

    def _tick(self, now: float) -> None:
        self._absent.tick(now)
        ended = [opened for opened in self._open if not opened.is_open]
        for operation in [self._open.pop(opened) for opened in ended]:
            self._release_coordinators(operation)

    def _release_coordinators(self, ended: Operation[Any, Any]) -> None:
        """Let go of the coordinators of an operation that has ended, or was given up.

        Otherwise the brokers would be asked for them as long as they know none, and those that are
        known would be remembered for good.
        """
        target = ended.target
        if not isinstance(target, CoordinatorTarget):
            return
        names = {target.name(item) for item in ended.items or ()}
        for opened in self._open:
            other = opened.call.target
            if isinstance(other, CoordinatorTarget) and other.kind is target.kind:
                names.difference_update(other.name(item) for item in opened)
        self.requester.coordinators.release_keys(target.kind, names)

    def _next_deadline(self) -> float:
        return self._absent.next_deadline()

    def _handle_own(self, event: NoReturn, now: float) -> None:
        assert_never(event)

    def _describe_own(self, now: float) -> list[str]:
        return [
            f"{opened.call.api}: {count_of(len(opened), 'item')} open "
            f"({some_of([str(key) for key in opened])})"
            for opened in list(self._open)
            if opened.is_open
        ]
