"""Who may do what: rules as Kafka's StandardAuthorizer reads them.

A rule names a principal, a resource (or all whose name begins in the same way) and an operation.
A rule that denies beats all that allow. What no rule allows is denied, but to super users.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ANONYMOUS = "ANONYMOUS"
"""The user of a connection without authentication."""
ANY_NAME = "*"
ANY_HOST = "*"
CLIENTS_HOST = "127.0.0.1"
"""From where all clients connect."""
CLUSTER_NAME = "kafka-cluster"
"""The one name that a resource of type CLUSTER has."""


class ResourceType(enum.IntEnum):
    """What a rule is about, with Kafka's numbers."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(enum.IntEnum):
    """What is done to it, with Kafka's numbers."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


# Whoever is allowed one of these is allowed the operation that implies them, too.
_IMPLIED_BY = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}


@dataclass(frozen=True, slots=True)
class AclRule:
    """One rule."""

    user: str
    """Without "User:"; ANY_NAME: all."""
    operation: Operation
    resource: ResourceType
    name: str
    """ANY_NAME: all of the type."""
    prefixed: bool = False
    """All names that begin with `name`."""
    allows: bool = True
    """False: denies."""
    host: str = ANY_HOST
    """From where the user connects; ANY_HOST: from anywhere."""

    def is_about(self, user: str, resource: ResourceType, name: str) -> bool:
        """Tell whether the rule concerns a user and a resource."""
        if self.resource is not resource or self.user not in (user, ANY_NAME):
            return False
        if self.host not in (ANY_HOST, CLIENTS_HOST):
            return False
        if self.prefixed:
            return name.startswith(self.name)
        return self.name in (name, ANY_NAME)

    def covers(self, operation: Operation) -> bool:
        """Tell whether the rule decides on an operation."""
        if self.operation in (Operation.ALL, operation):
            return True
        return self.allows and self.operation in _IMPLIED_BY.get(operation, ())

    def contains(self, other: AclRule) -> bool:
        """Tell whether the rule is about every resource that `other` is about."""
        if self.prefixed:
            return other.name.startswith(self.name)
        return self.name == ANY_NAME or (self.name == other.name and not other.prefixed)


def acl_rules(
    user: str,
    operations: Iterable[str],
    *,
    topic: str | None = None,
    group: str | None = None,
    cluster: bool = False,
    transactional_id: str | None = None,
    prefixed: bool = False,
    allows: bool = True,
) -> list[AclRule]:
    """Return a rule for each operation on each resource that is given.

    Args:
        user: a name without "User:", or "*".
        operations: READ, WRITE, CREATE, …: the names of `Operation`.
        topic: a topic's name, or "*".
        group: a group's id, or "*".
        cluster: whether it is about the cluster.
        transactional_id: a producer's, or "*".
        prefixed: the names are how names begin.
        allows: False: the operations are denied.

    Raises:
        ValueError: there is no such operation, or no resource is given.
    """
    named = {
        ResourceType.TOPIC: topic,
        ResourceType.GROUP: group,
        ResourceType.TRANSACTIONAL_ID: transactional_id,
    }
    unknown = [one for one in operations if one not in Operation.__members__]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not one of {', '.join(Operation.__members__)}")
    chosen = [Operation[one] for one in operations]
    rules = [
        AclRule(user, operation, resource, name, prefixed, allows)
        for resource, name in named.items()
        if name is not None
        for operation in chosen
    ]
    if cluster:
        on_cluster = (ResourceType.CLUSTER, CLUSTER_NAME, False, allows)
        rules += [AclRule(user, operation, *on_cluster) for operation in chosen]
    if not rules:
        raise ValueError("name what it is about: topic, group, cluster or transactional_id")
    return rules


class Authorizer:
    """The rules of one cluster."""

    def __init__(self, super_users: Iterable[str]) -> None:
        """Start without rules: only super users may do anything."""
        self._super_users = frozenset(super_users)
        self._rules: list[AclRule] = []

    @property
    def rules(self) -> Sequence[AclRule]:
        """All rules, the oldest first."""
        return tuple(self._rules)

    def add_rules(self, rules: Iterable[AclRule]) -> None:
        """Add rules, which hold from now on."""
        self._rules.extend(rule for rule in dict.fromkeys(rules) if rule not in self._rules)

    def remove_rules(self, rules: Iterable[AclRule]) -> None:
        """Remove rules that are there."""
        for rule in rules:
            self._rules.remove(rule)

    def allows(self, user: str, operation: Operation, resource: ResourceType, name: str) -> bool:
        """Tell whether a user may do something to a resource."""
        if user in self._super_users:
            return True
        matching = [
            rule
            for rule in self._rules
            if rule.is_about(user, resource, name) and rule.covers(operation)
        ]
        return bool(matching) and all(rule.allows for rule in matching)

    def allows_some(self, user: str, operation: Operation, resource: ResourceType) -> bool:
        """Tell whether a user may do something to any resource of a type."""
        if user in self._super_users:
            return True
        matching = [
            rule
            for rule in self._rules
            if rule.resource is resource
            and rule.user in (user, ANY_NAME)
            and rule.operation in (Operation.ALL, operation)
        ]
        denials = [rule for rule in matching if not rule.allows]
        return any(
            rule.allows and not any(denial.contains(rule) for denial in denials)
            for rule in matching
        )
