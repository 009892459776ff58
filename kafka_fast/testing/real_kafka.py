"""Real Apache Kafka for tests: one node or three, fetched, started, killed, paused, restarted.

    with RealKafka(nodes=3, version="4.4.0") as kafka:
        kafka.create_topic("t", partitions=16)
        kafka.node(kafka.leader("t", 0)).kill()

The harness needs Java 17 and, the first time, Maven, but no container. Data lives on `/dev/shm` if
there is room. It is removed at the end of the block, even after an error
(`KAFKA_FAST_KEEP_BROKER_DATA=1` keeps data and logs). A broker is ready when its log says so: a
client that connects to the open port earlier may wait for many seconds. From a shell:

    python -m kafka_fast.testing.real_kafka start --nodes 3      # until Ctrl-C
    python -m kafka_fast.testing.real_kafka start --secure       # with TLS, SASL and ACLs
    python -m kafka_fast.testing.real_kafka fetch                # fill the cache only

`broker_jars` fetches the jars, `java_process` runs brokers, `cluster_admin` sends requests to them,
`secure_kafka` adds listeners with TLS and SASL.
"""

from __future__ import annotations

import argparse
import base64
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from kafka_fast.testing.broker_jars import (
    DEFAULT_VERSION,
    RELEASES,
    RealKafkaError,
    ToolMissingError,
    class_path,
    find_tool,
    release,
    schemas,
)
from kafka_fast.testing.cluster_admin import ClusterAdmin, PartitionState
from kafka_fast.testing.java_process import JavaProcess, PortPool, Reaper, data_root

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Node", "RealKafka", "RealKafkaError", "ToolMissingError", "main", "schemas"]

T = TypeVar("T")

WAIT_TIMEOUT = 60.0
OFFSETS_TOPIC = "__consumer_offsets"
WAIT_POLL = 0.05
PLAINTEXT = "PLAINTEXT"
"""The listener that the harness itself talks to, which every node has."""
CONTROLLER = "CONTROLLER"
HOST = "127.0.0.1"
STOCK_HOST = "localhost"  # clients look this name up, and may find ::1 first

# Consumers that name a rack are sent to the replica there (KIP-392); releases before 2.4 ignore it.
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

