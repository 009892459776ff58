"""The cluster believes the newest news, forgets nothing too early, and says what changed."""

from __future__ import annotations

import pytest

from kafka_fast.config import producer_settings
from kafka_fast.control.metadata.cluster import NEWS_PATIENCE, Cluster
from kafka_fast.control.metadata.metadata import (
    ClusterChanges,
    LeaderChange,
    LeaderHint,
    TopicRecreated,
)
from kafka_fast.errors import ProtocolError, RebootstrapRequired
from kafka_fast.protocol.apis.cluster.metadata import MetadataResponse, MetadataResponseTopic
from tests.unit.control.metadata.metadata_answers import answer, broker, make_topic_id, topic

A, B = make_topic_id(1), make_topic_id(2)


def make_cluster(max_idle: float = 300.0, **options: object) -> Cluster:
    settings = producer_settings({"bootstrap.servers": "b:1"}, options)
    return Cluster(settings, lambda: 0.5, max_idle=max_idle)


def ask_and_answer(
    cluster: Cluster, response: MetadataResponse, now: float, version: int = 13
) -> ClusterChanges:
    """Refresh whatever is wanted at `now`, past every gate."""
    cluster.request_refresh("test")
    assert cluster.poll_request(now) is not None
    return cluster.handle_response(response, now, version)


def cluster_with(
    *topics: MetadataResponseTopic, max_idle: float = 300.0, **options: object
) -> Cluster:
    """A cluster that has learned `topics` at time 0."""
    cluster = make_cluster(max_idle, **options)
    for reported in topics:
        assert reported.name is not None
        cluster.want_topic(reported.name, 0.0)
    ask_and_answer(cluster, answer(*topics), 0.0)
    return cluster


def test_first_answer_fills_the_cache() -> None:
    cluster = make_cluster()
    cluster.want_topic("t", 0.0)
    assert cluster.needs_bootstrap
    assert cluster.partition_count("t") is None
    request = cluster.poll_request(0.0)
    assert request is not None
    assert [asked.name for asked in request.topics or ()] == ["t"]
    changes = cluster.handle_response(answer(topic("t", [(1, 5), (2, 6)], topic_id=A)), 0.1)
    assert changes.new_topics == ["t"]
    assert [n.id for n in changes.nodes_added] == [1, 2]
    assert not cluster.needs_bootstrap
    assert cluster.update_count == 1
    assert cluster.partition_count("t") == 2
    leader = cluster.leader("t", 1)
    assert leader is not None
    assert (leader.id, leader.address) == (2, ("kafka", 9092))
    assert str(leader) == "node 2 at kafka:9092"
    assert cluster.leader_epoch("t", 1) == 6
    assert (cluster.topic_id("t"), cluster.topic_name(A)) == (A, "t")
    assert (cluster.cluster_id, cluster.controller_id) == ("c", 1)


def test_getters_of_unknown_things() -> None:
    cluster = cluster_with(topic("t"))
    assert cluster.leader("t", 1) is None
    assert cluster.leader("t", -1) is None
    assert cluster.leader_epoch("u", 0) == -1
    assert cluster.partitions("u") == ()
    assert cluster.topic_id("u") is None
    assert cluster.topic_name(A) is None
    assert cluster.node(9) is None
    assert cluster.error("u") == 0


def test_same_answer_again_changes_nothing() -> None:
    cluster = cluster_with(topic("t", topic_id=A))
    update_count = cluster.update_count
    assert not ask_and_answer(cluster, answer(topic("t", topic_id=A)), 1.0)
    assert cluster.update_count == update_count


def test_older_leader_epoch_is_ignored_and_newer_taken() -> None:
    cluster = cluster_with(topic("t", [(1, 5)], topic_id=A))
    assert not ask_and_answer(cluster, answer(topic("t", [(2, 4)], topic_id=A)), 1.0)
    assert cluster.partitions("t")[0].leader_id == 1
    changes = ask_and_answer(cluster, answer(topic("t", [(2, 6)], topic_id=A)), 3.0)
    assert changes.leaders == {("t", 0): LeaderChange("t", 0, 1, 2, 6)}
    assert cluster.leader_epoch("t", 0) == 6


