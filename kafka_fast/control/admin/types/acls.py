"""Who may do what: the vocabulary of Kafka's access control."""

from __future__ import annotations

from kafka_fast.control.admin.types.open_numbers import OpenNumber
from kafka_fast.errors import KafkaError
from kafka_fast.values import Value


class AclOperation(OpenNumber):
    """What is done to a resource."""

    UNKNOWN = 0
    ANY = 1
    """In filters only."""
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


NOT_ASKED = -(1 << 31)
"""What brokers answer that were not asked for operations, or do not know the question."""


def operations_of(bits: int) -> frozenset[AclOperation] | None:
    """Return the operations of a bit field; None: the broker did not say.

    A bit that this version has no name for is left out.
    """
    if bits == NOT_ASKED:
        return None
    return frozenset(one for one in AclOperation if bits >> one & 1)


class ResourceType(OpenNumber):
    """What a rule protects."""

    UNKNOWN = 0
    ANY = 1
    """In filters only."""
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    """Its name is `CLUSTER_NAME`."""
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7
    """Whom tokens may be created and described for. Needs Kafka 3.3 (KIP-373)."""


CLUSTER_NAME = "kafka-cluster"
"""The one name of a resource of the type CLUSTER."""


class PatternType(OpenNumber):
    """How the name of a rule stands for the names of resources."""

    UNKNOWN = 0
    ANY = 1
    """In filters only: rules with this very name, of both types."""
    MATCH = 2
    """In filters only: rules that apply to a resource of this name, also by prefix or "*"."""
    LITERAL = 3
    """The resource of this name; "*": all resources."""
    PREFIXED = 4
    """All resources whose name begins in this way."""


class AclPermissionType(OpenNumber):
    """Whether a rule allows or denies. What one rule denies, no other allows."""

    UNKNOWN = 0
    ANY = 1
    """In filters only."""
    DENY = 2
    ALLOW = 3


def _shown(resource_type: ResourceType, name: str | None, pattern_type: PatternType) -> str:
    """Return the resource of a rule or filter in words: "topic 'orders'"."""
    kind = resource_type.name.lower().replace("_", " ")
    resource = kind if name is None else f"{kind} {name!r}"
    is_plain = pattern_type == PatternType.LITERAL or name is None
    return resource if is_plain else f"{resource} ({pattern_type.name})"


class AclBinding(Value):
    """A rule: who may, or must not, do what to which resource."""

    resource_type: ResourceType
    name: str
    """Of the resource, or its prefix; "*" with LITERAL: all resources of the type."""
    principal: str
    """Whom the rule is about, as "User:alice"; "User:*": everybody."""
    operation: AclOperation
    permission: AclPermissionType = AclPermissionType.ALLOW
    host: str = "*"
    """The address from which the principal connects; "*": any address."""
    pattern_type: PatternType = PatternType.LITERAL
    """LITERAL or PREFIXED."""

    def __str__(self) -> str:
        """Return the rule in words: "ALLOW READ of topic 'orders' to User:alice from *"."""
        resource = _shown(self.resource_type, self.name, self.pattern_type)
        what = f"{self.permission.name} {self.operation.name} of {resource}"
        return f"{what} to {self.principal} from {self.host}"


class AclBindingFilter(Value):
    """Rules to describe or delete: those that match in all fields. Without fields all rules do."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    """None: any name."""
    principal: str | None = None
    """As "User:alice"; None: any principal. "User:*" finds rules about everybody only."""
    operation: AclOperation = AclOperation.ANY
    """ALL finds rules with ALL only."""
    permission: AclPermissionType = AclPermissionType.ANY
    host: str | None = None
    """None: any host. "*" finds rules with "*" only."""
    pattern_type: PatternType = PatternType.ANY

    def __str__(self) -> str:
        """Return the filter in words: "ANY READ of topic 'orders' (ANY) to User:alice"."""
        resource = _shown(self.resource_type, self.name, self.pattern_type)
        words = f"{self.permission.name} {self.operation.name} of {resource}"
        words += "" if self.principal is None else f" to {self.principal}"
        return words if self.host is None else f"{words} from {self.host}"


class DeletedAcl(Value):
    """A rule that matched a filter, and was to be deleted."""

    binding: AclBinding
    error: KafkaError | None = None
    """Why the rule is still there; None: it was deleted."""
