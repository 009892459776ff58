"""Calls whose user wants the results of all items at once, to each kind of target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, get_args

import pytest

from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.metadata.metadata import Node
from kafka_fast.control.requests import targets
from kafka_fast.control.requests.call import ONLY, AnswerSource, CollectingCall, Results
from kafka_fast.control.requests.meanings import Done, Meaning, meaning_of
from kafka_fast.control.requests.targets import (
    AllNodes,
    AnyNode,
    Controller,
    Coordinator,
    CoordinatorKind,
    CoordinatorOfEach,
    Leaders,
    OneNode,
    Target,
)
from kafka_fast.errors import ErrorCode, KafkaError, KafkaTimeoutError, TopicAlreadyExists
from kafka_fast.protocol.apis.cluster.find_coordinator import (
    Coordinator as FoundCoordinator,
)
from kafka_fast.protocol.apis.cluster.find_coordinator import FindCoordinatorResponse
from kafka_fast.protocol.apis.configs import describe_configs
from kafka_fast.protocol.apis.groups import describe_groups
from kafka_fast.protocol.apis.records import list_offsets
from kafka_fast.protocol.apis.topics import create_topics
from kafka_fast.protocol.schema import Request
from kafka_fast.types import TopicPartition
from tests.unit.control.requests.rig import RequesterRig, request_of

GROUP = CoordinatorKind.GROUP
PARTITIONS = [TopicPartition("t", 0), TopicPartition("t", 1)]
NODES = [Node(1, "one", 9092), Node(2, "two", 9092)]

TARGETS: list[Target[Any]] = [
    AnyNode(),
    Controller(),
    OneNode(1),
    AllNodes(),
    Leaders(),
    Coordinator(GROUP, "g"),
    CoordinatorOfEach(GROUP),
]


# What an admin client needs: rows of what to send, and what an answer means.


class CreateTopics(CollectingCall[str, int]):
    """To the controller."""

    request_class = create_topics.CreateTopicsRequest
    response_class = create_topics.CreateTopicsResponse
    is_repeatable = False

    def build(self, items: Sequence[str], version: int) -> Request:
        topics = [
            create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            for name in items
        ]
        return create_topics.CreateTopicsRequest(topics=topics)

    def read(
        self, answer: Any, items: Sequence[str], source: AnswerSource
    ) -> Iterable[tuple[str, Meaning[int]]]:
        for topic in answer.topics:
            code = topic.error_code
            about = f" of {topic.name}"
            yield topic.name, meaning_of(code, self.api, about) if code else Done(0)


class DescribeGroups(CollectingCall[str, str]):
    """To the coordinator of each group."""

    request_class = describe_groups.DescribeGroupsRequest
    response_class = describe_groups.DescribeGroupsResponse

    def build(self, items: Sequence[str], version: int) -> Request:
        return describe_groups.DescribeGroupsRequest(groups=list(items))

    def read(
        self, answer: Any, items: Sequence[str], source: AnswerSource
    ) -> Iterable[tuple[str, Meaning[str]]]:
        return [(group.group_id, Done(group.group_state)) for group in answer.groups]


class ListOffsets(CollectingCall[TopicPartition, int]):
    """To the leaders."""

    request_class = list_offsets.ListOffsetsRequest
    response_class = list_offsets.ListOffsetsResponse

    def build(self, items: Sequence[TopicPartition], version: int) -> Request:
        topics = [
            list_offsets.ListOffsetsTopic(
                name=topic,
                partitions=[
                    list_offsets.ListOffsetsPartition(partition_index=number, timestamp=-1)
                ],
            )
            for topic, number in items
        ]
        return list_offsets.ListOffsetsRequest(replica_id=-1, topics=topics)

    def read(
        self, answer: Any, items: Sequence[TopicPartition], source: AnswerSource
    ) -> Iterable[tuple[TopicPartition, Meaning[int]]]:
        for topic in answer.topics:
            for part in topic.partitions:
                yield TopicPartition(topic.name, part.partition_index), Done(part.offset)


class DescribeBrokers(CollectingCall[int, str]):
    """To all nodes."""

    request_class = describe_configs.DescribeConfigsRequest
    response_class = describe_configs.DescribeConfigsResponse

    def build(self, items: Sequence[int], version: int) -> Request:
        resources = [
            describe_configs.DescribeConfigsResource(resource_type=4, resource_name=str(node_id))
            for node_id in items
        ]
        return describe_configs.DescribeConfigsRequest(resources=resources)

    def read(
        self, answer: Any, items: Sequence[int], source: AnswerSource
    ) -> Iterable[tuple[int, Meaning[str]]]:
        return [
            (int(result.resource_name), Done(result.error_message)) for result in answer.results
        ]


class Collected:
    """Takes the results of a call."""

    def __init__(self) -> None:
        self.results: list[Results[Any, Any]] = []

    def __call__(self, results: Results[Any, Any], now: float) -> None:
        self.results.append(results)

    @property
    def one(self) -> Results[Any, Any]:
        (results,) = self.results
        return results


@pytest.fixture
def rig() -> RequesterRig:
    rig = RequesterRig()
    rig.nodes = NODES
    rig.controller_id = 2
    rig.leaders = {partition: 1 + partition.partition for partition in PARTITIONS}
    return rig


def test_the_table_of_targets_is_complete() -> None:
    kinds = {AnyNode, *targets.NodeTarget.__subclasses__()}
    kinds |= {*targets.CoordinatorTarget.__subclasses__()}
    ours = {kind for kind in kinds if kind.__module__ == targets.__name__}  # not an operation's own
    assert {type(target) for target in TARGETS} == ours
    assert len(get_args(Target)) == 3, "the cases of each match over targets"


@pytest.mark.parametrize("target", TARGETS, ids=repr)
def test_a_call_without_items_ends_at_once(rig: RequesterRig, target: Target[Any]) -> None:
    collected = Collected()
    call = DescribeGroups(target, timeout=1.0, on_ended=collected)
    opened = rig.requester.open_call(call, [])
    assert not opened.is_open
    assert (collected.one.values, collected.one.errors) == ({}, {})
    assert rig.tick() == []
    assert (rig.wanted, rig.refreshed) == ([], [])
    assert len(collected.results) == 1


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        *zip(
            TARGETS,
            [
                "it has not been answered yet",
                "no connection to the controller, node 2 at two:9092, yet",
                "no connection to node 1 at one:9092 yet",
                "no connection to node 1 at one:9092 yet",
                "nothing is known of its topic yet",
                "its coordinator is looked for",
                "its coordinator is looked for",
            ],
            strict=True,
        )
    ],
)
def test_each_target_says_what_is_in_the_way(
    rig: RequesterRig, target: Target[Any], reason: str
) -> None:
    collected = Collected()
    key: Any = {AllNodes: 1, Leaders: PARTITIONS[0]}.get(type(target), "g")
    call = DescribeGroups(target, timeout=1.0, on_ended=collected)
    rig.requester.open_call(call, [key], deadline=2.0)
    rig.tick()
    rig.tick(2.0)
    error = collected.one.errors[key]
    assert isinstance(error, KafkaTimeoutError)
    assert str(error).partition("; ")[2] == reason


def test_topics_are_created_by_the_controller(rig: RequesterRig) -> None:
    rig.open(1)
    rig.open(2)
    collected = Collected()
    call = CreateTopics(Controller(), timeout=1.0, on_ended=collected)
    rig.requester.open_call(call, ["a", "b"])
    (sent,) = rig.tick()
    assert sent.link_id == 20
    topics = [
        create_topics.CreatableTopicResult(name="a"),
        create_topics.CreatableTopicResult(name="b", error_code=ErrorCode.TOPIC_ALREADY_EXISTS),
    ]
    rig.answer(sent, create_topics.CreateTopicsResponse(topics=topics))
    assert collected.one.values == {"a": 0}
    assert isinstance(collected.one.errors["b"], TopicAlreadyExists)


def test_groups_are_described_by_their_coordinators(rig: RequesterRig) -> None:
    rig.open(1)
    collected = Collected()
    call = DescribeGroups(CoordinatorOfEach(GROUP), timeout=1.0, on_ended=collected)
    rig.requester.open_call(call, ["g", "h"])
    (lookup,) = [*rig.tick(), *rig.tick()]
    coordinators = [
        FoundCoordinator(key=key, node_id=node_id, host="host", port=9092)
        for key, node_id in (("g", 1), ("h", 2))
    ]
    rig.answer(lookup, FindCoordinatorResponse(coordinators=coordinators))
    rig.tick()
    assert {*rig.wanted} == {ConnectionKey(Role.COORDINATOR, node_id) for node_id in (1, 2)}
    for node_id in (1, 2):
        rig.open(node_id, Role.COORDINATOR)
    for sent in rig.tick():
        (group,) = request_of(sent).groups
        described = describe_groups.DescribedGroup(group_id=group, group_state=f"of {group}")
        assert not collected.results
        rig.answer(sent, describe_groups.DescribeGroupsResponse(groups=[described]))
    assert collected.one.values == {"g": "of g", "h": "of h"}


def test_offsets_are_listed_by_leaders(rig: RequesterRig) -> None:
    rig.open(1)
    rig.open(2)
    collected = Collected()
    rig.requester.open_call(ListOffsets(Leaders(), timeout=1.0, on_ended=collected), PARTITIONS)
    for sent in rig.tick():
        (topic,) = request_of(sent).topics
        (part,) = topic.partitions
        answered = list_offsets.ListOffsetsPartitionResponse(
            partition_index=part.partition_index, offset=sent.link_id
        )
        rig.answer(
            sent,
            list_offsets.ListOffsetsResponse(
                topics=[list_offsets.ListOffsetsTopicResponse(name="t", partitions=[answered])]
            ),
        )
    assert collected.one.values == {PARTITIONS[0]: 10, PARTITIONS[1]: 20}


def test_all_nodes_are_asked(rig: RequesterRig) -> None:
    rig.open(1)
    rig.open(2)
    collected = Collected()
    rig.requester.open_call(DescribeBrokers(AllNodes(), timeout=1.0, on_ended=collected))
    for sent in rig.tick():
        result = describe_configs.DescribeConfigsResult(
            resource_name=str(sent.link_id // 10), error_message="said"
        )
        rig.answer(sent, describe_configs.DescribeConfigsResponse(results=[result]))
    assert collected.one.values == {1: "said", 2: "said"}


def test_all_nodes_of_no_known_cluster_are_no_success(rig: RequesterRig) -> None:
    """Regression: the call ended at its deadline, and nobody was told."""
    rig.needs_bootstrap = True
    collected = Collected()
    call = DescribeBrokers(AllNodes(), timeout=1.0, on_ended=collected)
    rig.requester.open_call(call, deadline=2.0)
    rig.tick()
    assert not collected.results
    rig.tick(2.0)
    assert isinstance(collected.one.no_nodes, KafkaTimeoutError)
    assert str(collected.one.no_nodes) == "DescribeConfigs: the metadata named no node in time"
    assert collected.one.values == {}


def test_nothing_is_heard_of_a_call_that_was_cancelled(rig: RequesterRig) -> None:
    rig.open(1)
    collected = Collected()
    opened = rig.requester.open_call(
        DescribeGroups(AnyNode(), timeout=1.0, on_ended=collected), ["g"], deadline=3.0
    )
    rig.tick()
    opened.cancel()
    rig.tick(4.0)
    assert not collected.results


def test_what_became_of_the_only_item() -> None:
    error = KafkaError("no")
    assert Results(values={ONLY: 1}).only() == 1
    assert Results(errors={ONLY: error}).only() is error