def test_reelected_leader_is_reported() -> None:
    cluster = cluster_with(topic("t", [(1, 5)], topic_id=A))
    changes = ask_and_answer(cluster, answer(topic("t", [(1, 6)], topic_id=A)), 1.0)
    assert changes.leaders == {("t", 0): LeaderChange("t", 0, 1, 1, 6)}


def test_epochs_of_brokers_before_2_4_are_not_compared() -> None:
    cluster = cluster_with(topic("t", [(1, 5)], topic_id=A))
    changes = ask_and_answer(cluster, answer(topic("t", [(2, 3)])), 1.0, version=8)
    assert changes.leaders == {("t", 0): LeaderChange("t", 0, 1, 2, -1)}
    assert cluster.partitions("t")[0].newest_epoch == 5


def test_vanished_topic_keeps_everything_and_returns() -> None:
    cluster = cluster_with(topic("t", [(1, 5)], topic_id=A))
    gone = ask_and_answer(cluster, answer(topic("t", [], error=3)), 1.0)
    assert gone.removed_topics == ["t"]
    assert gone.topic_errors == {"t": 3}
    assert cluster.error("t") == 3
    assert cluster.topic_id("t") == A
    assert cluster.partition_count("t") == 1
    assert not ask_and_answer(cluster, answer(), 3.0), "absent is as good as unknown"
    back = ask_and_answer(cluster, answer(topic("t", [(1, 5)], topic_id=A)), 6.0)
    assert back.returned_topics == ["t"]
    assert not back.recreated_topics
    assert not back.leaders
    assert cluster.error("t") == 0


def test_topic_without_id_that_was_gone_starts_over() -> None:
    cluster = cluster_with(topic("t", [(1, 5)]))
    ask_and_answer(cluster, answer(topic("t", [], error=3)), 1.0)
    back = ask_and_answer(cluster, answer(topic("t", [(2, 0)])), 3.0)
    assert back.returned_topics == ["t"]
    assert back.leaders == {("t", 0): LeaderChange("t", 0, 1, 2, 0)}


def test_recreated_topic_is_another_topic() -> None:
    cluster = cluster_with(topic("t", [(1, 50)] * 4, topic_id=A))
    changes = ask_and_answer(cluster, answer(topic("t", [(2, 0)], topic_id=B)), 1.0)
    [recreated] = changes.recreated_topics
    assert (recreated.old_topic_id, recreated.topic_id) == (A, B)
    assert cluster.partition_count("t") == 1
    assert cluster.leader_epoch("t", 0) == 0
    assert cluster.topic_name(A) is None
    assert cluster.topic_name(B) == "t"


def test_answer_without_id_does_not_take_a_known_one_away() -> None:
    cluster = cluster_with(topic("t", topic_id=A))
    assert not ask_and_answer(cluster, answer(topic("t")), 1.0)
    assert cluster.topic_id("t") == A


def test_partition_count_grows_but_shrinks_only_without_id() -> None:
    cluster = cluster_with(topic("t", [(1, 0)], topic_id=A), topic("old", [(1, 0)] * 3))
    grown = answer(topic("t", [(1, 0)] * 3, topic_id=A), topic("old", [(1, 0)] * 2))
    changes = ask_and_answer(cluster, grown, 1.0)
    assert [(c.topic, c.old_count, c.count) for c in changes.resized] == [
        ("t", 1, 3),
        ("old", 3, 2),
    ]
    stale = answer(topic("t", [(1, 0)], topic_id=A), topic("old", [(1, 0)] * 2))
    assert not ask_and_answer(cluster, stale, 3.0)
    assert cluster.partition_count("t") == 3


