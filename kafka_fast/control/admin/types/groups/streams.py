"""Streams groups with their tasks, as their coordinators describe them (KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafka_fast.control.admin.types.acls import AclOperation
from kafka_fast.control.admin.types.groups.listings import GroupState
from kafka_fast.control.admin.types.groups.topologies import (
    StreamsTopology,
    StreamsTopologyStatus,
)
from kafka_fast.values import Value


class StreamsTask(NamedTuple):
    """A task: one partition of a part of the topology."""

    subtopology_id: str
    partition: int


class StreamsTasks(Value):
    """The tasks that a member has, or shall have."""

    active: frozenset[StreamsTask]
    """Those that it works on."""
    standby: frozenset[StreamsTask]
    """Those of which it keeps a copy of the state."""
    warmup: frozenset[StreamsTask]
    """Those whose state it restores, to take them over."""


class StreamsMemberDescription(Value):
    """A member of a streams group."""

    member_id: str
    member_epoch: int
    """The epoch of the assignment that it has."""
    instance_id: str | None
    """group.instance.id; None: it is no static member."""
    rack_id: str | None
    """client.rack; None: it has none."""
    client_id: str
    host: str
    """The address that its requests come from, as the broker writes it: "/10.0.0.7"."""
    topology_epoch: int
    """The epoch of the topology that it has."""
    process_id: str
    """Members of one process have the same."""
    endpoint: tuple[str, int] | None
    """Host and port for interactive queries (application.server); None: it has none."""
    client_tags: Mapping[str, str]
    """What standby tasks are spread by."""
    task_offsets: Mapping[StreamsTask, int]
    """The sum of the offsets in the changelogs up to which it has restored each task's state."""
    task_end_offsets: Mapping[StreamsTask, int]
    """The sum of the ends of these changelogs."""
    assignment: StreamsTasks
    target_assignment: StreamsTasks
    """What it is to have, which others may have to give up first."""
    is_classic: bool
    """It speaks the classic protocol: the group is being upgraded."""


class StreamsInternalTopic(Value):
    """A topic that the group's coordinator creates."""

    name: str
    partition_count: int
    """0: the coordinator computes it."""
    replication_factor: int
    """0: the cluster's default."""
    configs: Mapping[str, str]
    """The topic's configuration."""


class StreamsSubtopology(Value):
    """A part of the topology whose tasks can be spread."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    """The topics that it reads."""
    repartition_sink_topics: tuple[str, ...]
    """The topics through which it passes records on to other parts."""
    state_changelog_topics: tuple[StreamsInternalTopic, ...]
    repartition_source_topics: tuple[StreamsInternalTopic, ...]
    """The topics through which other parts pass records on to it."""


class StreamsGroupDescription(Value):
    """A streams group."""

    group_id: str
    state: GroupState
    group_epoch: int
    """Counts the changes of members and topology."""
    assignment_epoch: int
    """The epoch for which the members were assigned tasks."""
    topology_epoch: int | None
    """Counts the topologies; None: the group has none yet."""
    subtopologies: tuple[StreamsSubtopology, ...] | None
    """The parts of the topology; None: it has none yet, or one that is not valid."""
    members: tuple[StreamsMemberDescription, ...]
    coordinator: int
    """Id of the broker that coordinates it."""
    assignor: str | None = None
    """The name of the assignor; None: the brokers are older than that (KIP-1357)."""
    authorized_operations: frozenset[AclOperation] | None = None
    """What this client may do with the group; None: not asked for."""
    topology_description: StreamsTopology | None = None
    """The application's topology in full (KIP-1331); None: the status says why."""
    topology_description_status: StreamsTopologyStatus = StreamsTopologyStatus.NOT_REQUESTED
    """Whether the topology is described."""
