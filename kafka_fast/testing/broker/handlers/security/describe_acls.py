"""DescribeAcls: the rules that a filter lets through."""

from __future__ import annotations

from kafka_fast.errors import BrokerError
from kafka_fast.protocol.apis.security.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kafka_fast.testing.broker.acl_filters import (
    USER_PREFIX,
    check_known,
    matching_rules,
    pattern_of,
    permission_of,
)
from kafka_fast.testing.broker.acls import AclRule, Operation
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers


@answers(DescribeAclsRequest)
def answer(request: ReceivedRequest) -> DescribeAclsResponse:
    """Return the rules by resource."""
    check_known(request.body)
    planned = request.planned_error()
    if planned is not None:
        return DescribeAclsResponse(error_code=planned.code, error_message=None)
    try:
        rules = request.rights(Operation.DESCRIBE).rules
    except BrokerError as error:
        return DescribeAclsResponse(error_code=error.code, error_message=error.args[0])
    by_resource: dict[tuple[int, str, int], list[AclRule]] = {}
    for rule in matching_rules(rules, request.body):
        key = (rule.resource, rule.name, pattern_of(rule))
        by_resource.setdefault(key, []).append(rule)
    return DescribeAclsResponse(
        error_code=0,
        error_message=None,
        resources=[
            DescribeAclsResource(
                resource_type=kind,
                resource_name=name,
                pattern_type=pattern,
                acls=[_described(rule) for rule in its_rules],
            )
            for (kind, name, pattern), its_rules in by_resource.items()
        ],
    )


def _described(rule: AclRule) -> AclDescription:
    return AclDescription(
        principal=USER_PREFIX + rule.user,
        host=rule.host,
        operation=rule.operation,
        permission_type=permission_of(rule),
    )