def test_partition_that_went_with_its_leader_has_no_leader_change() -> None:
    cluster = cluster_with(topic("old", [(1, 0), (1, 0)]))
    changes = ask_and_answer(cluster, answer(topic("old", [(2, 0)]), brokers={2: "b"}), 1.0)
    assert changes.leaders == {("old", 0): LeaderChange("old", 0, 1, 2, 0)}


def test_indexes_that_leave_gaps_or_repeat() -> None:
    odd = topic("t", [(1, 0), (2, 0), (2, 9)], topic_id=A)
    odd.partitions[1].partition_index = 2**31 - 1
    odd.partitions[2].partition_index = 0
    cluster = cluster_with(odd)
    assert [p.id for p in cluster.partitions("t")] == [0, 1, 2]
    assert cluster.partitions("t")[0].leader_id == 1
    assert cluster.leader("t", 1) is None
    assert cluster.leader("t", 2) is None


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("", 9092),
        ("h", 0),
        ("h", 70000),
        ("h", -1),
        ("h\nWARNING all is well", 9092),
        ("a b", 9092),
    ],
)
def test_broker_without_usable_address_leads_nothing(host: str, port: int) -> None:
    cluster = make_cluster()
    cluster.want_topic("t", 0.0)
    brokers = [broker(1), broker(2, host, port)]
    ask_and_answer(cluster, answer(topic("t", [(1, 0), (2, 0)]), brokers=brokers), 0.0)
    assert [node.id for node in cluster.nodes] == [1]
    assert cluster.leader("t", 0) is not None
    assert cluster.leader("t", 1) is None


def test_leader_not_in_list_is_no_leader_until_it_joins() -> None:
    cluster = cluster_with(topic("t", [(3, 7)], topic_id=A))
    assert cluster.leader("t", 0) is None
    joined = answer(topic("t", [(3, 7)], topic_id=A), brokers={1: "a", 3: "c"})
    changes = ask_and_answer(cluster, joined, 1.0)
    assert changes.leaders == {("t", 0): LeaderChange("t", 0, -1, 3, 7)}
    left = ask_and_answer(cluster, answer(topic("t", [(3, 7)], topic_id=A)), 3.0)
    assert left.leaders == {("t", 0): LeaderChange("t", 0, 3, -1, 7)}
    assert [node.id for node in left.nodes_removed] == [3]


def test_node_at_another_address_is_reported() -> None:
    cluster = cluster_with(topic("t"))
    moved = answer(topic("t"), brokers={1: "elsewhere", 2: "kafka"})
    [(before, after)] = ask_and_answer(cluster, moved, 1.0).nodes_readdressed
    assert (before.host, after.host) == ("kafka", "elsewhere")


def test_node_and_leader_changes_of_one_answer_are_one() -> None:
    cluster = cluster_with(topic("t", [(1, 0)], topic_id=A))
    failover = answer(topic("t", [(3, 1)], topic_id=A), brokers={2: "b", 3: "c"})
    changes = ask_and_answer(cluster, failover, 1.0)
    assert changes.leaders == {("t", 0): LeaderChange("t", 0, 1, 3, 1)}


def test_empty_broker_list_is_a_failure() -> None:
    cluster = cluster_with(topic("t"))
    changes = ask_and_answer(cluster, answer(topic("t", [], error=3), brokers=[]), 1.0)
    assert isinstance(changes.failure, ProtocolError)
    assert len(cluster.nodes) == 2
    assert cluster.error("t") == 0
    assert cluster.request_deadline() > 1.0


def test_topic_error_that_does_not_heal_by_itself() -> None:
    cluster = cluster_with(topic("t", [], error=29))
    assert cluster.error("t") == 29
    assert cluster.partition_count("t") is None
    assert cluster.request_deadline() > 100.0, "not asked again by itself"
    cluster.want_topic("t", 5.0)
    assert cluster.request_deadline() <= 5.0, "but when somebody wants it"


