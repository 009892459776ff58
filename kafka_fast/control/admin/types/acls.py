"""Who may do what: the vocabulary of Kafka's access control."""

from __future__ import annotations

import enum


class AclOperation(enum.IntEnum):
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
