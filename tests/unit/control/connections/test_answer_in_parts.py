"""A large answer to Metadata is taken in in parts; in the end the picture is the same."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_fast.config import producer_settings
from kafka_fast.control.metadata import cluster as cluster_module
from kafka_fast.control.metadata.cluster import PARTITIONS_AT_ONCE, Cluster
from kafka_fast.control.metadata.metadata import ClusterChanges
from kafka_fast.instants import NEVER
from kafka_fast.protocol.apis.cluster.metadata import MetadataResponse
from tests.unit.control.metadata.metadata_answers import answer, broker, make_topic_id, topic
from tests.unit.control.metadata.test_cluster_properties import ANSWERS, NAMES

MANY = [f"t{number:04}" for number in range(3 * PARTITIONS_AT_ONCE // 4)]
"""With 3 partitions each they take three parts."""


def make(*topics: str) -> Cluster:
    cluster = Cluster(producer_settings({"bootstrap.servers": "b:1"}), lambda: 0.5)
    for name in topics:
        cluster.want_topic(name, 0.0)
    return cluster


def large_answer(
    leader: int = 1, epoch: int = 0, nodes: Sequence[int] = (1, 2)
) -> MetadataResponse:
    return answer(
        *(
            topic(name, [(leader, epoch)] * 3, topic_id=make_topic_id(number + 1))
            for number, name in enumerate(MANY)
        ),
        brokers=[broker(node) for node in nodes],
    )


def ask(cluster: Cluster, now: float) -> None:
    cluster.request_refresh("test")
    assert cluster.poll_request(now) is not None


def take(cluster: Cluster, response: MetadataResponse, now: float) -> list[ClusterChanges]:
    """Take an answer in, and return what each part of it changed."""
    parts = [cluster.handle_response(response, now, 13)]
    while cluster.is_merging:
        parts.append(cluster.continue_response(now))
    return parts


def test_each_part_tells_its_changes() -> None:
    cluster = make(*MANY)
    ask(cluster, 0.0)
    parts = take(cluster, large_answer(), 0.0)
    assert len(parts) == 4, "and the end"
    assert [name for part in parts for name in part.new_topics] == MANY
    assert [name for part in parts for name in part.answered] == MANY
    assert [len(part.nodes_added) for part in parts] == [2, 0, 0, 0]
    assert all(len(part.new_topics) * 4 <= PARTITIONS_AT_ONCE + 4 for part in parts)
    assert cluster.partition_count(MANY[-1]) == 3


def test_nothing_is_asked_before_the_last_part() -> None:
    cluster = make(*MANY)
    ask(cluster, 0.0)
    cluster.handle_response(large_answer(), 0.0, 13)
    while cluster.is_merging:
        cluster.request_refresh("an error code")
        assert cluster.request_deadline() == NEVER
        assert cluster.poll_request(1.0) is None
        late = cluster.handle_response(large_answer(2, 9), 0.0, 13)
        assert not late, "nobody has asked for this one"
        cluster.continue_response(1.0)
    assert cluster.request_deadline() < NEVER
    assert cluster.leader_epoch(MANY[-1], 0) == 0


def test_a_partition_that_moves_when_its_node_goes_has_moved_once() -> None:
    cluster = make(*MANY)
    ask(cluster, 0.0)
    take(cluster, large_answer(1, 5), 0.0)
    ask(cluster, 10.0)
    parts = take(cluster, large_answer(2, 6, nodes=[2]), 10.0)
    changes = [change for part in parts for change in part.leaders.values()]
    assert len(changes) == 3 * len(MANY)
    assert {
        (change.old_leader_id, change.leader_id, change.leader_epoch) for change in changes
    } == {(1, 2, 6)}


def test_partitions_of_topics_that_were_not_asked_for_lose_a_leader_as_well() -> None:
    cluster = make(*MANY, "other")
    ask(cluster, 0.0)
    whole = large_answer(1, 5)
    whole.topics.append(topic("other", [(1, 5)]))
    take(cluster, whole, 0.0)
    cluster.want_anew("other", 1.0)
    assert cluster.poll_request(1.0) is not None
    gone = answer(topic("other", [(2, 6)]), brokers=[broker(2)])
    parts = take(cluster, gone, 1.0)
    told = {key: change for part in parts for key, change in part.leaders.items()}
    assert len(told) == 3 * len(MANY) + 1
    assert told["other", 0].leader_id == 2
    assert {told[name, 0].leader_id for name in MANY} == {-1}


def test_a_rebootstrap_ends_an_answer_that_is_being_taken_in() -> None:
    cluster = make(*MANY)
    ask(cluster, 0.0)
    cluster.handle_response(large_answer(), 0.0, 13)
    assert cluster.is_merging
    cluster.rebootstrap()
    assert not cluster.is_merging
    assert cluster.request_deadline() <= 1.0
    assert cluster.partition_count(MANY[-1]) is None


def test_all_topics_are_told_when_the_last_part_is_taken_in() -> None:
    cluster = make()
    cluster.want_all_topics(True)
    ask(cluster, 0.0)
    cluster.handle_response(large_answer(), 0.0, 13)
    assert cluster.all_topics is None
    while cluster.is_merging:
        cluster.continue_response(0.0)
    every = cluster.all_topics
    assert every is not None
    assert sorted(topic_info.name for topic_info in every) == MANY
    ask(cluster, 10.0)
    take(cluster, large_answer(), 10.0)
    assert cluster.all_topics is every, "who has matched it need not match it again"


def picture(cluster: Cluster) -> object:
    return (
        cluster.nodes,
        cluster.cluster_id,
        [(cluster.topic(name), cluster.error(name), cluster.answers(name)) for name in NAMES],
        cluster.request_deadline(),
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(ANSWERS, max_size=6))
def test_many_parts_make_the_same_picture_as_one(answers: list[MetadataResponse]) -> None:
    whole, parted = make(*NAMES), make(*NAMES)
    for number, response in enumerate(answers):
        now = 10.0 * number
        for cluster, size in ((whole, PARTITIONS_AT_ONCE), (parted, 1)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(cluster_module, "PARTITIONS_AT_ONCE", size)
                for name in NAMES:
                    cluster.want_topic(name, now)
                ask(cluster, now)
                parts = take(cluster, response, now)
                if cluster is whole:
                    changes = parts[0]
                    assert len(parts) == 1
        assert picture(whole) == picture(parted)
        assert {key for part in parts for key in part.leaders} == set(changes.leaders)
        assert [
            topic_info for part in parts for topic_info in part.new_topics
        ] == changes.new_topics
