"""The operation that describes streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable

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
from kafka_fast.protocol.apis.streams_groups import streams_group_describe as streams


class DescribeStreamsGroups(DescribeByCoordinators[StreamsGroupDescription]):
    """StreamsGroupDescribe: groups of KIP-1071."""

    name = "describe_streams_groups"
    permission = "DESCRIBE on the group, and on the topics of its topology"
    since = "4.1"
    request_class = streams.StreamsGroupDescribeRequest
    response_class = streams.StreamsGroupDescribeResponse

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
