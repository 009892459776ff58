"""The faults of a simulation: each strikes once, at a time and in a form that the seed decides.

Here is what any client has to live with; a world adds what the answers to its own APIs may be. What
the brokers answer wrongly is a rule of `testing.broker.faults`; what happens to nodes, leaders
and wires is a command. Whatever was broken is whole again when the users have finished.
"""

from __future__ import annotations

import abc
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from kafka_fast.errors import LeaderNotAvailable, UnknownTopicOrPartition
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.versions import METADATA
from tests.sim.worlds.clock import Clock
from tests.sim.worlds.network import Network
from tests.sim.worlds.plan import VERSIONS, TopicPlan


class Trouble(Protocol):
    """What a plan says about faults."""

    @property
    def nodes(self) -> int:
        """How many brokers there are."""

    @property
    def version(self) -> str:
        """Which APIs they offer, see plan.VERSIONS."""

    @property
    def topics(self) -> tuple[TopicPlan, ...]:
        """All topics."""

    @property
    def config(self) -> dict[str, Any]:
        """Of the client."""

    @property
    def duration(self) -> float:
        """Seconds over which the faults strike."""

    @property
    def faults(self) -> int:
        """How many strike."""

    @property
    def storm(self) -> float:
        """Of all requests, how many go wrong besides; 0: no storm."""


