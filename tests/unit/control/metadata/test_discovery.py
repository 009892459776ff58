"""Who is asked for metadata, and what if nobody answers: nodes that hang, links that are lost."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any, NoReturn

import pytest

from kafka_fast.config import CommonSettings, producer_settings
from kafka_fast.control.client_control import ClientControl
from kafka_fast.control.connections.connection_key import (
    BOOTSTRAP,
    UNKNOWN_NODE,
    ConnectionKey,
    Role,
)
from kafka_fast.control.connections.connections import PACE
from kafka_fast.control.diagnosis.troubles import About
from kafka_fast.control.messages import CloseReason, RawResponse
from kafka_fast.control.metadata.cluster import PARTITIONS_AT_ONCE, Cluster
from kafka_fast.control.metadata.discovery import ASK_AGAIN_AFTER
from kafka_fast.control.metadata.metadata import ClusterChanges
from kafka_fast.control.requests.any_node import SILENT_CLUSTER_PATIENCE, SILENT_NODE_PATIENCE
from kafka_fast.instants import NEVER
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest, MetadataResponse
from kafka_fast.values import assert_never
from tests.unit.control.fake_machine import FakeMachine
from tests.unit.control.metadata.metadata_answers import answer, broker, topic

NODES = (1, 2, 3)
BROKERS = [broker(node, "10.0.0.1", 9000 + node) for node in NODES]
LARGE = 2**29 + 1, 2**30 + 1, 2**31 - 1
"""Node ids that would be node 1's if a bit of them said what a connection is for."""


class Client(ClientControl[CommonSettings, NoReturn, NoReturn]):
    """The smallest client: it wants to know one topic, and has no parts of its own."""

    kind = "client"
    logger = logging.getLogger("test")

    def __init__(self, servers: str = "10.0.0.1:9001", **config: Any) -> None:
        settings = producer_settings({"bootstrap.servers": servers, **config})
        cluster = Cluster(settings, lambda: 0.5)
        super().__init__(settings, "test", lambda: 0.5, lambda: 0, cluster)
        self.answers = 0
        self.brokers = BROKERS
        self.cluster_id = "c"
        self.cluster.want_topic("t", 1.0)
        self.machine = FakeMachine(self, {MetadataRequest: self._describe_cluster})

    def _describe_cluster(self, request: MetadataRequest, key: ConnectionKey) -> MetadataResponse:
        self.answers += 1
        return answer(
            topic("t", ((1, self.answers),)), brokers=self.brokers, cluster_id=self.cluster_id
        )

    def _handle_changes(self, changes: ClusterChanges, now: float) -> None:
        pass

    def _handle_own(self, event: NoReturn, now: float) -> None:
        assert_never(event)

    def _tick(self, now: float) -> None:
        pass

    def _next_deadline(self) -> float:
        return NEVER

    def asked(self) -> list[int]:
        """The nodes that were asked for metadata since the last call."""
        asked = [
            key.node_id for body, key in self.machine.asked if isinstance(body, MetadataRequest)
        ]
        self.machine.asked.clear()
        return asked

    def connect(self, *nodes: int) -> None:
        """Have links to these nodes."""
        for node in nodes:
            self.requester.router.want_data(node, self.machine.now)
            self.machine.run(PACE)

    def refresh(self) -> None:
        """Have metadata asked for."""
        self.machine.run(1.0)  # the gate of full refreshes
        self.asked()
        self.cluster.request_refresh("the test wants it")

    def lose(self, node: int) -> None:
        """Lose the link to a node, and with it the answers that are awaited."""
        link_id = self.machine.link_to(node)
        for command, _, _ in self.machine.unanswered:
            if command.link_id == link_id:
                lost = RawResponse(link_id, command.token, None, CloseReason.EOF)
                self.handle_event(lost, self.machine.now)
        self.machine.close(ConnectionKey(Role.DATA, node))


def started(*nodes: int, **config: Any) -> Client:
    """A client that knows the cluster and has the links to these nodes, no more."""
    client = Client(**config)
    client.machine.run()
    client.connect(*nodes)
    client.machine.close(BOOTSTRAP)
    client.machine.run()
    client.refresh()
    return client


