"""The faults of a world with an admin client: what brokers answer to changes, and who makes them.

A controller that moves is a fault of this world: with KRaft the embedded brokers take changes
anywhere, and all answers name the first broker that runs.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from kafka_fast.errors import (
    BrokerError,
    ClusterAuthorizationFailed,
    ErrorCode,
    NotController,
    NotLeaderOrFollower,
    PolicyViolation,
    RequestTimedOut,
    ThrottlingQuotaExceeded,
    UnknownServerError,
)
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.faults import Rule
from kafka_fast.testing.broker.versions import (
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    METADATA,
)
from tests.sim.worlds.admins.admin_plan import AdminPlan
from tests.sim.worlds.clock import Clock
from tests.sim.worlds.faults import FaultScript
from tests.sim.worlds.network import Network

CHANGES = (CREATE_TOPICS, DELETE_TOPICS)

REFUSED: tuple[type[BrokerError], ...] = (
    ClusterAuthorizationFailed,
    NotController,
    PolicyViolation,
    RequestTimedOut,
    UnknownServerError,
)
"""Nothing was done."""

DONE_ALL_THE_SAME: tuple[type[BrokerError], ...] = (RequestTimedOut, UnknownServerError)
"""The change is made although the answer is an error."""


class AdminFaults(FaultScript):
    """See `FaultScript`."""

    apis = (CREATE_TOPICS, METADATA, DELETE_TOPICS, DELETE_RECORDS)

    def __init__(
        self,
        clock: Clock,
        plan: AdminPlan,
        cluster: Cluster,
        network: Network,
        source: random.Random,
        log: Callable[[str], None],
    ) -> None:
        """Plan all strikes; see `FaultScript`."""
        self._controller: int | None = None
        self._not_controllers: list[Rule] = []
        super().__init__(clock, plan, cluster, network, source, log)
        for api in CHANGES:
            cluster.faults.script(api, partial(self._throttle_refusals, api))
        cluster.faults.script_metadata(self._name_controller)

    def _strikes(self) -> list[Callable[[], str]]:
        own = [
            self._refuse,
            self._do_and_refuse,
            self._exceed_quota,
            self._exceed_quota,
            self._move_controller,
            self._move_controller,
            self._refuse_records,
        ]
        return [*super()._strikes(), *own, *own]

    # ---- what brokers answer ----

    def _change(self) -> dict[str, Any]:
        """Return which changes a rule strikes."""
        where = self._where()
        if self._source.random() < 0.5:
            where["topic"] = self._source.choice(self._plan.topics).name
        return where

    def _refuse(self) -> str:
        error, api = self._source.choice(REFUSED), self._source.choice(CHANGES)
        self._cluster.faults.error(api, error, **self._change())
        return f"API {api} refused with {error.__name__}"

    def _do_and_refuse(self) -> str:
        error, api = self._source.choice(DONE_ALL_THE_SAME), self._source.choice(CHANGES)
        self._cluster.faults.error(api, error, applied=True, **self._change())
        return f"API {api} answered with {error.__name__} after the change"

    def _exceed_quota(self) -> str:
        api, count = self._source.choice(CHANGES), self._source.choice((1, 3, 10))
        self._cluster.faults.error(api, ThrottlingQuotaExceeded, count=count)
        return f"API {api} exceeds its quota {count} times"

    def _throttle_refusals(self, api: int, response: Any, node: int) -> None:
        """Say for how long to wait, as brokers do that refuse changes (KIP-599)."""
        results = response.topics if api == CREATE_TOPICS else response.responses
        if any(one.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED for one in results):
            longest = self._source.choice((50, 300, 300, 2_000))
            response.throttle_time_ms = self._source.randint(1, longest)

    def _refuse_records(self) -> str:
        error = self._source.choice((NotLeaderOrFollower, RequestTimedOut, PolicyViolation))
        self._cluster.faults.error(DELETE_RECORDS, error, **self._partition())
        return f"DeleteRecords refused with {error.__name__}"

    def _storm(self) -> str:
        """One to three kinds of failure that go on until all is healed."""
        faults, often = self._cluster.faults, self._plan.storm
        api = self._source.choice(CHANGES)
        kinds: list[Callable[[], object]] = [
            lambda: faults.error(api, RequestTimedOut, applied=True, probability=often),
            lambda: faults.error(api, ThrottlingQuotaExceeded, probability=often),
            lambda: faults.drop(api=api, applied=True, close=True, probability=often),
            lambda: faults.drop(api=api, applied=False, probability=often / 4),
            lambda: faults.delay(self._span(), probability=often),
            lambda: faults.cut(self._source.randrange(60), probability=often / 2),
        ]
        return f"storm of {self._unleash(kinds)} on API {api}"

    # ---- the controller ----

    def _move_controller(self) -> str:
        """Let another broker be the controller: the others refuse changes from now on."""
        live = [node.node_id for node in self._cluster.state.live_nodes]
        if not live:
            return "no node to be the controller"
        self._appoint(self._source.choice(live))
        return f"node {self._controller} is the controller"

    def _appoint(self, controller: int) -> None:
        self._controller = controller
        for rule in self._not_controllers:
            rule.cancel()
        self._not_controllers = [
            self._cluster.faults.error(api, NotController, node=node)
            for node in self._cluster.state.nodes
            if node != controller
            for api in CHANGES
        ]

    def _name_controller(self, response: Any, node: int) -> None:
        """Let metadata name the controller; one that is dead has a successor."""
        if self._controller is None:
            return
        live = [one.node_id for one in self._cluster.state.live_nodes]
        if self._controller not in live:
            self._appoint(live[0])
        response.controller_id = self._controller
