"""JoinGroup: enter the next generation of a classic group; answered when all have come."""

from __future__ import annotations

from kafka_fast.errors import (
    BrokerError,
    GroupIdNotFound,
    InvalidSessionTimeout,
    UnknownMemberId,
)
from kafka_fast.protocol.apis.groups.join_group import JoinGroupRequest, JoinGroupResponse
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.groups.classic import Join
from kafka_fast.testing.broker.groups.host import Reply
from kafka_fast.testing.broker.received_request import ReceivedRequest, Waiting
from kafka_fast.testing.broker.registry import answers

_TIMEOUT_FROM_VERSION = 1  # before, the session timeout is also the rebalance timeout
_KNOWN_ID_FROM_VERSION = 4  # KIP-394
_NULL_PROTOCOL_FROM_VERSION = 7
_SKIPPED_FROM_VERSION = 9  # KIP-814


@answers(JoinGroupRequest)
def answer(request: ReceivedRequest) -> JoinGroupResponse | Waiting:
    """Let a member join; the answer waits for the others."""
    planned = request.planned_error()
    if planned is not None:
        return _refused(request, planned.code)
    try:
        reply = _join(request)
    except BrokerError as error:
        return _refused(request, error.code)
    return reply.response or Waiting(None, lambda now, last_chance: reply.response)


def _join(request: ReceivedRequest) -> Reply[JoinGroupResponse]:
    body: JoinGroupRequest = request.body
    coordinator = request.coordinator
    request.check_group(Operation.READ, body.group_id)
    coordinator.check_named(body.group_id, request.now)
    settings = coordinator.settings
    least, most = settings.min_session_timeout_ms, settings.max_session_timeout_ms
    if not least <= body.session_timeout_ms <= most:
        raise InvalidSessionTimeout(f"{body.session_timeout_ms} ms is not {least} to {most}")
    coordinator.make_room_for_classic(body.group_id)
    try:
        group = coordinator.classic(body.group_id, create=not body.member_id)
    except GroupIdNotFound as error:
        raise UnknownMemberId(f"no group {body.group_id!r}") from error
    first_named = {one.name: one.metadata for one in reversed(body.protocols)}
    join = Join(
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        client_id=request.header.client_id,
        rebalance_timeout_ms=(
            body.rebalance_timeout_ms
            if request.version >= _TIMEOUT_FROM_VERSION
            else body.session_timeout_ms
        ),
        session_timeout_ms=body.session_timeout_ms,
        protocol_type=body.protocol_type,
        protocols=list(reversed(first_named.items())),
        needs_known_id=request.version >= _KNOWN_ID_FROM_VERSION,
        may_skip_assignment=request.version >= _SKIPPED_FROM_VERSION,
    )
    return group.join(join, request.now)


def _refused(request: ReceivedRequest, code: int) -> JoinGroupResponse:
    name = None if request.version >= _NULL_PROTOCOL_FROM_VERSION else ""
    return JoinGroupResponse(error_code=code, protocol_name=name, member_id=request.body.member_id)