def test_a_question_goes_to_the_node_where_the_fewest_wait() -> None:
    client = started(1, 2)
    one = client.links.link_to(ConnectionKey(Role.DATA, 1))
    assert one is not None
    client.machine.hung = {9001}
    client.connections.requests.send_request(
        one,
        MetadataRequest(topics=[]),
        MetadataResponse,
        lambda response, now: None,
        lambda error, now: None,
        timeout=30.0,
    )
    client.machine.run()
    assert client.asked() == [1, 2]


def test_while_a_node_does_not_answer_another_is_asked_and_the_first_answer_counts() -> None:
    """Regression: a node that was stopped kept the metadata until request.timeout.ms."""
    client = started(1, 2)
    client.machine.hung = {9001}
    client.machine.run(SILENT_NODE_PATIENCE * 0.9)
    assert client.asked() == [1]
    client.machine.run(SILENT_NODE_PATIENCE * 0.2)
    assert client.asked() == [2]
    assert client.cluster.leader_epoch("t", 0) == client.answers
    update_count = client.cluster.update_count
    command, request, version = client.machine.unanswered.pop()
    assert isinstance(request, MetadataRequest)
    client.machine.answer(command, answer(topic("t", ((3, 99),)), brokers=BROKERS), version)
    assert client.cluster.update_count == update_count, "it came too late"
    client.refresh()
    client.machine.run()
    assert client.answers > 2


def test_a_node_that_answers_late_is_believed_if_nobody_else_has_answered() -> None:
    client = started(1, 2)
    client.machine.hung = {9001, 9002, 9003}
    client.machine.run(10.0)
    assert sorted(client.asked()) == [1, 2], "each once; node 3 does not even negotiate"
    command, _, version = client.machine.unanswered[0]
    client.machine.answer(command, answer(topic("t", ((3, 99),)), brokers=BROKERS), version)
    assert client.cluster.leader_epoch("t", 0) == 99


def test_a_node_without_a_link_is_connected_when_those_with_one_do_not_answer() -> None:
    client = started(1, 2)
    client.machine.hung = {9001, 9002}
    client.machine.run(SILENT_NODE_PATIENCE * 2.1)
    assert client.asked() == [1, 2, 3]


def test_only_when_all_have_failed_the_question_has_failed() -> None:
    client = started(1, 2)
    client.machine.hung = {9001, 9002, 9003}
    client.machine.run(SILENT_NODE_PATIENCE * 1.5)
    assert client.asked() == [1, 2]
    client.lose(1)
    assert client.cluster.request_deadline() == float("inf"), "node 2 may still answer"
    client.lose(2)
    assert client.machine.now < client.cluster.request_deadline() < client.machine.now + 1.0


def test_while_one_node_does_not_let_us_in_another_is_connected() -> None:
    """Regression: one that accepts and says nothing held everything up until its timeout."""
    client = Client()
    client.machine.run()
    client.asked()
    client.machine.hung = {9001}
    client.machine.close(BOOTSTRAP)
    client.requester.router.want_data(1, client.machine.now)
    client.machine.run(SILENT_NODE_PATIENCE * 0.5)
    assert client.asked() == []
    client.machine.run(SILENT_NODE_PATIENCE)
    assert client.asked() in ([2], [3])


@pytest.mark.parametrize("hung", [9001, 9002])
def test_while_one_bootstrap_server_hangs_another_is_asked(hung: int) -> None:
    client = Client("10.0.0.1:9001,10.0.0.1:9002")
    client.machine.hung = {hung}
    client.machine.run(SILENT_NODE_PATIENCE * 1.1)
    assert client.answers == 1


def test_one_bootstrap_server_that_hangs_is_waited_for() -> None:
    client = Client("10.0.0.1:9001,10.0.0.1:9001")
    client.machine.hung = {9001}
    client.machine.run(60.0)
    assert client.answers == 0
    assert len(client.machine.links) < 20


def test_without_a_retry_backoff_metadata_is_not_asked_for_at_the_pace_of_the_network() -> None:
    """Regression: a topic that does not exist was asked for again with each answer."""
    client = started(1, 2, **{"retry.backoff.ms": 0, "retry.backoff.max.ms": 0})
    client.cluster.want_topic("unknown", client.machine.now)
    client.machine.run(1.0)
    assert 50 <= len(client.asked()) <= 150


