"""Operations on streams groups (KIP-1071): describe them, and what they have committed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafka_fast.control.admin.operations.groups.committed import (
    AlterGroupOffsets,
    DeleteGroupOffsets,
    ListGroupOffsets,
)
from kafka_fast.control.admin.operations.groups.descriptions import DescribeByCoordinators
from kafka_fast.control.admin.types.acls import operations_of
from kafka_fast.control.admin.types.groups.listings import GroupState
from kafka_fast.control.admin.types.groups.streams import (
    StreamsGroupDescription,
    StreamsInternalTopic,
    StreamsMemberDescription,
    StreamsSubtopology,
    StreamsTask,
    StreamsTasks,
)
from kafka_fast.control.admin.types.groups.topologies import (
    StreamsGlobalStore,
    StreamsTopology,
    StreamsTopologyNode,
    StreamsTopologyNodeType,
    StreamsTopologyPart,
    StreamsTopologyStatus,
)
from kafka_fast.errors import KafkaError, UnsupportedVersionError
from kafka_fast.protocol.apis.streams_groups import streams_group_describe as streams
from kafka_fast.protocol.schema import Request

FIRST_DESCRIBE_WITH_TOPOLOGY = 1


class DescribeStreamsGroups(DescribeByCoordinators[StreamsGroupDescription]):
    """StreamsGroupDescribe: groups of KIP-1071."""

    name = "describe_streams_groups"
    permission = "DESCRIBE on the group, and on the topics of its topology"
    since = "4.1"
    request_class = streams.StreamsGroupDescribeRequest
    response_class = streams.StreamsGroupDescribeResponse

    def __init__(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool,
        include_topology_description: bool = False,
    ) -> None:
        """Take which groups are described.

        Args:
            groups: their ids.
            include_authorized_operations: whether to ask what this client may do with them.
            include_topology_description: whether to ask for their topologies in full.
        """
        super().__init__(groups, include_authorized_operations=include_authorized_operations)
        self._include_topology = include_topology_description

    def unsupported(self, item: str, version: int) -> KafkaError | None:
        """Refuse to ask for topologies if the broker keeps none."""
        if self._include_topology and version < FIRST_DESCRIBE_WITH_TOPOLOGY:
            return UnsupportedVersionError(
                f"{self.describe(item)}: topologies are described in full since Kafka 4.4 "
                "(KIP-1331)"
            )
        return None

    def build(self, items: Sequence[str], version: int) -> Request:
        """Ask for the groups."""
        request = streams.StreamsGroupDescribeRequest(
            group_ids=list(items), include_authorized_operations=self._include_operations
        )
        if version >= FIRST_DESCRIBE_WITH_TOPOLOGY:
            request.include_topology_description = self._include_topology
        return request

    def description_of(
        self, group: streams.DescribedGroup, coordinator: int
    ) -> StreamsGroupDescription:
        """Return a streams group."""
        topology = group.topology
        parts = None if topology is None else topology.subtopologies
        return StreamsGroupDescription(
            group_id=group.group_id,
            state=GroupState(group.group_state),
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            topology_epoch=None if topology is None else topology.epoch,
            subtopologies=None if parts is None else tuple(_subtopology(part) for part in parts),
            members=tuple(_streams_member(member) for member in group.members),
            coordinator=coordinator,
            assignor=group.assignor_name,
            authorized_operations=operations_of(group.authorized_operations),
            topology_description=_topology(group.topology_description),
            topology_description_status=StreamsTopologyStatus(group.topology_description_status),
        )


def _topology(told: streams.TopologyDescription | None) -> StreamsTopology | None:
    if told is None:
        return None
    return StreamsTopology(
        tuple(
            StreamsTopologyPart(part.subtopology_id, _topology_nodes(part.nodes))
            for part in told.subtopologies
        ),
        tuple(
            StreamsGlobalStore(*_topology_nodes([store.source, store.processor]))
            for store in told.global_stores
        ),
    )


def _topology_nodes(
    nodes: Sequence[streams.TopologyDescriptionNode],
) -> tuple[StreamsTopologyNode, ...]:
    """Return nodes that are connected; the answer has only whom each passes records on to."""
    predecessors: dict[str, set[str]] = {node.name: set() for node in nodes}
    for node in nodes:
        for successor in node.successors:
            predecessors.setdefault(successor, set()).add(node.name)
    return tuple(
        StreamsTopologyNode(
            node.name,
            StreamsTopologyNodeType(node.node_type),
            frozenset(predecessors[node.name]),
            frozenset(node.successors),
            frozenset(node.source_topics),
            node.sink_topic,
            frozenset(node.stores),
        )
        for node in nodes
    )


def _subtopology(part: streams.Subtopology) -> StreamsSubtopology:
    return StreamsSubtopology(
        part.subtopology_id,
        tuple(part.source_topics),
        tuple(part.repartition_sink_topics),
        tuple(_internal_topic(topic) for topic in part.state_changelog_topics),
        tuple(_internal_topic(topic) for topic in part.repartition_source_topics),
    )


def _internal_topic(topic: streams.TopicInfo) -> StreamsInternalTopic:
    configs = {config.key: config.value for config in topic.topic_configs}
    return StreamsInternalTopic(topic.name, topic.partitions, topic.replication_factor, configs)


def _streams_member(member: streams.Member) -> StreamsMemberDescription:
    endpoint = member.user_endpoint
    return StreamsMemberDescription(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        client_tags={tag.key: tag.value for tag in member.client_tags},
        task_offsets=_offsets_of_tasks(member.task_offsets),
        task_end_offsets=_offsets_of_tasks(member.task_end_offsets),
        assignment=_tasks(member.assignment),
        target_assignment=_tasks(member.target_assignment),
        is_classic=member.is_classic,
    )


def _tasks(assignment: streams.Assignment) -> StreamsTasks:
    return StreamsTasks(
        _task_ids(assignment.active_tasks),
        _task_ids(assignment.standby_tasks),
        _task_ids(assignment.warmup_tasks),
    )


def _task_ids(tasks: Iterable[streams.TaskIds]) -> frozenset[StreamsTask]:
    return frozenset(
        StreamsTask(task.subtopology_id, partition)
        for task in tasks
        for partition in task.partitions
    )


def _offsets_of_tasks(tasks: Iterable[streams.TaskOffset]) -> dict[StreamsTask, int]:
    return {StreamsTask(task.subtopology_id, task.partition): task.offset for task in tasks}


# ---- offsets ----


class ListStreamsGroupOffsets(ListGroupOffsets):
    """OffsetFetch: what streams groups have committed."""

    name = "list_streams_group_offsets"
    since = "4.1"


class AlterStreamsGroupOffsets(AlterGroupOffsets):
    """OffsetCommit, in place of a streams group that has no members."""

    name = "alter_streams_group_offsets"
    since = "4.1"


class DeleteStreamsGroupOffsets(DeleteGroupOffsets):
    """OffsetDelete: forget what a streams group has committed."""

    name = "delete_streams_group_offsets"
    since = "4.1"
