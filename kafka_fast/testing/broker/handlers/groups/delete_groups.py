"""DeleteGroups: groups without members go, with what they have committed."""

from __future__ import annotations

from kafka_fast.errors import BrokerError, NonEmptyGroup
from kafka_fast.protocol.apis.groups.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers


@answers(DeleteGroupsRequest)
def answer(request: ReceivedRequest) -> DeleteGroupsResponse:
    """Return one result for each group."""
    body: DeleteGroupsRequest = request.body
    names = dict.fromkeys(body.groups_names)
    return DeleteGroupsResponse(results=[_delete(request, name) for name in names])


def _delete(request: ReceivedRequest, group_id: str) -> DeletableGroupResult:
    planned = request.planned_error()
    if planned is not None and not planned.applied:
        return DeletableGroupResult(group_id=group_id, error_code=planned.code)
    try:
        request.check_group(Operation.DELETE, group_id)
        request.coordinator.check_named(group_id, request.now)
        group = request.coordinator.group(group_id)
        if not group.is_empty:
            raise NonEmptyGroup(f"Group {group_id} is not empty.")
    except BrokerError as error:
        return DeletableGroupResult(
            group_id=group_id, error_code=error.code, error_message=error.args[0]
        )
    request.coordinator.delete_group(group_id)
    code = planned.code if planned is not None else 0
    return DeletableGroupResult(group_id=group_id, error_code=code)
