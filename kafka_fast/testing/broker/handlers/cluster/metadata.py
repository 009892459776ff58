"""Metadata: brokers, topics, partitions and their leaders; may create a topic on the way."""

from __future__ import annotations

from kafka_fast.errors import (
    BrokerError,
    InvalidRequest,
    LeaderNotAvailable,
    UnknownTopicOrPartition,
)
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_fast.testing.broker.acls import CLUSTER_NAME, Operation, ResourceType
from kafka_fast.testing.broker.partitions.cluster_topics import (
    NO_LEADER,
    Partition,
    Topic,
    check_topic_name,
)
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers

_ALL_IF_EMPTY_VERSION = 0  # later versions ask for all topics with null
_IDS_FROM_VERSION = 12
_NO_ID = bytes(16)


@answers(MetadataRequest)
def answer(request: ReceivedRequest) -> MetadataResponse:
    """Return the picture of the cluster as this broker has it."""
    body: MetadataRequest = request.body
    state = request.state
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=n.node_id, host=n.host, port=n.port, rack=n.rack)
            for n in state.live_nodes
        ],
        cluster_id=state.cluster_id,
        controller_id=state.controller_id,
        topics=[],
    )
    wants_all = body.topics is None or (
        request.version == _ALL_IF_EMPTY_VERSION and not body.topics
    )
    if wants_all:
        response.topics = [
            _topic(request, topic)
            for name, topic in state.topics.items()
            if request.allows(Operation.DESCRIBE, ResourceType.TOPIC, name)
        ]
    else:
        different = {(asked.name, asked.topic_id): asked for asked in body.topics or ()}
        response.topics = [_asked_topic(request, asked) for asked in different.values()]
    return response


def _asked_topic(request: ReceivedRequest, asked: MetadataRequestTopic) -> MetadataResponseTopic:
    try:
        return _topic(request, _find(request, asked))
    except BrokerError as error:
        name = asked.name if asked.topic_id == _NO_ID else None
        if name is None and request.version < _IDS_FROM_VERSION:
            name = ""  # null came with the ids
        return MetadataResponseTopic(
            error_code=error.code, name=name, topic_id=asked.topic_id, partitions=[]
        )


def _find(request: ReceivedRequest, asked: MetadataRequestTopic) -> Topic:
    state = request.state
    if asked.name is None or asked.topic_id != _NO_ID:
        if request.version < _IDS_FROM_VERSION:
            raise InvalidRequest(f"topic ids in Metadata version {request.version}")
        topic_of_id = state.topic_by_id(asked.topic_id)
        request.check_topic(Operation.DESCRIBE, topic_of_id.name)
        return topic_of_id
    request.check_topic(Operation.DESCRIBE, asked.name)
    topic = state.topics.get(asked.name)
    if topic is not None:
        return topic
    check_topic_name(asked.name)
    # As in Kafka the topic exists only after this answer: clients have to ask again.
    if state.settings.auto_create and request.body.allow_auto_topic_creation:
        if not request.allows(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
            request.check_topic(Operation.CREATE, asked.name)
        state.add_topic(state.plan_topic(asked.name))
    raise UnknownTopicOrPartition(f"no topic {asked.name!r}")


def _topic(request: ReceivedRequest, topic: Topic) -> MetadataResponseTopic:
    planned = request.planned_error(topic.name)
    code = 0 if planned is None else planned.code
    return MetadataResponseTopic(
        error_code=code,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[] if code else [_partition(request, one) for one in topic.partitions],
    )


def _partition(request: ReceivedRequest, partition: Partition) -> MetadataResponsePartition:
    nodes = request.state.nodes
    planned = request.planned_error(partition.topic, partition.index, exactly=True)
    code = LeaderNotAvailable.code if partition.leader == NO_LEADER else 0
    return MetadataResponsePartition(
        error_code=code if planned is None else planned.code,
        partition_index=partition.index,
        leader_id=partition.leader if planned is None else NO_LEADER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=[replica for replica in partition.replicas if not nodes[replica].alive],
    )
