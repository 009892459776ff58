"""What a cluster of real brokers is made of: properties, formatted storage, nodes, a ZooKeeper.

`RealKafka` says what is wanted (`Layout`), and starts and ends what is made here. Nothing here
talks to a broker.
"""

from __future__ import annotations

import base64
import os
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka_fast.testing._client_properties import write_properties_file
from kafka_fast.testing._kafka.broker_jars import RealKafkaError, Release, class_path, find_tool
from kafka_fast.testing._kafka.java_process import JavaProcess, PortPool, Reaper, data_root

__all__ = ["HOST", "PLAINTEXT", "Installation", "Layout", "Node"]

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


class Node(JavaProcess):
    """One broker of the cluster."""

    node_id: int
    """1, 2, 3."""
    ports: dict[str, int]
    """Listener name -> port on the loopback address; unchanged by restarts."""
    data_dir: Path
    """The broker's log directory; the first, if it has several."""

    host: str = HOST
    """The loopback address as clients get it."""

    @property
    def port(self) -> int:
        """The port of the listener without TLS and SASL."""
        return self.ports[PLAINTEXT]

    @property
    def address(self) -> str:
        """`host:port` for clients without TLS and SASL."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What a cluster is to be like; `RealKafka` explains each of these."""

    release: Release
    nodes: int
    overrides: Mapping[str, str]
    fast_failover: bool
    jvm_options: Sequence[str]
    format_options: Sequence[str]
    stock: bool
    protocols: Mapping[str, str]
    """Listener -> its security protocol."""
    log_dirs: int
    dynamic_quorum: bool


