"""FindCoordinator: which broker coordinates a group, or a transactional id. Share groups have none.

The topic that decides it comes into being when the first one is asked for; as in Kafka that one is
told to ask again.
"""

from __future__ import annotations

from kafka_fast.errors import (
    BrokerError,
    CoordinatorNotAvailable,
    InvalidRequest,
    UnsupportedVersion,
)
from kafka_fast.protocol.apis.cluster.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.groups.settings import OFFSETS_TOPIC
from kafka_fast.testing.broker.partitions.coordinating import deciding_partition
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers
from kafka_fast.testing.broker.state import Node
from kafka_fast.testing.broker.transactions.settings import TRANSACTIONS_TOPIC

_SEVERAL_FROM_VERSION = 4
_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_SHARE_FROM_VERSION = 6
_REPLICAS = 3


@answers(FindCoordinatorRequest)
def answer(request: ReceivedRequest) -> FindCoordinatorResponse:
    """Return the coordinator of each key."""
    body: FindCoordinatorRequest = request.body
    if request.version >= _SEVERAL_FROM_VERSION:
        return FindCoordinatorResponse(
            coordinators=[_coordinator(request, key) for key in body.coordinator_keys]
        )
    coordinator = _coordinator(request, body.key)
    return FindCoordinatorResponse(
        error_code=coordinator.error_code,
        error_message=coordinator.error_message,
        node_id=coordinator.node_id,
        host=coordinator.host,
        port=coordinator.port,
    )


def _coordinator(request: ReceivedRequest, key: str) -> Coordinator:
    try:
        planned = request.planned_error()
        if planned is not None:
            return _nobody(key, planned.code)
        node = _find(request, key)
    except BrokerError as error:
        return _nobody(key, error.code)
    return Coordinator(key=key, node_id=node.node_id, host=node.host, port=node.port)


def _find(request: ReceivedRequest, key: str) -> Node:
    state, kind = request.state, request.body.key_type
    if kind == _SHARE and request.version < _SHARE_FROM_VERSION:
        raise InvalidRequest("share groups came with version 6")
    if kind == _GROUP:
        request.check_group(Operation.DESCRIBE, key)
    if kind == _TRANSACTION:
        request.check_transactional_id(Operation.DESCRIBE, key)
    if kind == _SHARE:
        raise UnsupportedVersion("the embedded broker coordinates no share groups")
    if kind not in (_GROUP, _TRANSACTION):
        raise InvalidRequest(f"no coordinators of kind {kind}")
    topic, count = OFFSETS_TOPIC, state.settings.groups.offsets_partitions
    if kind == _TRANSACTION:
        topic, count = TRANSACTIONS_TOPIC, state.settings.transactions.partitions
    partition = deciding_partition(state.topics, topic, key)
    if partition is None:
        replicas = min(_REPLICAS, len(state.live_nodes))
        state.add_topic(state.plan_topic(topic, count, replicas))
        raise CoordinatorNotAvailable(f"{topic} is being made")
    node = state.nodes.get(partition.leader)
    if node is None or not node.alive:
        raise CoordinatorNotAvailable(f"nobody leads {topic}-{partition.index}")
    return node


def _nobody(key: str, code: int) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code)