def test_while_a_node_lets_nobody_in_metadata_tell_where_it_is_now() -> None:
    """Regression: an address that hung was tried for socket.connection.setup.timeout.ms first."""
    client = started(1, 2, **{"socket.connection.setup.timeout.ms": 600_000})
    client.machine.run()
    client.asked()
    client.machine.hung = {9003}
    client.connect(3)
    client.machine.run(SILENT_NODE_PATIENCE)
    assert len(client.asked()) == 1, "nobody knows more yet"
    client.brokers = [*BROKERS[:2], broker(3, "10.0.0.1", 9303)]
    client.machine.run(ASK_AGAIN_AFTER)
    assert len(client.asked()) == 1
    client.connect(3)
    assert client.links.link_to(ConnectionKey(Role.DATA, 3)) is not None


# ---- when no known node can be reached ----

SERVER = 9100
"""Port of a bootstrap server that no node advertises."""


def cut_off(*, silent: bool = False, **config: Any) -> Client:
    """A client that loses the links to all nodes, which then refuse, or take and say nothing."""
    client = started(1, 2, 3, servers=f"10.0.0.1:{SERVER}", **config)
    if silent:
        client.machine.hung = {9001, 9002, 9003}
    else:
        client.machine.refused = {9001, 9002, 9003}
    for node in NODES:
        client.lose(node)
    client.machine.tried.clear()
    return client


def test_if_all_nodes_refuse_bootstrap_servers_are_asked() -> None:
    """Regression: only metadata.recovery.rebootstrap.trigger.ms led there."""
    client = cut_off()
    client.brokers = [broker(node, "10.0.0.1", 9200 + node) for node in NODES]
    client.machine.run(0.5)
    assert sorted(client.machine.tried[:3]) == [9001, 9002, 9003]
    assert client.machine.tried[3] == SERVER
    assert [node.port for node in client.cluster.nodes] == [9201, 9202, 9203]


def test_each_node_is_tried_before_bootstrap_servers() -> None:
    client = cut_off()
    client.machine.refused = {9001, 9002}
    client.machine.run(0.5)
    assert SERVER not in client.machine.tried
    assert client.asked() == [3]


def test_nodes_that_say_nothing_do_not_hold_bootstrap_servers_up() -> None:
    client = cut_off(silent=True)
    client.machine.run(SILENT_CLUSTER_PATIENCE * 0.9)
    assert SERVER not in client.machine.tried
    client.machine.run(SILENT_CLUSTER_PATIENCE * 0.2)
    assert client.asked() == [UNKNOWN_NODE]


def test_links_that_say_nothing_do_not_hold_bootstrap_servers_up() -> None:
    client = started(1, 2, 3, servers=f"10.0.0.1:{SERVER}")
    client.machine.hung = {9001, 9002, 9003}
    client.machine.run(SILENT_NODE_PATIENCE * 4)
    assert sorted(client.asked()) == [UNKNOWN_NODE, *NODES]


def test_metadata_recovery_strategy_none_never_asks_bootstrap_servers_again() -> None:
    client = cut_off(metadata_recovery_strategy="none")
    client.machine.run(1000.0)
    assert SERVER not in client.machine.tried


def test_a_cluster_that_is_only_down_is_known_and_tried_further() -> None:
    """The bootstrap server may be gone for good, while the nodes come back."""
    client = cut_off()
    client.machine.refused.add(SERVER)
    client.machine.run(60.0)
    assert SERVER in client.machine.tried
    client.machine.refused = {SERVER}
    client.machine.run(1.5)
    assert client.asked() in ([1], [2], [3])
    assert client.cluster.leader("t", 0) is not None


def test_a_cluster_that_is_down_is_tried_at_the_pace_of_the_backoff() -> None:
    client = cut_off()
    client.machine.refused.add(SERVER)
    client.machine.run(60.0)
    for port, count in Counter(client.machine.tried).items():
        assert 50 <= count <= 90, port  # reconnect.backoff.max.ms is a second