def test_unknown_error_code_is_kept_and_not_retried() -> None:
    cluster = cluster_with(topic("t", [], error=999))
    assert cluster.error("t") == 999
    assert cluster.request_deadline() > 100.0


def test_topic_under_creation_is_asked_for_again() -> None:
    cluster = cluster_with(topic("t", []))
    assert cluster.error("t") == 5
    assert cluster.request_deadline() <= 0.2
    assert cluster.poll_request(0.2) is not None
    changes = cluster.handle_response(answer(topic("t")), 0.3, 13)
    assert changes.new_topics == ["t"]
    assert changes.topic_errors == {"t": 0}


def test_two_topics_with_one_id() -> None:
    cluster = cluster_with(topic("t", topic_id=A), topic("u", topic_id=A))
    assert cluster.topic_name(A) == "t"
    assert cluster.topic_id("u") is None


def test_topics_nobody_asked_for_are_ignored() -> None:
    cluster = cluster_with(topic("t"))
    assert not ask_and_answer(cluster, answer(topic("t"), topic("other")), 1.0)
    assert cluster.topic("other") is None


def test_idle_topic_is_dropped_unless_used() -> None:
    cluster = cluster_with(topic("t", topic_id=A), topic("busy"), max_idle=10.0)
    cluster.touch("busy", 8.0)
    changes = ask_and_answer(cluster, answer(topic("t", topic_id=A), topic("busy")), 11.0)
    assert changes.expired_topics == ["t"]
    assert cluster.topic("t") is None
    assert cluster.topic_name(A) is None
    assert cluster.topic("busy") is not None


def test_late_answer_is_not_used() -> None:
    cluster = cluster_with(topic("t"))
    assert not cluster.handle_response(answer(topic("t", [(2, 9)])), 1.0, 13)


def test_refresh_of_one_topic_asks_for_no_other() -> None:
    cluster = cluster_with(topic("t"), topic("u"))
    cluster.request_refresh("NOT_LEADER_OR_FOLLOWER from node 1", "u")
    request = cluster.poll_request(0.2)
    assert request is not None
    assert [asked.name for asked in request.topics or ()] == ["u"]
    cluster.request_refresh("never wanted", "v")
    assert not cluster.handle_response(answer(topic("u")), 0.3, 13)
    assert cluster.request_deadline() > 100.0


# ---- KIP-951 ----


def test_leader_hint_moves_a_partition_at_once() -> None:
    cluster = cluster_with(topic("t", [(1, 5)], topic_id=A))
    changes = cluster.apply_leader_hints([LeaderHint(A, 0, 3, 6)], [broker(3, "c")], now=0.0)
    assert changes.leaders == {("t", 0): LeaderChange("t", 0, 1, 3, 6)}
    assert [node.host for node in changes.nodes_added] == ["c"]
    leader = cluster.leader("t", 0)
    assert leader is not None
    assert leader.id == 3
    assert not ask_and_answer(
        cluster,
        answer(topic("t", [(1, 5)], topic_id=A), brokers={1: "kafka", 2: "kafka", 3: "c"}),
        1.0,
    )


@pytest.mark.parametrize(
    ("name", "partition", "leader_id", "epoch"),
    [
        ("t", 0, 2, 5),  # not newer
        ("t", 0, -1, 9),  # no leader
        ("t", 0, 7, 9),  # nobody knows where node 7 is
        ("t", 1, 2, 9),  # no such partition
        ("u", 0, 2, 9),
        (B, 0, 2, 9),
    ],
)
def test_useless_leader_hint(name: str | bytes, partition: int, leader_id: int, epoch: int) -> None:
    cluster = cluster_with(topic("t", [(1, 5)], topic_id=A))
    assert not cluster.apply_leader_hints([LeaderHint(name, partition, leader_id, epoch)], now=0.0)
    assert cluster.leader_epoch("t", 0) == 5


