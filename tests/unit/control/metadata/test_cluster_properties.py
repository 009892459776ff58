"""Whatever a broker answers, what is known of the cluster stays consistent and only gets newer."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_fast.config import producer_settings
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.metadata import ClusterChanges, LeaderHint
from kafka_fast.protocol.apis.cluster.metadata import MetadataResponse
from tests.unit.control.metadata.metadata_answers import NO_ID, answer, broker, make_topic_id, topic

SETTINGS = producer_settings({"bootstrap.servers": "b:1"})
NAMES = ("t", "u")
NODES = st.sampled_from([0, 1, 2, 3, 1, 2, -1])
EPOCHS = st.integers(-1, 6)

BROKERS = st.lists(
    st.builds(
        broker,
        st.integers(0, 3),
        st.sampled_from(["a", "a", "a", "b", ""]),
        st.sampled_from([1, 1, 1, 1, 0]),
    ),
    min_size=1,
    max_size=4,
)
TOPICS = st.builds(
    topic,
    st.sampled_from(NAMES),
    st.lists(st.tuples(NODES, EPOCHS), max_size=3),
    topic_id=st.sampled_from([NO_ID, make_topic_id(1), make_topic_id(2)]),
    error=st.sampled_from([0, 0, 0, 0, 3, 5, 29, 999]),
)
ANSWERS = st.builds(
    lambda topics, brokers, cluster_id, error: answer(
        *topics, brokers=brokers, cluster_id=cluster_id, error=error
    ),
    st.lists(TOPICS, max_size=3),
    BROKERS,
    st.sampled_from(["c", "c", "c", None, "d"]),
    st.sampled_from([0, 0, 0, 0, 0, 129]),
)
HINTS = st.tuples(
    st.sampled_from([*NAMES, make_topic_id(1), make_topic_id(2)]),
    st.integers(-1, 3),
    NODES,
    EPOCHS,
    BROKERS,
)


def epochs(cluster: Cluster) -> dict[tuple[str, bytes, int], int]:
    """Return the newest epoch of each partition of each topic that has an id."""
    return {
        (name, topic_id, partition.id): partition.newest_epoch
        for name in NAMES
        if (topic_id := cluster.topic_id(name)) is not None
        for partition in cluster.partitions(name)
    }


def leaders(cluster: Cluster) -> dict[tuple[str, int], int]:
    """Return the leader of each partition, or -1."""
    return {
        (name, partition.id): leader.id if leader is not None else -1
        for name in NAMES
        for partition in cluster.partitions(name)
        for leader in [cluster.leader(name, partition.id)]
    }


def apply(
    cluster: Cluster, step: MetadataResponse | tuple[object, ...], now: float
) -> ClusterChanges:
    """Let an answer or a hint have its effect."""
    if isinstance(step, tuple):
        *hint, endpoints = step
        return cluster.apply_leader_hints([LeaderHint(*hint)], endpoints, now=now)
    for name in NAMES:
        cluster.want_topic(name, now)
    cluster.request_refresh("test")
    assert cluster.poll_request(now) is not None
    return cluster.handle_response(step, now, 13)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(ANSWERS, ANSWERS, HINTS), max_size=12))
def test_any_answers(steps: list[MetadataResponse | tuple[object, ...]]) -> None:
    cluster = Cluster(SETTINGS, lambda: 0.5)
    for number, step in enumerate(steps):
        before, led = epochs(cluster), leaders(cluster)
        cluster_id, update_count = cluster.cluster_id, cluster.update_count
        changes = apply(cluster, step, 10.0 * number)

        # No leader epoch falls while the topic keeps its id, and no partition is lost.
        after = epochs(cluster)
        for partition_key, epoch in before.items():
            if cluster.topic_id(partition_key[0]) == partition_key[1]:
                assert after[partition_key] >= epoch, partition_key

        # Ids and names are each other's inverse.
        ids = {cluster.topic_id(name): name for name in NAMES if cluster.topic_id(name)}
        assert len(ids) == sum(cluster.topic_id(name) is not None for name in NAMES)
        for topic_id, name in ids.items():
            assert topic_id is not None
            assert cluster.topic_name(topic_id) == name
        for topic_id in (make_topic_id(1), make_topic_id(2)):
            owner = cluster.topic_name(topic_id)
            assert owner is None or cluster.topic_id(owner) == topic_id

        # Partitions are numbered from 0, leaders are nodes with an address.
        for name in NAMES:
            numbers = [partition.id for partition in cluster.partitions(name)]
            assert numbers == list(range(cluster.partition_count(name) or 0))
            for partition in cluster.partitions(name):
                assert partition.leader_epoch in (-1, partition.newest_epoch)
        for node in cluster.nodes:
            assert node.id >= 0
            assert node.host
            assert node.port == 1

        # Every change of a leader is reported, with its true before and after.
        anew = {*changes.new_topics, *(change.topic for change in changes.recreated_topics)}
        now_led = leaders(cluster)
        for key in led.keys() & now_led.keys():
            if key[0] not in anew and led[key] != now_led[key]:
                change = changes.leaders[key]
                assert (change.old_leader_id, change.leader_id) == (led[key], now_led[key])
        for key, change in changes.leaders.items():
            assert key[0] not in anew
            assert now_led[key] == change.leader_id

        # A refused answer changes nothing; the cluster is never exchanged behind our back.
        assert cluster.update_count - update_count == (bool(changes) and changes.failure is None)
        if changes.failure is not None:
            assert (epochs(cluster), leaders(cluster)) == (before, led)
        if cluster_id is not None:
            assert cluster.cluster_id == cluster_id