class FaultScript(abc.ABC):
    """Strikes as often as the plan says."""

    apis: tuple[int, ...] = (METADATA,)
    """Whose answers are late or lost, the most frequent first."""

    def __init__(
        self,
        clock: Clock,
        plan: Trouble,
        cluster: Cluster,
        network: Network,
        source: random.Random,
        log: Callable[[str], None],
    ) -> None:
        """Plan all strikes.

        Args:
            clock: of the world.
            plan: of the world.
            cluster: whose brokers fail.
            network: whose wires break.
            source: of the faults' randomness.
            log: takes what happens.
        """
        self._clock = clock
        self._plan = plan
        self._cluster = cluster
        self._network = network
        self._source = source
        self._log = log
        self.kinds: list[str] = []
        strikes = self._strikes()
        for _ in range(plan.faults):
            strike = source.choice(strikes)
            clock.after(source.random() * plan.duration, partial(self._do, strike))
        if plan.storm:
            clock.after(source.random() * plan.duration / 2, lambda: self._do(self._storm))

    def _strikes(self) -> list[Callable[[], str]]:
        """Return what may happen; more often what is there more than once."""
        return [
            self._cut_wire,
            self._cut_wire,
            self._fail_metadata,
            self._delay,
            self._throttle,
            self._drop,
            self._cut_answer,
            self._kill,
            self._pause,
            self._move_leader,
            self._leaderless,
            self._stale_metadata,
            self._garble,
        ]

    @abc.abstractmethod
    def _storm(self) -> str:
        """Let kinds of failure go on until all is healed."""

    def _unleash(self, kinds: Sequence[Callable[[], object]]) -> list[int]:
        """Call one to three of these functions, chosen at random; return their indexes."""
        chosen = self._source.sample(range(len(kinds)), self._source.choice((1, 2, 3)))
        for kind in chosen:
            kinds[kind]()
        return sorted(chosen)

    def heal(self) -> None:
        """Let everything go right from now on."""
        self._cluster.faults.clear()
        self._cluster.faults.limit_versions(VERSIONS[self._plan.version])
        self._network.healthy = True
        for node_id, node in self._cluster.state.nodes.items():
            if not node.alive:
                self._cluster.restart(node_id)
            if self._cluster.brokers[node_id].paused:
                self._cluster.resume(node_id, self._clock.now)
        self._mend()
        for topic in self._cluster.state.topics.values():
            for partition in topic.partitions:
                self._elect(topic.name, partition.index, 1)
        self._log("healed")

    def _mend(self) -> None:  # noqa: B027  most worlds have nothing to undo
        """Undo what faults of this world have done besides."""

    # ---- helpers ----

    def _do(self, strike: Callable[[], str]) -> None:
        if self._network.healthy:
            return
        what = strike()
        self.kinds.append(what)
        self._log(f"fault: {what}")
        self._network.poll_brokers()

    def _node(self) -> int:
        return self._source.randint(1, self._plan.nodes)

    def _span(self) -> float:
        """Return how long a state lasts: sometimes longer than the timeouts."""
        request_timeout = float(self._plan.config["request.timeout.ms"]) / 1000
        return self._source.choice((0.01, 0.2, 1.0, request_timeout * 1.5))

    def _where(self) -> dict[str, Any]:
        """Return which requests a rule strikes."""
        where: dict[str, Any] = {"count": self._source.choice((1, 1, 2, 5))}
        if self._source.random() < 0.4:
            where["skip"] = self._source.randrange(5)
        if self._source.random() < 0.3:
            where["node"] = self._node()
        return where

    def _partition(self) -> dict[str, Any]:
        topic = self._source.choice(self._plan.topics)
        where = self._where()
        if self._source.random() < 0.5:
            where["topic"] = topic.name
            if self._source.random() < 0.5:
                where["partition"] = self._source.randrange(topic.partitions)
        return where

    # ---- what brokers answer ----

    def _fail_metadata(self) -> str:
        error = self._source.choice((LeaderNotAvailable, UnknownTopicOrPartition))
        self._cluster.faults.error(METADATA, error, **self._partition())
        return f"Metadata with {error.__name__}"

    def _delay(self) -> str:
        seconds = self._span()
        api = self._source.choice((self.apis[0], *self.apis, None))
        self._cluster.faults.delay(seconds, api=api, **self._where())
        return f"answers to API {api} delayed by {seconds} s"

    def _throttle(self) -> str:
        throttle_ms = self._source.choice((1, 50, 500))
        self._cluster.faults.throttle(throttle_ms, api=self.apis[0], **self._where())
        return f"API {self.apis[0]} throttled by {throttle_ms} ms"

    def _drop(self) -> str:
        api = self._source.choice((self.apis[0], *self.apis))
        applied = self._source.random() < 0.6
        close = self._source.random() < 0.5
        self._cluster.faults.drop(api=api, applied=applied, close=close, **self._where())
        return f"answer to API {api} lost, applied: {applied}, closed: {close}"

    def _cut_answer(self) -> str:
        after = self._source.randrange(80)
        self._cluster.faults.cut(after, **self._where())
        return f"answer cut after {after} bytes"

    # ---- what happens to nodes and wires ----

    def _garble(self) -> str:
        wires = self._network.wires
        if not wires:
            return "no wire to garble"
        data = self._source.choice(
            (b"HTTP/1.1 400 Bad Request\r\n", b"\x00\x00\x00\x08\x7f\x00\x00\x00abcd", bytes(8))
        )
        self._network.garble(self._source.choice(wires), data)
        return f"node answers {data!r}"

    def _cut_wire(self) -> str:
        wires = self._network.wires
        if not wires:
            return "no wire to cut"
        wire = self._source.choice(wires)
        self._network.cut(wire)
        return f"wire {wire.link.link_id} cut"

    def _kill(self) -> str:
        node = self._node()
        if not self._cluster.state.nodes[node].alive:
            return f"node {node} is dead already"
        self._cluster.kill(node)
        self._clock.after(self._span(), lambda: self._restart(node))
        return f"node {node} killed"

    def _restart(self, node: int) -> None:
        if not self._cluster.state.nodes[node].alive:
            self._cluster.restart(node)
            self._log(f"node {node} restarted")
            self._network.poll_brokers()

    def _pause(self) -> str:
        node = self._node()
        self._cluster.pause(node)
        self._clock.after(self._span(), lambda: self._resume(node))
        return f"node {node} paused"

    def _resume(self, node: int) -> None:
        self._cluster.resume(node, self._clock.now)
        self._log(f"node {node} resumed")
        self._network.poll_brokers()

    def _move_leader(self) -> str:
        live = [node.node_id for node in self._cluster.state.live_nodes]
        topic = self._source.choice(self._plan.topics)
        index = self._source.randrange(topic.partitions)
        if not live or not self._is_there(topic.name, index):
            return "no node to lead, or no partition"
        node = self._source.choice(live)
        self._cluster.move_leader(topic.name, index, node)
        return f"node {node} leads {topic.name}-{index}"

    def _leaderless(self) -> str:
        """A partition has no leader for a while, although its replicas run."""
        topic = self._source.choice(self._plan.topics)
        index = self._source.randrange(topic.partitions)
        if not self._is_there(topic.name, index):
            return "no partition to be without a leader"
        partition = self._cluster.state.partition(topic.name, index)
        before = partition.leader
        partition.leader = -1
        self._cluster.state.changes += 1
        self._clock.after(self._span(), lambda: self._elect(topic.name, index, before))
        return f"{topic.name}-{index} has no leader"

    def _elect(self, topic: str, index: int, node: int) -> None:
        live = [one.node_id for one in self._cluster.state.live_nodes]
        if not self._is_there(topic, index):
            return
        partition = self._cluster.state.partition(topic, index)
        if partition.leader == -1 and live:
            node = node if node in live else live[0]
            self._cluster.move_leader(topic, index, node)
            self._log(f"node {node} leads {topic}-{index} again")
            self._network.poll_brokers()

    def _is_there(self, topic: str, index: int) -> bool:
        """Return whether a partition exists; a topic may be created again with fewer."""
        topic_state = self._cluster.state.topics.get(topic)
        return topic_state is not None and index < len(topic_state.partitions)

    def _stale_metadata(self) -> str:
        """One broker describes the cluster as it is now, whatever happens later."""
        node = self._node()
        leaders = {
            (topic.topic_id, partition.index): (partition.leader, partition.leader_epoch)
            for topic in self._cluster.state.topics.values()
            for partition in topic.partitions
        }

        def rewrite(response: Any, asked: int) -> None:
            ids = {state.name: state.topic_id for state in self._cluster.state.topics.values()}
            for topic in response.topics if asked == node else ():
                for partition in topic.partitions:
                    leader = leaders.get((ids[topic.name], partition.partition_index))
                    if leader is not None and leader[0] != -1:
                        partition.leader_id, partition.leader_epoch = leader

        self._cluster.faults.script_metadata(rewrite)
        return f"node {node} has stale metadata from now on"
