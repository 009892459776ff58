"""Connection and cluster against the embedded broker: two cores, memory between, virtual time."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence

import pytest

from kafka_fast.config import Address, producer_settings
from kafka_fast.control.connections.connection import Connection, ConnectionState
from kafka_fast.control.connections.connection_key import BOOTSTRAP, ConnectionKey, Role
from kafka_fast.control.connections.connection_outputs import ConnectionFailed, ConnectionReady
from kafka_fast.control.messages import CloseLink, OpenLink, ResolveHost, SendRaw
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.metadata import ClusterChanges
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest, MetadataResponse
from kafka_fast.testing.broker.cluster import Cluster as BrokerCluster
from kafka_fast.testing.broker.state import Node, Settings
from kafka_fast.testing.broker.versions import KAFKA_2_1, KAFKA_2_8, METADATA

TICK = 0.005


class Client:
    """The smallest shell: it keeps the metadata fresh, over whichever connection is ready."""

    def __init__(self, brokers: BrokerCluster, seed: int) -> None:
        self.random = random.Random(seed)
        self.brokers = brokers
        self.settings = producer_settings({"bootstrap.servers": "10.0.0.1:1,10.0.0.2:2"})
        self.cluster = Cluster(self.settings, self.random.random)
        self.link_ids = itertools.count(1)
        self.connections: dict[ConnectionKey, Connection] = {}
        self.make(BOOTSTRAP, self.settings.bootstrap_servers)
        self.now = 0.0
        self.ports: dict[int, int] = {}  # socket number → port, which is the node's id
        self.sockets: dict[int, tuple[ConnectionKey, int]] = {}  # open socket → link id
        self.received: dict[int, bytearray] = {}
        self.asked: tuple[ConnectionKey, int, int] | None = None  # version, correlation id
        self.asked_count = 0
        self.changes: list[ClusterChanges] = []
        self.failures: list[ConnectionFailed] = []

    def make(self, key: ConnectionKey, endpoints: Sequence[Address]) -> None:
        self.connections[key] = Connection(
            key, endpoints, self.settings, "me", self.random.random, self.link_ids.__next__
        )

    def run(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now + seconds
        while self.now < until:
            self.now += TICK
            self.step()

    def step(self) -> None:
        """Do everything that is due now."""
        if self.cluster.poll_rebootstrap(self.now):
            self.take(self.cluster.rebootstrap())
        keys = [BOOTSTRAP]
        if not self.cluster.needs_bootstrap:
            keys = [ConnectionKey(Role.DATA, node.id) for node in self.cluster.nodes]
        ready = [key for key in keys if key in self.connections and self.connections[key].is_ready]
        if self.now >= self.cluster.request_deadline():
            if ready:
                self.ask(ready[0])
            else:
                self.connect(keys)
        for key, connection in list(self.connections.items()):
            connection.tick(self.now)
            self.react(key, connection)
        for _, (number, data, close) in self.brokers.poll_output(self.now):
            if number in self.sockets:
                self.receive(number, data, close)

    def connect(self, keys: list[ConnectionKey]) -> None:
        """Ask for connections; if no node can be reached any more, begin again (KIP-899)."""
        for key in keys:
            if key not in self.connections:
                node = self.cluster.node(key.node_id)
                assert node is not None
                self.make(key, [Address(*node.address)])
            self.connections[key].connect(self.now, cluster_id=self.cluster.cluster_id)
        if all(self.connections[key].state is ConnectionState.BACKOFF for key in keys):
            self.take(self.cluster.rebootstrap())

    def react(self, key: ConnectionKey, connection: Connection) -> None:
        """Carry out what a connection asks for."""
        while (event := connection.poll_output()) is not None:
            match event:
                case OpenLink(link, port=port):
                    number = len(self.ports)
                    self.ports[number] = port
                    if self.brokers.brokers[port].connect(number):
                        self.sockets[number] = (key, link)
                        self.received[number] = bytearray()
                        connection.handle_connected(link, self.now)
                    else:
                        connection.handle_connect_failed(link, OSError("refused"), self.now)
                case SendRaw(link, _, data):
                    self.send(key, link, data)
                case CloseLink(link):
                    for number in [n for n, to in self.sockets.items() if to == (key, link)]:
                        del self.sockets[number]
                        self.brokers.brokers[self.ports[number]].disconnect(number)
                    self.give_up(key)
                case ConnectionFailed():
                    self.failures.append(event)
                    self.give_up(key)
                case ResolveHost() | ConnectionReady():
                    assert not isinstance(event, ResolveHost), "addresses are literal here"

    def give_up(self, key: ConnectionKey) -> None:
        """A link is gone: so is the question that it carried."""
        if self.asked is not None and self.asked[0] == key:
            self.asked = None
            self.cluster.handle_failure(self.now)

    def send(self, key: ConnectionKey, link: int, data: bytes) -> None:
        """Write to the socket of a link."""
        [number] = [n for n, to in self.sockets.items() if to == (key, link)]
        self.brokers.brokers[self.ports[number]].handle_bytes(number, data, self.now)

    def ask(self, key: ConnectionKey) -> None:
        """Send the metadata request that is due."""
        connection = self.connections[key]
        request = self.cluster.poll_request(self.now)
        assert request is not None
        assert connection.versions is not None
        version = connection.versions.pick(MetadataRequest)
        self.asked_count += 1
        self.asked = (key, version, 1000 + self.asked_count)
        data = frame.encode_request(request, version, self.asked[2], "me")
        self.send(key, connection.link_id, data)

    def receive(self, number: int, data: bytes, close: bool) -> None:
        """Take bytes from a socket, in whatever pieces."""
        key, link = self.sockets[number]
        buffer = self.received[number]
        buffer += data
        while len(buffer) >= 4 and len(buffer) >= 4 + (size := int.from_bytes(buffer[:4], "big")):
            whole = bytes(buffer[4 : 4 + size])
            del buffer[: 4 + size]
            if not self.connections[key].is_ready:
                self.connections[key].handle_frame(link, whole, self.now)
            elif self.asked is not None and self.asked[0] == key:
                _, version, correlation_id = self.asked
                self.asked = None
                answered, response = frame.decode_response(MetadataResponse, whole, version)
                assert answered == correlation_id
                self.take(self.cluster.handle_response(response, self.now, version))
        if close:
            del self.sockets[number]
            self.connections[key].handle_closed(link, None, self.now)

    def take(self, changes: ClusterChanges) -> None:
        """Keep the changes, and follow what they say of the nodes."""
        if changes:
            self.changes.append(changes)
        gone = [*changes.nodes_removed, *(old for old, _ in changes.nodes_readdressed)]
        for node in gone:
            key = ConnectionKey(Role.DATA, node.id)
            if key in self.connections:
                connection = self.connections.pop(key)
                connection.close()
                self.react(key, connection)


def make(
    versions: Mapping[int, tuple[int, int]] | None = None, *, auto_create: bool = True
) -> tuple[BrokerCluster, Client]:
    """Three brokers, whose ports are their ids, and a client."""
    nodes = [Node(node_id, f"10.0.0.{node_id}", node_id) for node_id in (1, 2, 3)]
    settings = Settings(auto_create=auto_create, partitions=3)
    brokers = BrokerCluster(nodes, settings, random.Random(7))
    if versions:
        brokers.faults.limit_versions(versions)
    return brokers, Client(brokers, 1)


@pytest.mark.parametrize("versions", [None, KAFKA_2_8, KAFKA_2_1])
def test_learns_a_cluster_of_any_age(versions: Mapping[int, tuple[int, int]] | None) -> None:
    brokers, client = make(versions)
    topic = brokers.create_topic("t", 3, 3)
    client.cluster.want_topic("t", 0.0)
    client.run(0.5)
    cluster = client.cluster
    assert cluster.cluster_id == brokers.state.cluster_id
    assert sorted(node.id for node in cluster.nodes) == [1, 2, 3]
    assert [p.leader_id for p in cluster.partitions("t")] == [p.leader for p in topic.partitions]
    assert (cluster.topic_id("t") is not None) == (versions is not KAFKA_2_1)
    assert client.asked_count == 1


def test_auto_created_topic_is_found() -> None:
    _, client = make()
    client.cluster.want_topic("fresh", 0.0)
    client.run(1.0)
    assert client.cluster.partition_count("fresh") == 3
    assert client.asked_count <= 3


def test_topic_that_does_not_exist_is_asked_for_at_the_pace_of_retries() -> None:
    brokers, client = make(auto_create=False)
    client.cluster.want_topic("late", 0.0)
    client.run(20.0)
    assert client.cluster.error("late") == 3
    assert 15 <= client.asked_count <= 30
    brokers.create_topic("late", 2, 1)
    client.run(1.5)
    assert client.cluster.partition_count("late") == 2


def test_leader_move_is_seen_after_a_refresh() -> None:
    brokers, client = make()
    topic = brokers.create_topic("t", 1, 3)
    client.cluster.want_topic("t", 0.0)
    client.run(0.5)
    old = topic.partitions[0].leader
    new = next(node for node in topic.partitions[0].replicas if node != old)
    brokers.move_leader("t", 0, new)
    client.cluster.request_refresh("NOT_LEADER_OR_FOLLOWER")
    client.run(0.2)
    change = client.changes[-1].leaders["t", 0]
    assert (change.old_leader_id, change.leader_id) == (old, new)


def test_recreated_topic() -> None:
    brokers, client = make()
    brokers.create_topic("t", 2, 1)
    client.cluster.want_topic("t", 0.0)
    client.run(0.5)
    brokers.delete_topic("t")
    brokers.create_topic("t", 1, 1)
    client.cluster.request_refresh("UNKNOWN_TOPIC_ID")
    client.run(0.2)
    assert [change.topic for change in client.changes[-1].recreated_topics] == ["t"]
    assert client.cluster.partition_count("t") == 1


def test_all_brokers_die_and_return() -> None:
    brokers, client = make()
    brokers.create_topic("t", 3, 3)
    client.cluster.want_topic("t", 0.0)
    client.run(0.5)
    for node_id in (1, 2, 3):
        brokers.kill(node_id)
    asked = client.asked_count
    for _ in range(60):
        client.cluster.request_refresh("socket error")
        client.run(1.0)
    assert client.asked_count <= asked + 1, "there is nobody to ask"
    assert len(client.failures) <= 60 / 0.8 + 20
    for node_id in (1, 2, 3):
        brokers.restart(node_id)
    client.run(3.0)
    assert all(client.cluster.leader("t", index) for index in range(3))
    assert client.cluster.topic_id("t") is not None
    assert not any(change.recreated_topics for change in client.changes)


def test_broker_that_loses_every_answer() -> None:
    brokers, client = make()
    brokers.create_topic("t", 1, 1)
    client.cluster.want_topic("t", 0.0)
    rule = brokers.faults.drop(api=METADATA, close=True)
    client.run(30.0)
    assert client.cluster.needs_bootstrap
    assert 20 <= client.asked_count <= 30 / 0.8 + 10
    rule.cancel()
    client.run(2.0)
    assert client.cluster.leader("t", 0) is not None
