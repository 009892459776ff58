"""What a handler gets and what it may give back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafka_fast.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    SecurityDisabled,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from kafka_fast.protocol.frame import RequestHeader
from kafka_fast.testing.broker.acls import (
    ANONYMOUS,
    CLUSTER_NAME,
    Authorizer,
    Operation,
    ResourceType,
)
from kafka_fast.testing.broker.faults import ErrorRule, Faults
from kafka_fast.testing.broker.groups.coordinator import Coordinator
from kafka_fast.testing.broker.sessions import FetchSessions
from kafka_fast.testing.broker.state import ClusterState
from kafka_fast.testing.broker.transactions.coordinator import TransactionCoordinator


class CloseConnectionError(Exception):
    """The answer is the end of the connection, as Kafka does when it cannot parse a request."""


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One decoded request at one broker."""

    node_id: int
    header: RequestHeader
    body: Any
    """The message class of the API."""
    now: float
    state: ClusterState
    faults: Faults
    sessions: FetchSessions
    """Of the asked broker."""
    coordinator: Coordinator
    """Of groups, on the asked broker."""
    transactions: TransactionCoordinator
    """On the asked broker."""
    user: str = ANONYMOUS
    """Who asks."""

    @property
    def version(self) -> int:
        """Return the version of the API that the client speaks."""
        return self.header.version

    def allows(self, operation: Operation, resource: ResourceType, name: str) -> bool:
        """Tell whether the user may do something."""
        authorizer = self.state.security.authorizer
        return authorizer is None or authorizer.allows(self.user, operation, resource, name)

    def allows_some(self, operation: Operation, resource: ResourceType) -> bool:
        """Tell whether the user may do something to any resource of a type."""
        authorizer = self.state.security.authorizer
        return authorizer is None or authorizer.allows_some(self.user, operation, resource)

    def rights(self, operation: Operation) -> Authorizer:
        """Return the cluster's rules to a user who may do that to the cluster.

        Raises:
            ClusterAuthorizationFailed, SecurityDisabled
        """
        authorizer = self.state.security.authorizer
        if authorizer is None:
            raise SecurityDisabled("No Authorizer is configured.")
        if not authorizer.allows(self.user, operation, ResourceType.CLUSTER, CLUSTER_NAME):
            raise ClusterAuthorizationFailed("Cluster authorization failed.")
        return authorizer

    def check_topic(self, operation: Operation, name: str) -> None:
        """Refuse a user who may not do that to a topic.

        Raises:
            TopicAuthorizationFailed
        """
        if not self.allows(operation, ResourceType.TOPIC, name):
            raise TopicAuthorizationFailed("Authorization failed.")

    def check_group(self, operation: Operation, group_id: str) -> None:
        """Refuse a user who may not do that to a group.

        Raises:
            GroupAuthorizationFailed
        """
        if not self.allows(operation, ResourceType.GROUP, group_id):
            raise GroupAuthorizationFailed("Group authorization failed.")

    def check_transactional_id(self, operation: Operation, transactional_id: str) -> None:
        """Refuse a user who may not do that with a transactional id.

        Raises:
            TransactionalIdAuthorizationFailed
        """
        if not self.allows(operation, ResourceType.TRANSACTIONAL_ID, transactional_id):
            raise TransactionalIdAuthorizationFailed("Transactional Id authorization failed.")

    def planned_error(
        self, topic: str | None = None, partition: int | None = None, *, exactly: bool = False
    ) -> ErrorRule | None:
        """Return the error that was ordered for this topic or partition (`Faults.take_error`)."""
        api_key = self.header.api_key
        return self.faults.take_error(self.node_id, api_key, topic, partition, exactly=exactly)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The answer comes later: when `retry` has one, at the latest at `deadline`."""

    deadline: float | None
    """None: whenever it has one."""
    retry: Callable[[float, bool], Any]  # (now, last chance) -> response or None


# A response, a Waiting, or None where the protocol has no response (Produce with acks=0).
Answer = Any
