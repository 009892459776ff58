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
    """The broker's log directory."""

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
        self.zookeeper: JavaProcess | None = None
        """Started, if the release needs one."""
        self.cluster_id = ""
        """The id that the storage was formatted with; empty with ZooKeeper."""
        self._layout = layout
        self._folder = Path(tempfile.mkdtemp(prefix="kafka-fast-", dir=data_root()))
        keep = os.environ.get("KAFKA_FAST_KEEP_BROKER_DATA", "0") != "0"
        self._reaper = Reaper(None if keep else self._folder)
        self._ports = PortPool()

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
        for process in [*self.nodes, *([self.zookeeper] if self.zookeeper else [])]:
            process.kill()
        self._reaper.close()
        self._ports.close()

    def _make_kraft(self) -> None:
        layout = self._layout
        self.cluster_id = _new_cluster_id()
        controllers = [self._ports.take_port() for _ in range(layout.nodes)]
        voters = ",".join(f"{i}@{HOST}:{port}" for i, port in enumerate(controllers, 1))
        failover = FAST_FAILOVER if layout.fast_failover and not layout.stock else {}
        if layout.nodes == 1 and not layout.stock:
            failover = failover | SINGLE_NODE
        for node_id, controller in enumerate(controllers, 1):
            own = {
                "process.roles": "broker,controller",
                "node.id": str(node_id),
                "controller.quorum.voters": voters,
                "controller.listener.names": CONTROLLER,
            }
            self._add_node(node_id, own | failover, {CONTROLLER: controller})
        self._format()

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
            self._add_node(node_id, own | failover, {})

    def _add_node(self, node_id: int, own: dict[str, str], controller: dict[str, int]) -> None:
        """Write the properties of one node, and add the node to the cluster."""
        layout, name = self._layout, f"node-{node_id}"
        host = STOCK_HOST if layout.stock else HOST
        ports = {listener: self._ports.take_port() for listener in layout.protocols}
        protocols = {**dict.fromkeys(controller, PLAINTEXT), **layout.protocols}
        properties = {
            **(STOCK_SINGLE_NODE if layout.stock else _common_properties(layout.nodes, node_id)),
            **own,
            "listeners": _listed(HOST, {**controller, **ports}),
            "advertised.listeners": _listed(host, ports),
            "listener.security.protocol.map": ",".join(map(":".join, protocols.items())),
            "inter.broker.listener.name": PLAINTEXT,
            "log.dirs": str(self._folder / name),
            **layout.overrides,
        }
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
        node.node_id, node.data_dir = node_id, self._folder / name
        node.ports = {**controller, **ports}
        node.host = host
        self.nodes.append(node)

    def _format(self) -> None:
        """Format the storage of all nodes in parallel, because most of it is a JVM's start."""
        running = []
        for node in self.nodes:
            config = str(self._folder / f"node-{node.node_id}.properties")
            command = [self._java, "-XX:TieredStopAtLevel=1", "-cp", "./*"]
            command += ["kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", config]
            running.append(
                subprocess.Popen(
                    [*command, *self._layout.format_options],
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
