"""What a filter of DescribeAcls or DeleteAcls lets through, and rules as answers have them."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from kafka_fast.protocol.apis.security.delete_acls import DeleteAclsFilter
from kafka_fast.protocol.apis.security.describe_acls import DescribeAclsRequest
from kafka_fast.testing.broker.acls import ANY_NAME, AclRule
from kafka_fast.testing.broker.received_request import CloseConnectionError

DENY, ALLOW = 2, 3
USER_PREFIX = "User:"
"""Of principals: all that are known here are users."""
_ANY = 1


class PatternType(enum.IntEnum):
    """How a name stands for those of resources, with Kafka's numbers."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


def check_known(asked: DescribeAclsRequest | DeleteAclsFilter) -> None:
    """Refuse a filter with something unknown, as Kafka's parser does.

    Raises:
        CloseConnectionError
    """
    numbers = (
        asked.resource_type_filter,
        asked.pattern_type_filter,
        asked.operation,
        asked.permission_type,
    )
    if not all(number >= _ANY for number in numbers):
        raise CloseConnectionError("a filter of rules has UNKNOWN elements")


def pattern_of(rule: AclRule) -> int:
    """Return the type of a rule's pattern."""
    return PatternType.PREFIXED if rule.prefixed else PatternType.LITERAL


def permission_of(rule: AclRule) -> int:
    """Return whether a rule allows or denies."""
    return ALLOW if rule.allows else DENY


def matching_rules(
    rules: Iterable[AclRule], asked: DescribeAclsRequest | DeleteAclsFilter
) -> list[AclRule]:
    """Return the rules that a filter lets through."""
    return [
        rule
        for rule in rules
        if asked.resource_type_filter in (_ANY, rule.resource)
        and asked.principal_filter in (None, USER_PREFIX + rule.user)
        and asked.host_filter in (None, rule.host)
        and asked.operation in (_ANY, rule.operation)
        and asked.permission_type in (_ANY, permission_of(rule))
        and _matches_name(rule, asked.resource_name_filter, asked.pattern_type_filter)
    ]


def _matches_name(rule: AclRule, name: str | None, pattern: int) -> bool:
    if pattern in (PatternType.LITERAL, PatternType.PREFIXED) and pattern != pattern_of(rule):
        return False
    if name is None or name == rule.name:
        return True
    if pattern != PatternType.MATCH:
        return False
    return name.startswith(rule.name) if rule.prefixed else rule.name == ANY_NAME