class Installation:
    """The files and the processes of one cluster."""

    def __init__(self, layout: Layout) -> None:
        """Fetch missing jars; `make` does the rest.

        Raises:
            ToolMissingError: Java is missing, or Maven is and the cache has no jars.
        """
        self._java, self._jars = find_tool("java"), class_path(layout.release.version)
        self.nodes: list[Node] = []
        """None of them started."""
        self.guests: list[Node] = []
        """Those that `add_guest` has added."""
        self.zookeeper: JavaProcess | None = None
        """Started, if the release needs one."""
        self.cluster_id = ""
        """The id that the storage was formatted with; empty with ZooKeeper."""
        self._layout = layout
        self._folder = Path(tempfile.mkdtemp(prefix="kafka-fast-", dir=data_root()))
        keep = os.environ.get("KAFKA_FAST_KEEP_BROKER_DATA", "0") != "0"
        self._reaper = Reaper(None if keep else self._folder)
        self._ports = PortPool()
        self._controllers: dict[int, int] = {}  # node id -> port, of those that found the quorum

    def make(self) -> None:
        """Write the properties of each node, and format its storage or start the ZooKeeper.

        Raises:
            RealKafkaError: the storage cannot be formatted, or the ZooKeeper does not come up.
        """
        if self._layout.release.kraft:
            self._make_kraft()
        else:
            self._make_zookeeper()

    def close(self) -> None:
        """Kill every process and remove the data, which is for one test only."""
        zookeepers = [self.zookeeper] if self.zookeeper else []
        for process in [*self.guests, *self.nodes, *zookeepers]:
            process.kill()
        self._reaper.close()
        self._ports.close()

    def _make_kraft(self) -> None:
        layout = self._layout
        self.cluster_id = _new_id()
        node_ids = range(1, layout.nodes + 1)
        self._controllers = {node_id: self._ports.take_port() for node_id in node_ids}
        for node_id, port in self._controllers.items():
            own = self._kraft_properties(node_id, "broker,controller")
            self.nodes.append(self._new_node(node_id, own, {CONTROLLER: port}))
        options = list(layout.format_options)
        if layout.dynamic_quorum:
            founders = (
                f"{node_id}@{HOST}:{port}:{_new_id()}"
                for node_id, port in self._controllers.items()
            )
            options += ["--initial-controllers", ",".join(founders)]
        self._format(self.nodes, options)

    def _kraft_properties(self, node_id: int, roles: str) -> dict[str, str]:
        """Return the properties of a node, by the roles that it has."""
        layout, controllers = self._layout, self._controllers
        own = {
            "process.roles": roles,
            "node.id": str(node_id),
            "controller.listener.names": CONTROLLER,
        }
        if layout.dynamic_quorum:
            servers = (f"{HOST}:{port}" for port in controllers.values())
            own["controller.quorum.bootstrap.servers"] = ",".join(servers)
        else:
            voters = (f"{voter}@{HOST}:{port}" for voter, port in controllers.items())
            own["controller.quorum.voters"] = ",".join(voters)
        if layout.fast_failover and not layout.stock:
            own |= FAST_FAILOVER
        if layout.nodes == 1 and not layout.stock:
            own |= SINGLE_NODE
        return own

    def add_guest(self, role: str) -> Node:
        """Make one more node of a cluster that runs. It is not started.

        Args:
            role: "controller", which has no vote yet, or "broker".
        """
        node_id = len(self.nodes) + len(self.guests) + 1
        has_vote_to_come = role == "controller"
        controller = {CONTROLLER: self._ports.take_port()} if has_vote_to_come else {}
        node = self._new_node(node_id, self._kraft_properties(node_id, role), controller)
        self._format([node], ["--no-initial-controllers"] if has_vote_to_come else [])
        self.guests.append(node)
        return node

    def _make_zookeeper(self) -> None:
        layout = self._layout
        client_port = self._ports.take_port()
        # A short tick permits the short sessions of a fast failover.
        config = write_properties_file(
            self._folder / "zookeeper.properties",
            {
                "dataDir": str(self._folder / "zookeeper"),
                "clientPort": str(client_port),
                "clientPortAddress": HOST,
                "admin.enableServer": "false",
                "tickTime": "500",
            },
        )
        main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        options = ["-Xmx128m", layout.release.log_option]
        self.zookeeper = JavaProcess(
            "ZooKeeper",
            [self._java, *options, "-cp", "./*", main_class, str(config)],
            cwd=self._jars,
            log_path=self._folder / "zookeeper.log",
            ready=f"binding to port /{HOST}:{client_port}",
            reaper=self._reaper,
        )
        self.zookeeper.start()
        failover = FAST_FAILOVER_ZOOKEEPER if layout.fast_failover and layout.nodes > 1 else {}
        for node_id in range(1, layout.nodes + 1):
            own = {
                "broker.id": str(node_id),
                "zookeeper.connect": f"{HOST}:{client_port}/kafka",
            }
            self.nodes.append(self._new_node(node_id, own | failover, {}))

    def _new_node(self, node_id: int, own: dict[str, str], controller: dict[str, int]) -> Node:
        """Write the properties of one node, and return it."""
        layout, name = self._layout, f"node-{node_id}"
        host = STOCK_HOST if layout.stock else HOST
        is_broker = own.get("process.roles") != "controller"
        listeners = layout.protocols if is_broker else ()
        ports = {listener: self._ports.take_port() for listener in listeners}
        protocols = {**dict.fromkeys(controller, PLAINTEXT), **layout.protocols}
        if not controller and CONTROLLER in own.values():
            protocols[CONTROLLER] = PLAINTEXT  # others have it, and this node connects to them
        folders = [self._folder / name]
        folders += [self._folder / f"{name}-{more}" for more in range(2, layout.log_dirs + 1)]
        properties = {
            **(STOCK_SINGLE_NODE if layout.stock else _common_properties(layout.nodes, node_id)),
            **own,
            "listeners": _listed(HOST, {**controller, **ports}),
            "listener.security.protocol.map": ",".join(map(":".join, protocols.items())),
            "log.dirs": ",".join(map(str, folders)),
            **layout.overrides,
        }
        if is_broker:
            properties["advertised.listeners"] = _listed(host, ports)
            properties["inter.broker.listener.name"] = PLAINTEXT
        config = write_properties_file(self._folder / f"{name}.properties", properties)
        options = [*layout.jvm_options, layout.release.log_option]
        node = Node(
            f"Kafka {layout.release.version} {name}",
            [self._java, *options, "-cp", "./*", "kafka.Kafka", str(config)],
            cwd=self._jars,
            log_path=self._folder / f"{name}.log",
            ready=layout.release.ready_line,
            reaper=self._reaper,
        )
        node.node_id, node.data_dir = node_id, folders[0]
        node.ports = {**controller, **ports}
        node.host = host
        return node

    def _format(self, nodes: Sequence[Node], options: Sequence[str]) -> None:
        """Format the storage of nodes in parallel, because most of it is a JVM's start."""
        running = []
        for node in nodes:
            config = str(self._folder / f"node-{node.node_id}.properties")
            command = [self._java, "-XX:TieredStopAtLevel=1", "-cp", "./*"]
            command += ["kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", config]
            running.append(
                subprocess.Popen(
                    [*command, *options],
                    cwd=self._jars,
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


def _new_id() -> str:
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
