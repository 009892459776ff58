"""DeleteAcls: the rules that each filter lets through go, and are told."""

from __future__ import annotations

from kafka_fast.errors import BrokerError
from kafka_fast.protocol.apis.security.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
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


@answers(DeleteAclsRequest)
def answer(request: ReceivedRequest) -> DeleteAclsResponse:
    """Return one result for each filter, in their order."""
    body: DeleteAclsRequest = request.body
    for one in body.filters:
        check_known(one)
    return DeleteAclsResponse(filter_results=[_delete(request, one) for one in body.filters])


def _delete(request: ReceivedRequest, asked: DeleteAclsFilter) -> DeleteAclsFilterResult:
    planned = request.planned_error()
    if planned is not None and not planned.applied:
        return DeleteAclsFilterResult(error_code=planned.code, error_message=None)
    try:
        authorizer = request.rights(Operation.ALTER)
    except BrokerError as error:
        return DeleteAclsFilterResult(error_code=error.code, error_message=error.args[0])
    rules = matching_rules(authorizer.rules, asked)
    authorizer.remove_rules(rules)
    return DeleteAclsFilterResult(
        error_code=planned.code if planned is not None else 0,
        error_message=None,
        matching_acls=[_deleted(rule) for rule in rules],
    )


def _deleted(rule: AclRule) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=0,
        error_message=None,
        resource_type=rule.resource,
        resource_name=rule.name,
        pattern_type=pattern_of(rule),
        principal=USER_PREFIX + rule.user,
        host=rule.host,
        operation=rule.operation,
        permission_type=permission_of(rule),
    )
