"""CreateAcls: each rule by itself; one that is there already is no error."""

from __future__ import annotations

from kafka_fast.errors import BrokerError, InvalidRequest
from kafka_fast.protocol.apis.security.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kafka_fast.testing.broker.acl_filters import (
    ALLOW,
    DENY,
    USER_PREFIX,
    PatternType,
)
from kafka_fast.testing.broker.acls import CLUSTER_NAME, AclRule, Operation, ResourceType
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers


@answers(CreateAclsRequest)
def answer(request: ReceivedRequest) -> CreateAclsResponse:
    """Return one result for each rule, in their order."""
    body: CreateAclsRequest = request.body
    return CreateAclsResponse(results=[_create(request, one) for one in body.creations])


def _create(request: ReceivedRequest, asked: AclCreation) -> AclCreationResult:
    planned = request.planned_error()
    if planned is not None and not planned.applied:
        return AclCreationResult(error_code=planned.code, error_message=None)
    try:
        request.rights(Operation.ALTER).add_rules([_rule(asked)])
    except BrokerError as error:
        return AclCreationResult(error_code=error.code, error_message=error.args[0])
    code = planned.code if planned is not None else 0
    return AclCreationResult(error_code=code, error_message=None)


def _rule(asked: AclCreation) -> AclRule:
    """Return the rule.

    Raises:
        InvalidRequest: it is none. Principals that are no users are refused, which Kafka takes.
    """
    name = asked.resource_name
    if asked.resource_type not in ResourceType.__members__.values():
        raise InvalidRequest(f"Invalid resourceType {asked.resource_type}")
    if asked.resource_type == ResourceType.CLUSTER and name != CLUSTER_NAME:
        raise InvalidRequest(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not name:
        raise InvalidRequest("Resource name should not be empty")
    if asked.resource_pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise InvalidRequest(f"Invalid patternType {asked.resource_pattern_type}")
    if asked.operation not in Operation.__members__.values():
        raise InvalidRequest(f"Invalid operation type {asked.operation}")
    if asked.permission_type not in (DENY, ALLOW):
        raise InvalidRequest(f"Invalid permissionType {asked.permission_type}")
    if not asked.principal.startswith(USER_PREFIX):
        raise InvalidRequest(f"Could not parse principal from `{asked.principal}`")
    return AclRule(
        asked.principal.removeprefix(USER_PREFIX),
        Operation(asked.operation),
        ResourceType(asked.resource_type),
        name,
        prefixed=asked.resource_pattern_type == PatternType.PREFIXED,
        allows=asked.permission_type == ALLOW,
        host=asked.host,
    )
