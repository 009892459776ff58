"""The whole cluster: its brokers, what they share, and the commands of whoever tests with it.

    cluster = Cluster([Node(1, "127.0.0.1", 9092)], Settings(), random.Random(seed))
    broker = cluster.brokers[1]
    broker.connect(7)
    broker.handle_bytes(7, data, now)
    for node_id, (connection_id, data, close) in cluster.poll_output(now): ...
    cluster.next_due()          # when to poll again, if nothing comes in

Everything that happens depends on the bytes, `now` and the random source that come in: the same
inputs give the same outputs, byte by byte.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from kafka_fast.record import Record, RecordBatch, read_batches
from kafka_fast.testing.broker.acls import AclRule
from kafka_fast.testing.broker.broker import Broker, Output
from kafka_fast.testing.broker.faults import Faults
from kafka_fast.testing.broker.groups.coordinator import coordinator_of
from kafka_fast.testing.broker.groups.offsets import GroupOffsets
from kafka_fast.testing.broker.partitions import planting
from kafka_fast.testing.broker.partitions.cluster_topics import NO_LEADER, Topic
from kafka_fast.testing.broker.partitions.coordinating import deciding_partition
from kafka_fast.testing.broker.state import ClusterState, Node, Settings
from kafka_fast.testing.broker.transactions.settings import TRANSACTIONS_TOPIC


class Cluster:
    """Brokers with shared topics."""

    def __init__(
        self, nodes: Iterable[Node], settings: Settings, random_source: random.Random
    ) -> None:
        """Start all nodes; `random_source` decides ids and what faults strike."""
        self.state = ClusterState(nodes, settings, random_source)
        self.faults = Faults(random.Random(random_source.getrandbits(64)))
        self.brokers = {
            node_id: Broker(node_id, self.state, self.faults) for node_id in self.state.nodes
        }

    # ---- topics ----

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        *,
        assignment: Mapping[int, Sequence[int]] | None = None,
        config: Mapping[str, str] | None = None,
    ) -> Topic:
        """Create a topic (see `ClusterState.plan_topic` for the arguments and errors)."""
        topic = self.state.plan_topic(name, partitions, replication_factor, assignment, config)
        self.state.add_topic(topic)
        return topic

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records."""
        self.state.delete_topic(name)

    def add_partitions(self, name: str, count: int) -> None:
        """Let a topic have `count` partitions, more than it has."""
        self.state.add_planned_partitions(name, self.state.plan_partitions(name, count))

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Move the start of a log up to the offset `before`, as retention does."""
        self.state.partition(topic, partition).log.delete_before(before)
        self.state.changes += 1

    def batches(self, topic: str, partition: int) -> Iterator[RecordBatch]:
        """Return the batches of a partition's log as they were appended."""
        for stored in self.state.partition(topic, partition).log:
            yield from read_batches(stored.data)

    def records(self, topic: str, partition: int) -> list[Record]:
        """Return the records of a partition's log."""
        return [record for batch in self.batches(topic, partition) for record in batch.records()]

    # ---- what no producer can write: see planting.py ----

    def plant(self, topic: str, partition: int, data: bytes, *, at: int | None = None) -> int:
        """Append whole batches as a replica would; return the first offset.

        Args:
            topic: the topic's name.
            partition: of it.
            data: batches in format v2; transactional ones open transactions, markers end them.
            at: offset of the first, beyond the end of the log to leave a gap; None: at the end.
        """
        return self._planted(
            planting.plant_batches(self.state.partition(topic, partition), data, at)
        )

    def plant_bytes(self, topic: str, partition: int, data: bytes, *, count: int = 1) -> int:
        """Append any bytes, served as they are for the next `count` offsets; return the first."""
        return self._planted(
            planting.plant_bytes(self.state.partition(topic, partition), data, count)
        )

    def plant_transaction(
        self,
        topic: str,
        partition: int,
        producer_id: int,
        values: Iterable[bytes],
        *,
        commit: bool | None,
    ) -> int:
        """Append a transaction, and its end unless `commit` is None; return the first offset."""
        partition_state = self.state.partition(topic, partition)
        return self._planted(
            planting.plant_transaction(partition_state, producer_id, values, commit)
        )

    def end_transaction(self, topic: str, partition: int, producer_id: int, *, commit: bool) -> int:
        """Append the marker that ends a producer's open transaction; return its offset."""
        partition_state = self.state.partition(topic, partition)
        return self._planted(planting.end_transaction(partition_state, producer_id, commit=commit))

    def compact(
        self, topic: str, partition: int, offsets: Collection[int], *, keep_empty: bool = False
    ) -> None:
        """Take the records at `offsets` out of a log; empty batches stay with `keep_empty`."""
        partition_state = self.state.partition(topic, partition)
        planting.compact(partition_state, offsets, keep_empty=keep_empty)
        self.state.changes += 1

    def _planted(self, offset: int) -> int:
        self.state.changes += 1
        return offset

    # ---- nodes and leaders ----

    def kill(self, node_id: int) -> None:
        """Stop a broker at once: connections break, new ones are refused, its leaders move."""
        self._check(node_id)
        self.state.nodes[node_id].paused = False
        self.state.node_died(node_id)
        self.brokers[node_id].kill()

    def restart(self, node_id: int) -> None:
        """Start a killed broker again, with its log."""
        self._check(node_id)
        self.state.node_returned(node_id)

    def pause(self, node_id: int) -> None:
        """Let a broker stand still: connections stay, nothing is answered."""
        self._check(node_id)
        self.state.nodes[node_id].paused = True
        self.brokers[node_id].pause()

    def resume(self, node_id: int, now: float) -> None:
        """Let a paused broker go on."""
        self._check(node_id)
        self.state.nodes[node_id].paused = False
        self.state.changes += 1
        self.brokers[node_id].resume(now)

    def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Make a node the leader; the old one answers NOT_LEADER_OR_FOLLOWER from now on."""
        self._check(node_id)
        self.state.move_leader(self.state.partition(topic, partition), node_id)

    def lose_records(self, topic: str, partition: int, offset: int, *, leader: int) -> None:
        """Elect a leader that is out of sync: what is at `offset` and behind it is lost.

        The batch that holds `offset` is lost as a whole. The leader epoch grows, so that readers
        can notice (KIP-320).
        """
        self._check(leader)
        partition_state = self.state.partition(topic, partition)
        planting.truncate(partition_state, offset)
        self.state.move_leader(partition_state, leader)

    def set_in_sync(self, topic: str, partition: int, node_ids: Sequence[int]) -> None:
        """Say which replicas are in sync; fewer than min.insync.replicas refuse acks=all."""
        partition_state = self.state.partition(topic, partition)
        if partition_state.leader not in node_ids or not set(node_ids) <= set(
            partition_state.replicas
        ):
            raise ValueError(
                f"{list(node_ids)} needs the leader {partition_state.leader}, and replicas only"
            )
        partition_state.isr = list(node_ids)
        self.state.changes += 1

    def set_replica_end(self, topic: str, partition: int, node_id: int, end: int | None) -> None:
        """Let a follower have the log up to `end` only; None: it is no longer behind."""
        self._check(node_id)
        ends = self.state.partition(topic, partition).replica_ends
        ends.pop(node_id, None)
        if end is not None:
            ends[node_id] = end
        self.state.changes += 1

    def forget_fetch_sessions(self, node_id: int) -> None:
        """Let a broker forget its fetch sessions, as if others had taken their place."""
        self._check(node_id)
        self.brokers[node_id].forget_fetch_sessions()

    def forget_producer(self, topic: str, partition: int, producer_id: int) -> None:
        """Drop what a partition knows of a producer, as retention and expiry do."""
        self.state.partition(topic, partition).producers.expire(producer_id)

    # ---- who may do what ----

    def add_rules(self, rules: Iterable[AclRule]) -> None:
        """Allow or deny something, from now on.

        Raises:
            ValueError: the cluster lets everybody do everything (`Security.super_users`).
        """
        authorizer = self.state.security.authorizer
        if authorizer is None:
            raise ValueError("everybody may do everything here: name super_users")
        authorizer.add_rules(rules)
        self.state.changes += 1

    def expire_sessions(self, now: float) -> None:
        """Let the sessions of all authenticated clients end; their next request shows it."""
        for broker in self.brokers.values():
            broker.expire_sessions(now)

    def close_idle_connections(self) -> int:
        """Close what connections.max.idle.ms would close; return their number."""
        return sum(broker.close_idle() for broker in self.brokers.values())

    # ---- groups ----

    def coordinator(self, group: str) -> int:
        """Return the node that coordinates a group, -1 if none does."""
        partition = coordinator_of(self.state, group)
        return NO_LEADER if partition is None else partition.leader

    def move_coordinator(self, group: str, node_id: int) -> None:
        """Let another node coordinate a group, and all others of its partition."""
        self._check(node_id)
        partition = coordinator_of(self.state, group)
        if partition is None:
            raise ValueError("no group has been asked for yet")
        self.state.move_leader(partition, node_id)

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Return the offsets that a group has committed: topic and partition -> offset."""
        return {
            (topic, index): one.offset
            for topic, partitions in self.state.offsets.get(group, ())
            for index, one in partitions.items()
        }

    def set_unstable(self, group: str, topic: str, partition: int, unstable: bool = True) -> None:
        """Say whether an open transaction has committed a position (UNSTABLE_OFFSET_COMMIT)."""
        offsets = self.state.offsets.setdefault(group, GroupOffsets())
        offsets.set_unstable(topic, partition, unstable)

    # ---- transactions ----

    def set_transaction_version(self, version: int) -> None:
        """Change the feature `transaction.version`, as UpdateFeatures does (0 to 2, KIP-890)."""
        self.state.set_transaction_version(version)

    def transaction_coordinator(self, transactional_id: str) -> int:
        """Return the node that coordinates a transactional id, -1 if none does."""
        partition = deciding_partition(self.state.topics, TRANSACTIONS_TOPIC, transactional_id)
        return NO_LEADER if partition is None else partition.leader

    def move_transaction_coordinator(self, transactional_id: str, node_id: int) -> None:
        """Let another node coordinate a transactional id, and all others of its partition."""
        self._check(node_id)
        partition = deciding_partition(self.state.topics, TRANSACTIONS_TOPIC, transactional_id)
        if partition is None:
            raise ValueError("no transactional id has been asked for yet")
        self.state.move_leader(partition, node_id)

    def transaction_state(self, transactional_id: str) -> str | None:
        """Return Kafka's name of a transaction's state, None: nothing is known of the id."""
        transaction = self.state.transactions.get(transactional_id)
        return None if transaction is None else transaction.state.value

    def forget_transactional_id(self, transactional_id: str) -> None:
        """Drop a transactional id without an open transaction, as expiry does after a week.

        Raises:
            ValueError: a transaction is open, or is about to end.
        """
        transaction = self.state.transactions.get(transactional_id)
        if transaction is not None and not transaction.may_expire:
            raise ValueError(f"{transactional_id!r} is {transaction.state.value}")
        self.state.transactions.pop(transactional_id, None)

    # ---- out ----

    def poll_output(self, now: float) -> list[tuple[int, Output]]:
        """Return (node id, output) of all brokers by now; each once, in the order per broker."""
        outputs = []
        seen = -1
        while seen != self.state.changes:  # a broker's append may answer another one's fetch
            seen = self.state.changes
            for node_id, broker in self.brokers.items():
                outputs += [(node_id, output) for output in broker.poll_output(now)]
        return outputs

    def next_due(self) -> float | None:
        """Return when `poll_output` has to be called even if nothing comes in, None: never."""
        dues = [broker.next_due() for broker in self.brokers.values()]
        return min((due for due in dues if due is not None), default=None)

    def _check(self, node_id: int) -> None:
        if node_id not in self.brokers:
            raise ValueError(f"no node {node_id}, only {', '.join(map(str, self.brokers))}")