# With these a dead leader is replaced in 2 to 3 s instead of 9.
FAST_FAILOVER = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "200",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.election.timeout.ms": "500",
}
# No other node takes over from a single one, so a stalled node would only be fenced by itself.
SINGLE_NODE = {"broker.session.timeout.ms": "30000"}
FAST_FAILOVER_ZOOKEEPER = {"zookeeper.session.timeout.ms": "2000"}
# Settings of Kafka's own config/server.properties, without listeners and folders, that are not the
# properties' defaults. Without a second node these topics cannot have replicas.
STOCK_SINGLE_NODE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
# A test's broker lives for seconds, and the C1 compiler alone starts faster and needs less memory.
TEST_JVM = ("-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class Node(JavaProcess):
    """One broker of the cluster.

    Attributes:
        node_id: 1, 2, 3.
        ports: listener name -> port on the loopback address; unchanged by restarts.
        host: the loopback address as clients get it.
        data_dir: the broker's log directory.
    """

    node_id: int
    ports: dict[str, int]
    data_dir: Path

    host: str = HOST

    @property
    def port(self) -> int:
        """The port of the listener without TLS and SASL."""
        return self.ports[PLAINTEXT]

    @property
    def address(self) -> str:
        """`host:port` for clients without TLS and SASL."""
        return f"{self.host}:{self.port}"


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

    Attributes:
        cluster_id: the id that the storage was formatted with; empty with ZooKeeper.
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
    ) -> None:
        if nodes not in (1, 3):
            raise RealKafkaError(f"a cluster has 1 or 3 nodes, not {nodes}")
        if stock and nodes != 1:
            raise RealKafkaError("Kafka is delivered with the settings of one node, not of three")
        self.release = release(version)
        self.cluster_id = ""
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
        self._nodes: list[Node] = []
        self._zookeeper: JavaProcess | None = None
        self._reaper: Reaper | None = None
        self._ports: PortPool | None = None
        self._dir = Path()

    def __enter__(self) -> Self:
        """Start the cluster, if `start` was not called before."""
        if not self._nodes:
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

    def bootstrap_of(self, listener: str) -> str:
        """Return the addresses of one listener on all nodes, for `bootstrap.servers`."""
        return ",".join(f"{node.host}:{node.ports[listener]}" for node in self._nodes)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, running or not."""
        return tuple(self._nodes)

    def node(self, node_id: int) -> Node:
        """Return the node with that id (1, 2, 3)."""
        return self._nodes[node_id - 1]

    def start(self) -> None:
        """Fetch missing jars, format the storage, start all nodes, wait until they serve.

        Raises:
            ToolMissingError: Java is missing, or Maven is and the cache has no jars.
            RealKafkaError: a node did not come up.
        """
        java, jars = find_tool("java"), class_path(self.release.version)
        self._dir = Path(tempfile.mkdtemp(prefix="kafka-fast-", dir=data_root()))
        keep = os.environ.get("KAFKA_FAST_KEEP_BROKER_DATA", "0") != "0"
        self._reaper = Reaper(None if keep else self._dir)
        self._ports = PortPool()
        try:
            if self.release.kraft:
                self._prepare_kraft(java, jars)
            else:
                self._prepare_zookeeper(java, jars)
            for node in self._nodes:
                node.launch()
            for node in self._nodes:
                node.wait_ready()
            self._wait("every node in every node's metadata", self._all_see_all)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Kill every process and remove the data, which is for one test only."""
        for process in [*self._nodes, *([self._zookeeper] if self._zookeeper else [])]:
            process.kill()
        self._nodes.clear()
        self._zookeeper = None
        if self._reaper is not None:
            self._reaper.close()
            self._reaper = None
        if self._ports is not None:
            self._ports.close()
            self._ports = None

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic; return when every running node knows a leader for each partition.

        Args:
            name: name of the topic.
            partitions: number of partitions.
            replication: number of replicas of each partition; None: one on each node.
            configs: topic configuration, `{"message.timestamp.type": "LogAppendTime"}`.
        """
        with self._admin() as admin:
            admin.create_topic(name, partitions, replication or self._count, configs or {})
        self._wait(f"leaders of topic {name}", lambda: self._led_everywhere(name, partitions))

    def delete_topic(self, name: str) -> None:
        """Delete a topic; return when no running node knows it."""
        with self._admin() as admin:
            admin.delete_topic(name)
        self._wait(f"the end of topic {name}", lambda: self._unknown_everywhere(name))

    def partitions(self, topic: str) -> dict[int, PartitionState]:
        """Return a running node's view of the partitions of `topic`; empty if it knows none."""
        with self._admin() as admin:
            return admin.partitions(topic)

    def leader(self, topic: str, partition: int) -> int:
        """Return the node id of the partition's leader; wait until a leader answers."""

        def find() -> int | None:
            state = self.partitions(topic).get(partition)
            if state is None or state.leader < 0:
                return None
            return state.leader if self.node(state.leader) in self._answering() else None

        return self._wait(f"a leader of {topic}-{partition}", find)

    def wait_isr(self, topic: str, timeout: float = WAIT_TIMEOUT) -> None:
        """Return when every replica of every partition of `topic` is in sync."""

        def full() -> bool:
            states = self.partitions(topic)
            return bool(states) and all(
                state.leader > 0 and set(state.isr) == set(state.replicas)
                for state in states.values()
            )

        self._wait(f"full in-sync replicas of topic {topic}", full, timeout)

    def rolling_restart(self, topic: str) -> None:
        """Restart one node after the other. Before the next, wait until `topic` is in sync again.

        If there is a topic of the groups' offsets, wait for it as well.
        """
        for node in self._nodes:
            node.stop()
            node.start()
            self.wait_isr(topic)
            self._wait_offsets_isr()

    def heal(self) -> None:
        """Resume paused nodes and start nodes that are down; return when all nodes serve."""
        for node in self._nodes:
            if node.paused:
                node.resume()
        down = [node for node in self._nodes if not node.running]
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

    def _admin(self) -> ClusterAdmin:
        """Return a connection to the first node that can answer."""
        for node in self._answering():
            return ClusterAdmin(HOST, node.port)
        raise RealKafkaError("no node runs")

    def _all_see_all(self) -> bool:
        """Return whether each node's metadata lists every node."""
        wanted = {node.node_id for node in self._nodes}
        return all(self._ask(node, lambda admin: admin.nodes()) == wanted for node in self._nodes)

    def _led_everywhere(self, topic: str, partitions: int) -> bool:
        """Return whether each node that can answer knows a leader for every partition."""
        for node in self._answering():
            states = self._ask(node, lambda admin: admin.partitions(topic)) or {}
            if len(states) < partitions or any(state.leader < 0 for state in states.values()):
                return False
        return True

    def _unknown_everywhere(self, topic: str) -> bool:
        """Return whether no node that can answer knows the topic."""
        return all(
            self._ask(node, lambda admin: admin.partitions(topic)) == {}
            for node in self._answering()
        )

    def _answering(self) -> list[Node]:
        """Return the nodes that run and are not paused."""
        return [node for node in self._nodes if node.running and not node.paused]

    def _ask(self, node: Node, question: Callable[[ClusterAdmin], T]) -> T | None:
        """Return the node's answer, or None if it does not answer yet."""
        try:
            with ClusterAdmin(HOST, node.port) as admin:
                return question(admin)
        except OSError:
            return None

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

    def _prepare_kraft(self, java: str, jars: Path) -> None:
        """Write the properties of each node and format its storage."""
        self.cluster_id = _new_cluster_id()
        controllers = [self._port() for _ in range(self._count)]
        voters = ",".join(f"{i}@{HOST}:{port}" for i, port in enumerate(controllers, 1))
        failover = FAST_FAILOVER if self._fast_failover and not self._stock else {}
        if self._count == 1 and not self._stock:
            failover = failover | SINGLE_NODE
        for node_id, controller in enumerate(controllers, 1):
            own = {
                "process.roles": "broker,controller",
                "node.id": str(node_id),
                "controller.quorum.voters": voters,
                "controller.listener.names": CONTROLLER,
            }
            self._add_node(java, jars, node_id, own | failover, {CONTROLLER: controller})
        self._format(java, jars)

    def _prepare_zookeeper(self, java: str, jars: Path) -> None:
        """Write the properties of each node, and start the nodes' ZooKeeper."""
        assert self._reaper is not None
        client_port = self._port()
        config = self._dir / "zookeeper.properties"
        # A short tick permits the short sessions of a fast failover.
        _write_properties(
            config,
            {
                "dataDir": str(self._dir / "zookeeper"),
                "clientPort": str(client_port),
                "clientPortAddress": HOST,
                "admin.enableServer": "false",
                "tickTime": "500",
            },
        )
        main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._zookeeper = JavaProcess(
            "ZooKeeper",
            [java, "-Xmx128m", self.release.log_option, "-cp", "./*", main_class, str(config)],
            cwd=jars,
            log_path=self._dir / "zookeeper.log",
            ready=f"binding to port /{HOST}:{client_port}",
            reaper=self._reaper,
        )
        self._zookeeper.start()
        failover = FAST_FAILOVER_ZOOKEEPER if self._fast_failover and self._count > 1 else {}
        for node_id in range(1, self._count + 1):
            own = {
                "broker.id": str(node_id),
                "zookeeper.connect": f"{HOST}:{client_port}/kafka",
            }
            self._add_node(java, jars, node_id, own | failover, {})

    def _add_node(
        self, java: str, jars: Path, node_id: int, own: dict[str, str], controller: dict[str, int]
    ) -> None:
        """Write the properties of one node, and add the node to the cluster."""
        assert self._reaper is not None
        name = f"node-{node_id}"
        host = STOCK_HOST if self._stock else HOST
        ports = {listener: self._port() for listener in self._protocols}
        protocols = {**dict.fromkeys(controller, PLAINTEXT), **self._protocols}
        properties = {
            **(STOCK_SINGLE_NODE if self._stock else _common_properties(self._count, node_id)),
            **own,
            "listeners": _listed(HOST, {**controller, **ports}),
            "advertised.listeners": _listed(host, ports),
            "listener.security.protocol.map": ",".join(map(":".join, protocols.items())),
            "inter.broker.listener.name": PLAINTEXT,
            "log.dirs": str(self._dir / name),
            **self._overrides,
        }
        config = self._dir / f"{name}.properties"
        _write_properties(config, properties)
        options = [*self._jvm_options, self.release.log_option]
        node = Node(
            f"Kafka {self.release.version} {name}",
            [java, *options, "-cp", "./*", "kafka.Kafka", str(config)],
            cwd=jars,
            log_path=self._dir / f"{name}.log",
            ready=self.release.ready_line,
            reaper=self._reaper,
        )
        node.node_id, node.ports, node.data_dir = node_id, ports, self._dir / name
        node.host = host
        self._nodes.append(node)

    def _format(self, java: str, jars: Path) -> None:
        """Format the storage of all nodes in parallel, because most of it is a JVM's start."""
        running = []
        for node in self._nodes:
            config = str(self._dir / f"node-{node.node_id}.properties")
            command = [java, "-XX:TieredStopAtLevel=1", "-cp", "./*", "kafka.tools.StorageTool"]
            command += ["format", "-t", self.cluster_id, "-c", config, *self._format_options]
            running.append(
                subprocess.Popen(
                    command,
                    cwd=jars,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
        said = [process.communicate()[0] for process in running]
        for process, output in zip(running, said, strict=True):
            if process.returncode != 0:
                raise RealKafkaError(f"the storage could not be formatted:\n{output.strip()}")

    def _port(self) -> int:
        assert self._ports is not None
        return self._ports.take()


def _new_cluster_id() -> str:
    """Return a random id in Kafka's form: 16 bytes in base64, without a leading dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def _listed(host: str, ports: Mapping[str, int]) -> str:
    """Return listeners as Kafka's properties have them."""
    return ",".join(f"{listener}://{host}:{port}" for listener, port in ports.items())


def _common_properties(nodes: int, node_id: int) -> dict[str, str]:
    """Return a node's properties for tests of the client."""
    properties = {
        "broker.rack": f"rack{node_id}",
        "replica.selector.class": RACK_AWARE,
        "auto.create.topics.enable": "false",
        "auto.leader.rebalance.enable": "false",  # comes after minutes, in the middle of a test
        "default.replication.factor": str(nodes),
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": str(4 << 20),
        "log.retention.ms": "-1",  # records may have any timestamp, and brokers live for minutes
        "min.insync.replicas": str(min(2, nodes)),
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": str(nodes),
    }
    for log in ("transaction.state.log", "share.coordinator.state.topic"):
        properties[f"{log}.num.partitions"] = "3"
        properties[f"{log}.replication.factor"] = str(nodes)
        properties[f"{log}.min.isr"] = str(min(2, nodes))
    return properties


def _write_properties(path: Path, properties: Mapping[str, str]) -> None:
    """Write a Java properties file."""
    escaped = (f"{key}={value}".replace("\\", "\\\\") for key, value in properties.items())
    path.write_text("\n".join(escaped) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the harness from a shell; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m kafka_fast.testing.real_kafka")
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("start", help="start a cluster and keep it until Ctrl-C")
    start.add_argument("--nodes", type=int, choices=(1, 3), default=1)
    start.add_argument("--stock", action="store_true", help="one node with Kafka's own settings")
    start.add_argument(
        "--secure", action="store_true", help="TLS, SASL and ACLs; writes properties for clients"
    )
    start.add_argument("--override", action="append", default=[], metavar="KEY=VALUE")
    fetch = commands.add_parser("fetch", help="only fill the cache")
    for command in (start, fetch):
        command.add_argument("--version", choices=tuple(RELEASES), default=DEFAULT_VERSION)
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "fetch":
            find_tool("java")
            print(class_path(chosen.version))
            return 0
        overrides = dict(pair.partition("=")[::2] for pair in chosen.override)
        # SIGTERM ends the cluster as Ctrl-C does.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if chosen.secure:
            _serve_securely(chosen.nodes, chosen.version, overrides)
            return 0
        kafka = RealKafka(chosen.nodes, chosen.version, overrides=overrides, stock=chosen.stock)
        with kafka:
            print(kafka.bootstrap, flush=True)
            signal.pause()
    except KeyboardInterrupt:
        pass
    except RealKafkaError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _serve_securely(nodes: int, version: str, overrides: Mapping[str, str]) -> None:
    """Run a cluster with TLS, SASL and ACLs, and name the properties that clients take."""
    from kafka_fast.testing.secure_kafka import USERS, SecureKafka  # builds on this module

    with (
        tempfile.TemporaryDirectory(prefix="kafka-fast-secure-") as folder,
        SecureKafka(Path(folder), nodes, version, overrides=overrides) as kafka,
    ):
        print(kafka.bootstrap)
        print(*kafka.write_properties(Path(folder)), sep="\n")
        print("users:", ", ".join(map("/".join, USERS.items())), flush=True)
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
