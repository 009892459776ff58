"""The embedded broker as a server: in a thread of this process, or as a process of its own.

    with EmbeddedKafka(brokers=3) as kafka:
        kafka.create_topic("t", partitions=6)
        kafka.produce("t", ["a", "b"], keys=["1", "2"])
        producer = Producer(bootstrap_servers=kafka.bootstrap)
        kafka.move_leader("t", 0, node_id=2)
        kafka.faults.error(PRODUCE, NotEnoughReplicas, topic="t", count=3)
        ...
        assert kafka.records("t", 0)[0].value == b"hello"

Listens on the loopback address, on free ports. Everything is in memory and gone at the end.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
import random
import signal
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from kafka_fast.errors import ConfigError, InvalidConfig, KafkaTimeoutError, UsageError
from kafka_fast.record import Record
from kafka_fast.testing.broker.acls import acl_rules
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.faults import Faults
from kafka_fast.testing.broker.groups.settings import GroupSettings
from kafka_fast.testing.broker.partitions import filling
from kafka_fast.testing.broker.partitions.cluster_topics import TopicConfig
from kafka_fast.testing.broker.security import Security
from kafka_fast.testing.broker.serving.sockets import Listener, SocketServer
from kafka_fast.testing.broker.state import Node, Settings
from kafka_fast.testing.broker.transactions.settings import TransactionSettings

if TYPE_CHECKING:
    from typing_extensions import Self

log = logging.getLogger(__name__)

T = TypeVar("T")

LOOPBACK = "127.0.0.1"
DEFAULT_REPLICAS = 3  # or fewer, where there are fewer brokers

MAX_NODE_ID = 0x7FFF_FFFF

WAIT = 10.0
"""Seconds that a test waits for what the tested code does in other threads or processes."""
_LOOK_AGAIN = 0.01


class EmbeddedKafka:
    """A running cluster; use it as a context manager, or call `start` and `stop`."""

    def __init__(
        self,
        brokers: int = 1,
        *,
        partitions: int = 1,
        replication_factor: int | None = None,
        auto_create: bool = True,
        topic_config: Mapping[str, str] | None = None,
        racks: Sequence[str] | None = None,
        node_ids: Sequence[int] | None = None,
        groups: GroupSettings | None = None,
        transactions: TransactionSettings | None = None,
        host: str = LOOPBACK,
        ports: Sequence[int] | None = None,
        insecure_bind: bool = False,
        security: Security | None = None,
        tls: ssl.SSLContext | None = None,
        seed: int = 0,
    ) -> None:
        """Describe the cluster; `start` starts it.

        Args:
            brokers: their number.
            partitions: of a topic that does not say.
            replication_factor: of a topic that does not say; None: 3, or one for each broker.
            auto_create: whether a client that asks for an unknown topic gets it made.
            topic_config: settings of topics, over Kafka's defaults.
            racks: of the brokers; then a consumer reads from the replica in its rack (KIP-392).
            node_ids: of the brokers, different ones from 0 on; None: they count from 1.
            groups: settings of consumer groups; None: Kafka's.
            transactions: settings of transactions, and their version; None: Kafka's.
            host: address to listen on.
            ports: one for each broker; None: free ones.
            insecure_bind: allow a host that is not loopback.
            security: SASL and ACLs; None: everybody may do everything.
            tls: a server's context, then all clients have to speak TLS. If it asks for clients'
                certificates, their common names are the users.
            seed: of everything random: ids, and which requests a fault strikes.

        Raises:
            ConfigError: the arguments contradict each other, the host is not loopback, or a topic
                setting is not known or not valid.
        """
        if brokers < 1:
            raise ConfigError(f"{brokers} brokers make no cluster")
        if ports is not None and len(ports) != brokers:
            raise ConfigError(f"{len(ports)} ports for {brokers} brokers")
        if racks is not None and len(racks) != brokers:
            raise ConfigError(f"{len(racks)} racks for {brokers} brokers")
        ids = list(range(1, brokers + 1)) if node_ids is None else list(node_ids)
        if len(ids) != brokers or len(set(ids)) != brokers:
            raise ConfigError(f"{len(set(ids))} different node ids for {brokers} brokers")
        if not all(0 <= node_id <= MAX_NODE_ID for node_id in ids):
            raise ConfigError(f"a node id is a number from 0 to {MAX_NODE_ID}, so not all of {ids}")
        if not insecure_bind and not _is_loopback(host):
            raise ConfigError(f"{host} is not loopback; insecure_bind=True exposes the broker")
        try:
            TopicConfig.from_texts(dict(topic_config or {}))
        except InvalidConfig as error:
            raise ConfigError(str(error.args[0])) from error
        self._host = host
        self._racks = list(racks) if racks is not None else [None] * brokers
        self._node_ids = ids
        self._ports = list(ports) if ports is not None else [0] * brokers
        self._settings = Settings(
            partitions=partitions,
            replication_factor=replication_factor or min(DEFAULT_REPLICAS, brokers),
            auto_create=auto_create,
            topic_config=dict(topic_config or {}),
            closest_replica=racks is not None,
            groups=groups or GroupSettings(),
            transactions=transactions or TransactionSettings(),
            security=security or Security(mechanisms=()),
            unix_ms_at_zero=int((time.time() - time.monotonic()) * 1000),
        )
        self._tls = tls
        self._seed = seed
        self._cluster: Cluster | None = None
        self._server: SocketServer | None = None
        self._thread: threading.Thread | None = None

    # ---- life ----

    def __enter__(self) -> Self:
        """Start the cluster."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the cluster."""
        self.stop()

    def start(self) -> None:
        """Listen and serve in a thread; returns when clients can connect."""
        self._prepare()
        log.info("embedded broker for tests, not for data: %s", self.bootstrap)
        self._thread = threading.Thread(
            target=self._running_server.serve, name="kf-embedded-broker", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Close all connections and ports; the records are gone. May be called twice."""
        server, thread = self._server, self._thread
        self._server = self._thread = None
        if server is not None:
            server.stop()
        if thread is not None:
            thread.join()

    def serve_forever(self) -> None:
        """Serve in this thread until SIGINT or SIGTERM (main thread only)."""
        self._prepare()
        server = self._running_server

        def end(number: int, frame: FrameType | None) -> None:
            server.stop()

        old = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            sys.stdout.write(f"embedded broker for tests, not for data: {self.bootstrap}\n")
            sys.stdout.flush()
            server.serve()
        finally:
            self._server = None
            for number, handler in old.items():
                signal.signal(number, handler)

    def _prepare(self) -> None:
        if self._server is not None:
            raise UsageError("the embedded broker runs already")
        listeners: dict[int, Listener] = {}
        try:
            for node_id, port in zip(self._node_ids, self._ports, strict=True):
                listeners[node_id] = self._listen(port)
        except OSError:
            for listener in listeners.values():
                listener.close()
            raise
        nodes = [
            Node(node_id, self._host, one.port, rack)
            for (node_id, one), rack in zip(listeners.items(), self._racks, strict=True)
        ]
        self._cluster = Cluster(nodes, self._settings, random.Random(self._seed))
        self._server = SocketServer(self._cluster, listeners, self._tls)

    def _listen(self, port: int) -> Listener:
        try:
            return Listener(self._host, port)
        except OSError as error:
            why = f"port {port} of {self._host} is in use"
            if error.errno != errno.EADDRINUSE:
                why = f"{self._host}:{port}: {error.strerror or error}"
            raise OSError(error.errno, why) from error

    # ---- what it is ----

    @property
    def bootstrap(self) -> str:
        """Return the addresses of all brokers, as `bootstrap.servers` takes them."""
        nodes = self._running_cluster.state.nodes.values()
        return ",".join(f"{node.host}:{node.port}" for node in nodes)

    @property
    def faults(self) -> Faults:
        """Return the rules of what goes wrong; they may be changed at any time."""
        return self._running_cluster.faults

    def leader(self, topic: str, partition: int) -> int:
        """Return the node id of a partition's leader, -1 if there is none."""
        return self.on_cluster(lambda cluster: cluster.state.partition(topic, partition).leader)

    def end_offset(self, topic: str, partition: int) -> int:
        """Return the offset that the partition's next record gets."""
        return self.on_cluster(
            lambda cluster: cluster.state.partition(topic, partition).log.end_offset
        )

    def records(self, topic: str, partition: int | None = None) -> list[Record]:
        """Return the records in a topic's logs.

        Args:
            topic: the topic's name.
            partition: only of this one; None: of all partitions, one after the other.

        Raises:
            UnknownTopicOrPartition: there is none.
        """

        def find(cluster: Cluster) -> list[Record]:
            if partition is not None:
                return cluster.records(topic, partition)
            cluster.state.partition(topic, 0)  # raises if there is no such topic
            count = len(cluster.state.topics[topic].partitions)
            return [record for index in range(count) for record in cluster.records(topic, index)]

        return self.on_cluster(find)

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Return the offsets that a group has committed: topic and partition -> offset."""
        return self.on_cluster(lambda cluster: cluster.committed(group))

    @property
    def security_protocol(self) -> str:
        """Return what clients have to speak: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        below = "PLAINTEXT" if self._tls is None else "SSL"
        return f"SASL_{below}" if self._settings.security.mechanisms else below

    # ---- waiting for the tested code ----

    def wait_for_records(self, topic: str, count: int, timeout: float = WAIT) -> list[Record]:
        """Return the records in a topic's logs as soon as there are `count`, or more.

        Args:
            topic: the topic's name; it need not exist yet.
            count: how many are awaited, in all partitions together.
            timeout: seconds.

        Raises:
            KafkaTimeoutError: there were fewer; it says how many.
        """
        deadline = time.monotonic() + timeout
        while True:
            exists = self.on_cluster(lambda cluster: topic in cluster.state.topics)
            records = self.records(topic) if exists else []
            if len(records) >= count:
                return records
            if time.monotonic() >= deadline:
                there = (
                    f"{len(records)} of {count} records are there" if exists else "no such topic"
                )
                raise KafkaTimeoutError(f"topic {topic!r} after {timeout:g} s: {there}")
            time.sleep(_LOOK_AGAIN)

    def wait_for_commit(
        self, group: str, topic: str, offset: int, *, partition: int = 0, timeout: float = WAIT
    ) -> None:
        """Wait until a group has committed this offset of a partition, or a later one.

        Args:
            group: its id.
            topic: the topic's name.
            offset: of the record that the group reads next.
            partition: of the topic.
            timeout: seconds.

        Raises:
            KafkaTimeoutError: it has not; it says what it has committed.
        """
        deadline = time.monotonic() + timeout
        while (committed := self.committed(group).get((topic, partition), -1)) < offset:
            if time.monotonic() >= deadline:
                what = f"offset {committed}" if committed >= 0 else "nothing"
                raise KafkaTimeoutError(
                    f"group {group!r} has committed {what} of {topic}-{partition} after "
                    f"{timeout:g} s, not {offset}"
                )
            time.sleep(_LOOK_AGAIN)

    # ---- commands ----

    def produce(
        self,
        topic: str,
        values: Sequence[filling.Part],
        *,
        keys: Sequence[filling.Part] | None = None,
        partition: int | None = None,
        headers: filling.Headers = None,
        timestamp_ms: int | None = None,
    ) -> list[tuple[int, int]]:
        """Write records, at once and without a client; return partition and offset of each.

        Faults do not strike here. A topic that does not exist is created, unless the cluster was
        told not to.

        Args:
            topic: the topic's name.
            values: bytes, str (written in UTF-8) or None, which is a tombstone.
            keys: bytes, str or None, one for each value; None: no keys.
            partition: where all go; None: where their key belongs (as Java's client has it), and
                without keys in turn.
            headers: of each record: pairs or a mapping.
            timestamp_ms: of each record, Unix ms; None: now.

        Raises:
            BrokerError: what a producer would be answered: no such topic, a record too large.
        """
        rows = filling.make_rows(values, keys)
        pairs = filling.make_headers(headers)

        def command(cluster: Cluster) -> list[tuple[int, int]]:
            unix_ms = cluster.state.unix_ms(time.monotonic())
            return filling.write_rows(
                cluster.state,
                topic,
                rows,
                partition=partition,
                headers=pairs,
                timestamp_ms=unix_ms if timestamp_ms is None else timestamp_ms,
                unix_ms=unix_ms,
            )

        return self.on_cluster(command)

    def on_cluster(self, command: Callable[[Cluster], T]) -> T:
        """Run a command on the cluster, in the serving thread, and return what it returns.

        For what `Cluster` can do and this class does not name: `plant`, `compact` and others.
        """
        cluster = self._running_cluster
        return self._running_server.call(lambda: command(cluster))

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        *,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic; -1 takes the cluster's default.

        Raises:
            BrokerError: what a CreateTopics request would be answered.
        """
        self.on_cluster(
            lambda cluster: cluster.create_topic(
                name, partitions, replication_factor, config=config
            )
        )

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records."""
        self.on_cluster(lambda cluster: cluster.delete_topic(name))

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Move the start of a partition's log up to the offset `before`, as retention does."""
        self.on_cluster(lambda cluster: cluster.delete_records(topic, partition, before))

    def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Make another broker the leader of a partition."""
        self.on_cluster(lambda cluster: cluster.move_leader(topic, partition, node_id))

    def set_in_sync(self, topic: str, partition: int, node_ids: Sequence[int]) -> None:
        """Say which replicas of a partition are in sync."""
        self.on_cluster(lambda cluster: cluster.set_in_sync(topic, partition, node_ids))

    def forget_producer(self, topic: str, partition: int, producer_id: int) -> None:
        """Drop what a partition knows of a producer, as expiry does."""
        self.on_cluster(lambda cluster: cluster.forget_producer(topic, partition, producer_id))

    def set_transaction_version(self, version: int) -> None:
        """Change the version of transactions that clients find, while they run (0 to 2)."""
        self.on_cluster(lambda cluster: cluster.set_transaction_version(version))

    def kill(self, node_id: int) -> None:
        """Stop a broker at once: its connections break, new ones are refused, its leaders move."""
        cluster, server = self._running_cluster, self._running_server

        def command() -> None:
            cluster.kill(node_id)
            server.refuse(node_id)

        server.call(command)

    def restart(self, node_id: int) -> None:
        """Start a killed broker again, on its old port and with its log."""
        cluster, server = self._running_cluster, self._running_server

        def command() -> None:
            cluster.restart(node_id)
            server.listen(node_id)

        server.call(command)

    def allow(self, user: str, *operations: str, **resource: Any) -> None:
        """Let a user do something, from now on.

        Args:
            user: a name, or "*".
            operations: READ, WRITE, CREATE, … as Kafka calls them.
            resource: `topic=`, `group=` or `transactional_id=` with a name or "*", `cluster=True`;
                with `prefixed=True` names are how names begin.
        """
        rules = acl_rules(user, operations, **resource)
        self.on_cluster(lambda cluster: cluster.add_rules(rules))

    def deny(self, user: str, *operations: str, **resource: Any) -> None:
        """Deny a user something, whatever else is allowed (see `allow`)."""
        rules = acl_rules(user, operations, **resource, allows=False)
        self.on_cluster(lambda cluster: cluster.add_rules(rules))

    def set_password(self, user: str, password: str | None) -> None:
        """Change a user's password, None: remove the user. Sessions go on."""
        self.on_cluster(lambda cluster: cluster.state.security.set_password(user, password))

    def expire_sessions(self) -> None:
        """Let the sessions of all authenticated clients end; their next request shows it."""
        self.on_cluster(lambda cluster: cluster.expire_sessions(time.monotonic()))

    def pause(self, node_id: int) -> None:
        """Let a broker stand still: connections stay, nothing is answered."""
        self.on_cluster(lambda cluster: cluster.pause(node_id))

    def resume(self, node_id: int) -> None:
        """Let a paused broker go on with what it was sent meanwhile."""
        self.on_cluster(lambda cluster: cluster.resume(node_id, time.monotonic()))

    def heal(self) -> None:
        """Undo every fault: rules are cleared, all brokers run again."""
        cluster, server = self._running_cluster, self._running_server

        def command() -> None:
            cluster.faults.clear()
            cluster.state.clear_lags()
            for node_id, node in cluster.state.nodes.items():
                if not node.alive:
                    cluster.restart(node_id)
                    server.listen(node_id)
                cluster.resume(node_id, time.monotonic())

        server.call(command)

    @property
    def _running_cluster(self) -> Cluster:
        if self._cluster is None:
            raise UsageError("the embedded broker has not been started")
        return self._cluster

    @property
    def _running_server(self) -> SocketServer:
        if self._server is None:
            raise UsageError("the embedded broker does not run")
        return self._server


def run(
    host: str = LOOPBACK,
    port: int = 9092,
    *,
    brokers: int = 1,
    partitions: int = 1,
    auto_create: bool = True,
    insecure_bind: bool = False,
) -> None:
    """Run a cluster in this thread until SIGINT or SIGTERM; the command line's entry.

    Args:
        host: address to listen on.
        port: of the first broker, the others follow; 0: free ports.
        brokers: their number.
        partitions: of a topic that does not say.
        auto_create: whether unknown topics are made when a client asks for them.
        insecure_bind: allow a host that is not loopback.
    """
    ports = [port + number if port else 0 for number in range(brokers)]
    EmbeddedKafka(
        brokers,
        partitions=partitions,
        auto_create=auto_create,
        host=host,
        ports=ports,
        insecure_bind=insecure_bind,
    ).serve_forever()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