def test_nodes_that_bootstrap_servers_still_name_are_tried_at_the_pace_of_the_backoff() -> None:
    """A load balancer is up, or one broker that nobody has told of the others' end."""
    client = cut_off()
    client.machine.run(60.0)
    assert client.machine.tried.count(SERVER) == 1
    assert len(client.machine.tried) <= 250
    assert len(client.asked()) <= 100


def test_a_pause_that_a_broker_announced_is_no_reason_to_ask_bootstrap_servers() -> None:
    client = started(1, 2, 3, servers=f"10.0.0.1:{SERVER}")
    for link in list(client.links.ready):
        client.requester.router.handle_throttle(link, 60_000, client.machine.now)
    client.machine.tried.clear()
    client.machine.run(50.0)
    assert client.machine.tried == []
    client.machine.run(15.0)
    assert len(client.asked()) == 1


def test_a_pause_that_a_broker_announced_does_not_count_as_silence() -> None:
    """Regression: metadata.recovery.rebootstrap.trigger.ms ran while nobody would answer."""
    client = started(1, **{"metadata.recovery.rebootstrap.trigger.ms": 10_000})
    (link,) = client.links.ready
    client.connections.handle_throttled(link.id, 40_000, client.machine.now)
    client.machine.hung = {9002, 9003}
    client.cluster.request_refresh("the test wants it")
    client.machine.run(45.0)
    assert not client.cluster.needs_bootstrap
    assert set(client.asked()) == {1}


def test_bootstrap_servers_may_lead_to_another_cluster_if_no_node_is_left() -> None:
    client = cut_off()
    client.cluster_id = "another"
    client.machine.run(0.5)
    assert client.cluster.cluster_id == "another"


def test_bootstrap_servers_of_another_cluster_do_not_take_a_client_away_from_its_nodes() -> None:
    client = started(1, 2, 3, servers=f"10.0.0.1:{SERVER}")
    client.machine.hung = {9001, 9002, 9003}
    client.cluster_id = "another"
    client.machine.run(SILENT_NODE_PATIENCE * 5)
    assert UNKNOWN_NODE in client.asked()
    assert client.cluster.cluster_id == "c"
    assert "bootstrap.servers belongs to cluster 'another'" in str(
        client.troubles.last_of(About.METADATA)
    )
    assert len(list(client.links.ready)) == len(NODES) + 1


@pytest.mark.parametrize("node_id", LARGE)
def test_any_number_is_a_nodes_id(node_id: int) -> None:
    client = Client()
    client.brokers = [broker(node_id, "10.0.0.1", 9001), broker(1, "10.0.0.1", 9002)]
    client.machine.run()
    client.connect(node_id)
    client.machine.close(BOOTSTRAP)
    client.machine.run()
    client.refresh()
    client.machine.run()
    assert client.asked() == [node_id]
    link = client.links.link_to(ConnectionKey(Role.DATA, node_id))
    assert link is not None
    client.links.hold(link)
    node, role = client.cluster.node(node_id), client.links.request_key(node_id).role
    assert node is not None
    client.connections.want_link(node, role, client.machine.now)
    client.machine.run()
    assert client.links.link_to(ConnectionKey(Role.CONTROL, node_id)) is not None
    client.brokers = client.brokers[1:]
    client.refresh()
    client.machine.run()
    assert client.machine.links == {}, "it left the cluster, and no connection to it stays"


def test_a_large_answer_is_taken_in_turn_by_turn() -> None:
    told: list[ClusterChanges] = []

    class Listening(Client):
        def _handle_changes(self, changes: ClusterChanges, now: float) -> None:
            told.append(changes)

    client = Listening()
    names = [f"t{number}" for number in range(2 * PARTITIONS_AT_ONCE)]
    everything = answer(*(topic(name) for name in names), brokers=BROKERS)
    client.machine.handlers = {MetadataRequest: lambda request, key: everything}
    for name in names:
        client.cluster.want_topic(name, client.machine.now)
    client.machine.run(1.0)
    assert [len(changes.new_topics) for changes in told if changes.new_topics] == [
        PARTITIONS_AT_ONCE // 2
    ] * 4