def test_a_hint_by_name_may_be_about_the_deleted_topic() -> None:
    cluster = cluster_with(topic("t", [(1, 50)], topic_id=A))
    ask_and_answer(cluster, answer(topic("t", [(1, 0)], topic_id=B)), 10.0)
    late = LeaderHint("t", 0, 2, 51)  # of the deleted topic; the new one's are far from 51
    assert not cluster.apply_leader_hints([late], now=10.0 + NEWS_PATIENCE / 2)
    assert not cluster.apply_leader_hints([LeaderHint(A, 0, 2, 51)], now=10.0)
    assert cluster.apply_leader_hints([LeaderHint(B, 0, 2, 1)], now=10.0), "an id leaves no doubt"
    assert cluster.apply_leader_hints([LeaderHint("t", 0, 1, 2)], now=10.0 + NEWS_PATIENCE)


# ---- another cluster, rebootstrap ----


def test_foreign_cluster_is_not_believed() -> None:
    cluster = cluster_with(topic("t", [(1, 5)], topic_id=A))
    changes = ask_and_answer(cluster, answer(topic("t", [(2, 9)]), cluster_id="evil"), 1.0)
    assert changes.foreign_cluster_id == "evil"
    assert changes.rebootstrap
    assert changes.failure is not None
    assert "'evil'" in str(changes.failure)
    assert cluster.leader_epoch("t", 0) == 5
    assert cluster.cluster_id == "c"


def test_bootstrap_servers_may_introduce_another_cluster() -> None:
    cluster = cluster_with(topic("t", [(1, 50)], topic_id=A))
    lost = cluster.rebootstrap()
    assert lost.leaders == {("t", 0): LeaderChange("t", 0, 1, -1, 50)}
    assert cluster.needs_bootstrap
    assert cluster.leader("t", 0) is None
    assert cluster.topic_id("t") == A, "ids tell later whether it is the same topic"
    assert cluster.poll_request(1.0) is not None
    changes = cluster.handle_response(
        answer(topic("t", [(1, 0)], topic_id=B), cluster_id="d"), 1.0, 13
    )
    assert changes.cluster_replaced
    assert changes.recreated_topics == [TopicRecreated("t", A, B)]
    assert not changes.new_topics
    assert cluster.leader_epoch("t", 0) == 0
    assert cluster.cluster_id == "d"


def test_rebootstrap_into_the_same_cluster_keeps_topics() -> None:
    cluster = cluster_with(topic("t", [(1, 50)], topic_id=A))
    cluster.rebootstrap()
    assert cluster.poll_request(1.0) is not None
    changes = cluster.handle_response(answer(topic("t", [(1, 50)], topic_id=A)), 1.0, 13)
    assert not changes.cluster_replaced
    assert not changes.new_topics
    assert changes.leaders == {("t", 0): LeaderChange("t", 0, -1, 1, 50)}


def test_rebootstrap_required_by_the_broker() -> None:
    cluster = cluster_with(topic("t"))
    changes = ask_and_answer(cluster, answer(error=129), 1.0)
    assert changes.rebootstrap
    assert isinstance(changes.failure, RebootstrapRequired)
    cluster = cluster_with(topic("t"), metadata_recovery_strategy="none")
    assert not ask_and_answer(cluster, answer(error=129), 1.0).rebootstrap


def test_rebootstrap_when_nobody_answers_for_long() -> None:
    cluster = cluster_with(topic("t"), metadata_recovery_rebootstrap_trigger_ms=60_000)
    cluster.request_refresh("socket error")
    assert not cluster.poll_rebootstrap(10.0), "nobody could be asked since 10.0"
    assert cluster.rebootstrap_deadline() == pytest.approx(70.0)
    assert cluster.poll_request(50.0) is not None
    cluster.handle_failure(69.0)
    assert not cluster.poll_rebootstrap(69.9)
    assert cluster.poll_rebootstrap(70.1)
    cluster.rebootstrap()
    assert not cluster.poll_rebootstrap(1000.0), "already there"
