"""ListGroups: the groups that the asked broker coordinates."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_fast.protocol.apis.groups.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kafka_fast.testing.broker.acls import CLUSTER_NAME, Operation, ResourceType
from kafka_fast.testing.broker.groups.consumer import ConsumerGroup
from kafka_fast.testing.broker.groups.coordinator import Group
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers


@answers(ListGroupsRequest)
def answer(request: ReceivedRequest) -> ListGroupsResponse:
    """Return the groups that the user may see, in these states and of these types."""
    body: ListGroupsRequest = request.body
    planned = request.planned_error()
    if planned is not None:
        return ListGroupsResponse(error_code=planned.code)
    sees_all = request.allows(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
    listed = [
        _listed(group)
        for group in request.coordinator.groups_led(request.now)
        if sees_all or request.allows(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
    ]
    return ListGroupsResponse(
        groups=[
            one
            for one in listed
            if _is_one_of(one.group_state, body.states_filter)
            and _is_one_of(one.group_type, body.types_filter)
        ]
    )


def _is_one_of(name: str, names: Iterable[str]) -> bool:
    """Tell whether a filter lets a name through; an empty one does."""
    lowered = {one.lower() for one in names}
    return not lowered or name.lower() in lowered


def _listed(group: Group) -> ListedGroup:
    if isinstance(group, ConsumerGroup):
        return ListedGroup(
            group_id=group.group_id,
            protocol_type="consumer",
            group_state=group.state,
            group_type="consumer",
        )
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type="classic",
    )
