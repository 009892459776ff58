"""Real Apache Kafka for tests: one node or three, fetched, started, killed, paused, restarted.

    with RealKafka(nodes=3, version="4.4.0") as kafka:
        kafka.create_topic("t", partitions=16)
        kafka.node(kafka.leader("t", 0)).kill()

The harness needs Java 17 and, the first time, Maven, but no container. Data lives on `/dev/shm` if
there is room. It is removed at the end of the block, even after an error
(`KAFKA_FAST_KEEP_BROKER_DATA=1` keeps data and logs). A broker is ready when its log says so: a
client that connects to the open port earlier may wait for many seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from kafka_fast import Admin
from kafka_fast.admin import NewTopic, TopicPartitionInfo
from kafka_fast.errors import BrokerError, UnknownTopicOrPartition
from kafka_fast.testing._kafka.broker_jars import DEFAULT_VERSION, RealKafkaError, release
from kafka_fast.testing._kafka.installation import (
    CONTROLLER,
    PLAINTEXT,
    Installation,
    Layout,
    Node,
)

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["RealKafka"]

T = TypeVar("T")

WAIT_TIMEOUT = 60.0
OFFSETS_TOPIC = "__consumer_offsets"
WAIT_POLL = 0.05
ADMIN_TIMEOUT_MS = 15_000
# A test's broker lives for seconds, and the C1 compiler alone starts faster and needs less memory.
TEST_JVM = ("-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class RealKafka:
    """A cluster of real brokers; use it in a `with` block.

    Args:
        nodes: 1 or 3. Three replicate every topic (min.insync.replicas=2) and elect controllers.
        version: a key of `broker_jars.RELEASES`; versions before 3.0 run with a ZooKeeper.
        overrides: broker properties that override those of the harness.
        fast_failover: short session timeouts, so that a dead leader is replaced in 2 to 3 s.
        jvm_options: replaces the options for short tests; benchmarks keep the C2 compiler.
        format_options: arguments of the storage format, `["--feature", "transaction.version=0"]`.
        stock: run one node with Kafka's `config/server.properties`, as a user would. The harness's
            own settings differ: groups do not wait for further members (3 s), no record is deleted
            for its age, names are not looked up, and topics must be created before their use.
        listeners: further listeners of each node, name -> security protocol (`secure_kafka`).
        log_dirs: how many log directories each node has.
        dynamic_quorum: have controllers that can be added and removed (KIP-853; Kafka 3.9).
    """

    def __init__(
        self,
        nodes: int = 1,
        version: str = DEFAULT_VERSION,
        *,
        overrides: Mapping[str, str | int | bool] | None = None,
        fast_failover: bool = True,
        jvm_options: Sequence[str] = TEST_JVM,
        format_options: Sequence[str] = (),
        stock: bool = False,
        listeners: Mapping[str, str] | None = None,
        log_dirs: int = 1,
        dynamic_quorum: bool = False,
    ) -> None:
        if nodes not in (1, 3):
            raise RealKafkaError(f"a cluster has 1 or 3 nodes, not {nodes}")
        if stock and nodes != 1:
            raise RealKafkaError("Kafka is delivered with the settings of one node, not of three")
        self.release = release(version)
        self._count = nodes
        self._overrides = {
            key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in (overrides or {}).items()
        }
        self._fast_failover = fast_failover
        self._jvm_options = tuple(jvm_options)
        self._format_options = tuple(format_options)
        self._stock = stock
        self._protocols = {PLAINTEXT: PLAINTEXT, **(listeners or {})}  # by listener
        self._log_dirs = log_dirs
        self._dynamic_quorum = dynamic_quorum
        self._installation: Installation | None = None

    def __enter__(self) -> Self:
        """Start the cluster, if `start` was not called before."""
        if self._installation is None:
            self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every process and remove the data."""
        self.close()

    @property
    def bootstrap(self) -> str:
        """The addresses of all nodes, as `bootstrap.servers` takes them."""
        return self.bootstrap_of(PLAINTEXT)

    @property
    def controllers(self) -> str:
        """The addresses of all controllers, as `bootstrap.controllers` takes them; KRaft only."""
        return self.bootstrap_of(CONTROLLER)

    def bootstrap_of(self, listener: str) -> str:
        """Return the addresses of one listener on all nodes, for `bootstrap.servers`."""
        return ",".join(f"{node.host}:{node.ports[listener]}" for node in self.nodes)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, running or not."""
        return () if self._installation is None else tuple(self._installation.nodes)

    @property
    def cluster_id(self) -> str:
        """The id that the storage was formatted with; empty with ZooKeeper."""
        return "" if self._installation is None else self._installation.cluster_id

    def node(self, node_id: int) -> Node:
        """Return the node with that id (1, 2, 3)."""
        return self.nodes[node_id - 1]

    def start(self) -> None:
        """Fetch missing jars, format the storage, start all nodes, wait until they serve.

        Raises:
            ToolMissingError: Java is missing, or Maven is and the cache has no jars.
            RealKafkaError: a node did not come up.
        """
        layout = Layout(
            release=self.release,
            nodes=self._count,
            overrides=self._overrides,
            fast_failover=self._fast_failover,
            jvm_options=self._jvm_options,
            format_options=self._format_options,
            stock=self._stock,
            protocols=self._protocols,
            log_dirs=self._log_dirs,
            dynamic_quorum=self._dynamic_quorum,
        )
        self._installation = Installation(layout)
        try:
            self._installation.make()
            for node in self.nodes:
                node.launch()
            for node in self.nodes:
                node.wait_ready()
            self._wait("every node in every node's metadata", self._all_see_all)
        except BaseException:
            self.close()
            raise

    def start_guest(self, role: str) -> Node:
        """Start one more node of a cluster that runs with KRaft; it is none of `nodes`.

        Args:
            role: "broker", or "controller" (with a dynamic quorum), which has no vote yet.
        """
        assert self._installation is not None
        node = self._installation.add_guest(role)
        node.start()
        return node

    def close(self) -> None:
        """Kill every process and remove the data, which is for one test only."""
        if self._installation is not None:
            self._installation.close()
            self._installation = None

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication: int | None = None,
        configs: Mapping[str, str] | None = None,
        replicas: Sequence[Sequence[int]] = (),
    ) -> None:
        """Create a topic; return when every running node knows a leader for each partition.

        Args:
            name: name of the topic.
            partitions: number of partitions.
            replication: number of replicas of each partition; None: one on each node.
            configs: topic configuration, `{"message.timestamp.type": "LogAppendTime"}`.
            replicas: the nodes of each partition, its leader first, in place of both numbers.
        """
        if replicas:
            new = NewTopic(name, assignments=dict(enumerate(replicas)), configs=configs or {})
        else:
            new = NewTopic(name, partitions, replication or self._count, configs=configs or {})
        with self._admin() as admin:
            admin.create_topics([new]).raise_first()
            admin.wait_until_topics_visible([name], timeout=WAIT_TIMEOUT)

    def delete_topic(self, name: str) -> None:
        """Delete a topic; return when no running node knows it."""
        with self._admin() as admin:
            admin.delete_topics([name]).raise_first()
        self._wait(f"the end of topic {name}", lambda: self._unknown_everywhere(name))

    def partitions(self, topic: str) -> dict[int, TopicPartitionInfo]:
        """Return a running node's view of the partitions of `topic`; empty if it knows none."""
        with self._admin() as admin:
            result = admin.describe_topics([topic])
            if isinstance(result.errors.get(topic), UnknownTopicOrPartition):
                return {}
            return {one.partition: one for one in result[topic].partitions}

    def leader(self, topic: str, partition: int) -> int:
        """Return the node id of the partition's leader; wait until a leader answers."""

        def find() -> int | None:
            info = self.partitions(topic).get(partition)
            if info is None or info.leader is None:
                return None
            return info.leader if self.node(info.leader) in self._answering() else None

        return self._wait(f"a leader of {topic}-{partition}", find)

    def wait_isr(self, topic: str, timeout: float = WAIT_TIMEOUT) -> None:
        """Return when every replica of every partition of `topic` is in sync."""

        def full() -> bool:
            infos = self.partitions(topic)
            return bool(infos) and all(
                info.leader is not None and set(info.isr) == set(info.replicas)
                for info in infos.values()
            )

        self._wait(f"full in-sync replicas of topic {topic}", full, timeout)

    def rolling_restart(self, topic: str) -> None:
        """Restart one node after the other. Before the next, wait until `topic` is in sync again.

        If there is a topic of the groups' offsets, wait for it as well.
        """
        for node in self.nodes:
            node.stop()
            node.start()
            self.wait_isr(topic)
            self._wait_offsets_isr()

    def heal(self) -> None:
        """Resume paused nodes and start nodes that are down; return when all nodes serve."""
        for node in self.nodes:
            if node.paused:
                node.resume()
        down = [node for node in self.nodes if not node.running]
        for node in down:
            node.launch()
        for node in down:
            node.wait_ready()
        self._wait("every node in every node's metadata", self._all_see_all)
        if down:
            self._wait_offsets_isr()

    def _wait_offsets_isr(self) -> None:
        """Wait until the offsets' topic is in sync, so that any next coordinator knows them all."""
        if self.partitions(OFFSETS_TOPIC):
            self.wait_isr(OFFSETS_TOPIC)

    @contextmanager
    def _admin(self, node: Node | None = None) -> Iterator[Admin]:
        """Connect an admin client; what a broker refuses is an error of the harness.

        Args:
            node: the first question goes to this node, because the client knows no other one yet;
                None: to any that can answer.

        Raises:
            RealKafkaError: no node runs, or the broker refused; the message is the broker's.
            OSError: no node answers.
        """
        servers = [one.address for one in ([node] if node else self._answering())]
        if not servers:
            raise RealKafkaError("no node runs")
        try:
            with Admin(
                bootstrap_servers=servers,
                client_id="kafka-fast-harness",
                default_api_timeout_ms=ADMIN_TIMEOUT_MS,
            ) as admin:
                yield admin
        except BrokerError as refusal:
            raise RealKafkaError(str(refusal)) from refusal

    def _all_see_all(self) -> bool:
        """Return whether each node's metadata lists every node."""
        whole = {node.node_id for node in self.nodes}
        return all(self._nodes_seen_by(node) == whole for node in self.nodes)

    def _nodes_seen_by(self, node: Node) -> set[int]:
        with self._admin(node) as admin:
            return {one.id for one in admin.describe_cluster().nodes}

    def _unknown_everywhere(self, topic: str) -> bool:
        """Return whether no node that can answer knows the topic."""
        return not any(topic in self._topics_seen_by(node) for node in self._answering())

    def _topics_seen_by(self, node: Node) -> set[str]:
        with self._admin(node) as admin:
            return set(admin.list_topics(include_internal=True))

    def _answering(self) -> list[Node]:
        """Return the nodes that run and are not paused."""
        return [node for node in self.nodes if node.running and not node.paused]

    def _wait(
        self, what: str, condition: Callable[[], T | None], timeout: float = WAIT_TIMEOUT
    ) -> T:
        """Return the first true value of `condition`; OSError means that a node is not ready."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                value = condition()
            except OSError:
                value = None
            if value:
                return value
            if time.monotonic() > deadline:
                raise RealKafkaError(f"waited {timeout:.0f} s for {what}")
            time.sleep(WAIT_POLL)
