"""The metadata cache: which node leads which partition, and when to ask again.

Without I/O: `Discovery` takes a request out when one is due, has the requester send it to any node,
and hands in the answer or the failure with the time:

    request_refresh, want_topic ──►┌─────────┐──► poll_request(now) ─► MetadataRequest
                                   │ Cluster │
    leader, partition_count, … ◄───└─────────┘◄── handle_response / handle_failure ─► ClusterChanges
                                        ▲
    Produce and Fetch answers ──────────┘ apply_leader_hints (KIP-951)

The getters (most are `Topology`'s) may be called from any thread: each reads one immutable record.
Everything else belongs to the control thread. The records are in `metadata.py`, the picture they
make is kept in `topology.py`, when a request is due is decided in `refresh.py`.

An answer may be about a hundred thousand partitions. It is taken in in parts, and each part tells
its changes (`continue_response`), so that other work of the control thread need not wait.

An answer is dropped if it names no broker, carries an error, or belongs to another cluster than the
first answer did. In the last case an advertised listener leads to a foreign broker, and writing to
it would be worse than failing. Only bootstrap servers, which the user has named, may introduce
another cluster, and only while no node of the first cluster can be reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet

from kafka_fast.config import CommonSettings
from kafka_fast.control.connections.backoff import Backoff
from kafka_fast.control.metadata.metadata import (
    FIRST_RELIABLE_EPOCH_VERSION,
    ClusterChanges,
    Endpoint,
    LeaderHint,
    ListedTopic,
    Node,
    read_nodes,
)
from kafka_fast.control.metadata.refresh import Ask, RefreshSchedule
from kafka_fast.control.metadata.topology import Topology
from kafka_fast.errors import ErrorCode, KafkaError, ProtocolError, broker_error
from kafka_fast.instants import NEVER
from kafka_fast.logs import LONG, count_of, get_logger, some_of
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kafka_fast.values import Value, field

__all__ = ["Cluster"]

logger = get_logger("kafka_fast.metadata")


PACE_MS = 10
"""The least time between two Metadata requests, even with retry.backoff.ms=0."""

NEWS_PATIENCE = LONG
"""Seconds within which each broker has heard that a topic was created again."""


PARTITIONS_AT_ONCE = 500
"""About how many partitions of an answer are taken in before other work has a turn."""


class _Merge(Value, frozen=False, eq=False):
    """An answer that is being taken in."""

    ask: Ask
    """What was asked."""
    version: int
    """Of the answer."""
    flipped: AbstractSet[int]
    """The nodes that have come or gone with it."""
    changes: ClusterChanges
    """What the present part has changed."""
    steps: Iterator[int] = field(factory=lambda: iter(()))
    """Takes in one topic after the other."""
    unresolved: set[str] = field(factory=set)
    """Topics that have to be asked for again soon."""
    is_fruitful: bool = False
    """Any part has changed something."""


class Cluster(Topology):
    """What is known of the cluster. Getters: any thread; the rest: control thread."""

    def __init__(
        self,
        settings: CommonSettings,
        random: Callable[[], float],
        *,
        max_idle: float = NEVER,
        allow_auto_create_topics: bool = True,
    ) -> None:
        """Start without nodes and topics; a first request is due, to bootstrap.servers.

        Args:
            settings: the client's configuration.
            random: returns a float in [0, 1), for the jitter of retries.
            max_idle: seconds after which a topic that nobody uses is forgotten.
            allow_auto_create_topics: whether asking for a topic may make the broker create it.
        """
        super().__init__()
        self._allow_auto_create_topics = allow_auto_create_topics
        self._can_rebootstrap = settings.metadata_recovery_strategy == "rebootstrap"
        self._rebootstrap_trigger = settings.metadata_recovery_rebootstrap_trigger
        self._schedule = RefreshSchedule(
            Backoff(
                max(settings.retry_backoff_ms, PACE_MS),
                max(settings.retry_backoff_max_ms, PACE_MS),
                random,
            ),
            max_age=settings.metadata_max_age,
            max_idle=max_idle,
        )
        self._cluster_id: str | None = None
        self._controller_id = -1
        self._all_topics: frozenset[ListedTopic] | None = None
        self._update_count = 0
        # Brokers that are asked by name may still speak of a deleted topic, until then.
        self._unclear_until: dict[str, float] = {}
        # Until the nodes are known, requests go to bootstrap.servers.
        self._needs_bootstrap = True
        self._merge: _Merge | None = None  # the answer that is being taken in
        # When the first request after the last usable answer became due.
        self._unanswered_since: float | None = None

    # ---- getters ----

    @property
    def update_count(self) -> int:
        """Counts the answers and hints that changed something."""
        return self._update_count

    @property
    def cluster_id(self) -> str | None:
        """The id of the cluster, once a broker has told it."""
        return self._cluster_id

    @property
    def controller_id(self) -> int:
        """The node id of the controller, or -1."""
        return self._controller_id

    @property
    def all_topics(self) -> frozenset[ListedTopic] | None:
        """All topics there are, while `want_all_topics`; None until the first such answer."""
        return self._all_topics

    @property
    def needs_bootstrap(self) -> bool:
        """True while no node is known, so that requests go to bootstrap.servers."""
        return self._needs_bootstrap

    @property
    def is_merging(self) -> bool:
        """Whether parts of an answer are still to be taken in by `continue_response`."""
        return self._merge is not None

    def is_outdated(self, topic: str) -> bool:
        """Tell whether no answer has come to a request that was sent after `want_anew`."""
        return self._schedule.is_outdated(topic)

    def request_deadline(self) -> float:
        """Return when `poll_request` has a request, which then waits for a connection.

        The time is in the past while a request waits, and infinite while one is in flight.
        """
        return self._schedule.next_deadline()

    def rebootstrap_deadline(self) -> float:
        """Return when `poll_rebootstrap` turns true if no usable answer comes before."""
        since = self._unanswered_since
        if since is None or self._needs_bootstrap or not self._can_rebootstrap:
            return NEVER
        return since + self._rebootstrap_trigger

    # ---- commands ----

    def excuse(self, until: float) -> None:
        """Do not count the time until then: brokers have announced that they will not answer."""
        if self._unanswered_since is not None:
            self._unanswered_since = max(self._unanswered_since, until)

    def want_topic(self, topic: str, now: float) -> None:
        """Keep `topic` in the cache from now on, and have it asked for if it is not known.

        A caller that waits for a topic with an error calls this again: the topic is then asked
        for once more, at the pace of retries.
        """
        self._schedule.want_topic(topic, now)
        unusable = topic not in self._topics or topic in self._errors
        if unusable and not self._schedule.is_asking(topic):
            self._schedule.ask_again(topic)

    def want_anew(self, topic: str, now: float) -> None:
        """Keep `topic` as `want_topic` does, and have it asked for at once even if it is known."""
        self._schedule.ask_anew(topic, now)

    def want_all_topics(self, wants_all: bool) -> None:
        """Keep the names of all topics (`all_topics`), at the pace of full refreshes."""
        self._schedule.want_all(wants_all)
        if not wants_all:
            self._all_topics = None

    def touch(self, topic: str, now: float) -> None:
        """Note that `topic` is used: a topic with unresolved batches then never expires."""
        self._schedule.touch(topic, now)

    def request_refresh(self, reason: str, topic: str | None = None) -> None:
        """Ask again for one topic, or for all of them, as soon as the backoff allows.

        Args:
            reason: why, for the log: "NOT_LEADER_OR_FOLLOWER from node 3", …
            topic: the topic whose leaders may have moved; None for all.
        """
        if topic is None:
            self._schedule.request_full(reason)
        else:
            self._schedule.ask_again(topic)

    def rebootstrap(self) -> ClusterChanges:
        """Forget the nodes and begin again at bootstrap.servers.

        Topics stay, without leaders: their ids and epochs tell later whether anything changed. The
        caller closes its connections to the nodes. There are three occasions: `poll_rebootstrap`
        turns true, a `ClusterChanges` asks for it, or a failed connection does. None of them
        arises unless metadata.recovery.strategy allows a rebootstrap (KIP-899).
        """
        changes = ClusterChanges()
        flipped = self._replace_nodes({}, changes)
        for topic in self._topics.values():
            self._note_flipped(topic, flipped, changes)
        self._merge = None
        self._needs_bootstrap = True
        self._unanswered_since = None
        self._schedule.start_over()
        return self._finish(changes)

    # ---- out ----

    def poll_request(self, now: float) -> MetadataRequest | None:
        """Return the metadata request that is due; None if none is.

        The request counts as in flight until `handle_response` or `handle_failure`. So call this
        only with a connection at hand.
        """
        self._note_unanswered(now)
        ask = self._schedule.poll(now)
        if ask is None:
            return None
        logger.debug("asking for metadata of %s: %s", _topics(ask), ask.reason)
        names = [MetadataRequestTopic(name=topic) for topic in ask.topics]
        return MetadataRequest(
            topics=None if ask.is_all else names,
            allow_auto_topic_creation=self._allow_auto_create_topics,
        )

    def poll_rebootstrap(self, now: float) -> bool:
        """Tell whether requests went unanswered for so long that `rebootstrap` is due.

        The time runs from when a request was due, even if there was no connection to send it over.
        """
        self._note_unanswered(now)
        return now >= self.rebootstrap_deadline()

    # ---- in ----

    def handle_failure(self, now: float) -> None:
        """Ask for the topics of the request in flight again, after a backoff: no answer came."""
        self._schedule.handle_failure(now)

    def handle_response(
        self,
        response: MetadataResponse,
        now: float,
        version: int = FIRST_RELIABLE_EPOCH_VERSION,
        *,
        is_bootstrap: bool = False,
        has_nodes: bool = True,
    ) -> ClusterChanges:
        """Take in the answer to the request in flight, or the first part of a large one.

        Args:
            response: the answer; not used if no request is in flight any more. Its topics are read
                once, in their order.
            now: the time.
            version: of the answer, which says whether its leader epochs can be trusted.
            is_bootstrap: a server that the user has named gave the answer.
            has_nodes: there is a link to a known node.

        Returns:
            What changed. `failure` is set, and nothing changed, if the answer was of no use.
        """
        ask = self._schedule.in_flight
        if ask is None or self._merge is not None:
            return ClusterChanges()
        changes = ClusterChanges()
        nodes = read_nodes(response.brokers)
        failure = self._refusal(response, nodes, changes)
        if failure is None and self._is_foreign(response):
            failure = self._foreignness(response, changes, is_bootstrap, has_nodes)
        if failure is not None:
            logger.debug("metadata answer not used: %s", failure)
            changes.failure = failure
            self._schedule.handle_failure(now)
            return changes
        self._take_cluster_id(response.cluster_id, changes)
        flipped = self._replace_nodes(nodes, changes)
        self._controller_id = response.controller_id
        self._needs_bootstrap = False
        self._unanswered_since = None
        merge = self._merge = _Merge(ask, version, flipped, changes)
        merge.steps = self._merging(merge, response.topics)
        return self.continue_response(now)

    def continue_response(self, now: float) -> ClusterChanges:
        """Take in the next part of a large answer, while `is_merging`; return what it changed.

        Each part is like an answer about some of the topics that were asked for.
        """
        merge = self._merge
        assert merge is not None
        changes = merge.changes
        taken = 0
        for count in merge.steps:
            taken += count
            if taken >= PARTITIONS_AT_ONCE:
                break
        else:
            self._merge = None
        for change in changes.recreated_topics:
            self._unclear_until[change.topic] = now + NEWS_PATIENCE
        merge.is_fruitful |= bool(changes)
        if self._merge is None:
            fruitful = merge.is_fruitful
            self._schedule.handle_answer(merge.unresolved, fruitful=fruitful, now=now)
            self._drop_idle(now, changes)
            self._drop_heard(now)
        merge.changes = ClusterChanges()
        return self._finish(changes)

    def _merging(self, merge: _Merge, topics: Iterable[MetadataResponseTopic]) -> Iterator[int]:
        """Take in an answer, topic by topic; yield how many partitions were looked at.

        A topic that the answer names twice counts once.
        """
        missing = dict.fromkeys(merge.ask.topics)
        every: set[ListedTopic] = set()
        for topic in topics:
            if topic.name is not None:
                if merge.ask.is_all and not topic.error_code:
                    every.add(ListedTopic(topic.name, topic.is_internal))
                if topic.name in missing:
                    del missing[topic.name]
                    self._merge_topic(merge, topic.name, topic)
            yield 1 + len(topic.partitions)
        for name in missing:
            self._merge_topic(merge, name, None)
            yield 1
        asked = set(merge.ask.topics)
        for name in [other for other in self._topics if merge.flipped and other not in asked]:
            if (known := self._topics.get(name)) is not None:
                self._note_flipped(known, merge.flipped, merge.changes)
                yield len(known.partitions)
        if merge.ask.is_all and (self._all_topics is None or self._all_topics ^ every):
            self._all_topics = frozenset(every)  # the same object while nothing changes

    def _merge_topic(
        self, merge: _Merge, name: str, reported: MetadataResponseTopic | None
    ) -> None:
        known = self._topics.get(name)
        if known is not None:
            self._note_flipped(known, merge.flipped, merge.changes)
        if self._schedule.is_wanted(name):
            self._take_topic(name, reported, merge.version, merge.changes)
            self._schedule.handle_topic(name)
        if self._is_unresolved(name):
            merge.unresolved.add(name)

    def apply_leader_hints(
        self, hints: Iterable[LeaderHint], node_endpoints: Iterable[Endpoint] = (), *, now: float
    ) -> ClusterChanges:
        """Take the leaders that a Produce or Fetch answer names (KIP-951).

        Args:
            hints: the leaders. Those with a newer epoch than the known one are taken. After the
                topic was created again, hints by name are not taken for a while: the broker may
                speak of the deleted topic, whose epochs are higher.
            node_endpoints: the addresses of nodes that the answer names.
            now: the time.

        Returns:
            What changed. If that is nothing, the hints were of no use; ask for a refresh.
        """
        named, nodes = read_nodes(node_endpoints), dict(self._nodes)
        by_topic: dict[str, dict[int, LeaderHint]] = {}
        for hint in hints:
            name = self._names.get(hint.topic) if isinstance(hint.topic, bytes) else hint.topic
            known = None if name is None else self._topics.get(name)
            if known is None or not 0 <= hint.partition < len(known.partitions):
                continue
            if hint.topic == known.name and now < self._unclear_until.get(known.name, 0.0):
                continue
            if hint.leader_epoch <= known.partitions[hint.partition].newest_epoch:
                continue
            leader = named.get(hint.leader_id) or self._nodes.get(hint.leader_id)
            if leader is not None:
                nodes[leader.id] = leader
                by_topic.setdefault(known.name, {})[hint.partition] = hint
        changes = ClusterChanges()
        if by_topic:
            flipped = self._replace_nodes(nodes, changes)
            for topic in list(self._topics.values()):
                self._note_flipped(topic, flipped, changes)
        for name, taken in by_topic.items():
            self._take_leaders(self._topics[name], list(taken.values()), changes)
        return self._finish(changes)

    # ---- the parts of an answer ----

    def _refusal(
        self, response: MetadataResponse, nodes: dict[int, Node], changes: ClusterChanges
    ) -> KafkaError | None:
        """Return why an answer cannot be used, whichever cluster it is about."""
        if response.error_code:
            if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
                changes.rebootstrap = self._can_rebootstrap
            return broker_error(response.error_code, "answer to Metadata")
        if not nodes:
            count = len(response.brokers)
            several = f"{count_of(count, 'broker')}, none of them with a host and a port"
            said = several if count else "no broker"
            return ProtocolError(f"the answer to Metadata names {said}")
        return None

    def _is_foreign(self, response: MetadataResponse) -> bool:
        """Tell whether an answer is about another cluster than the nodes that are known now."""
        ids = (self._cluster_id, response.cluster_id)
        return not self._needs_bootstrap and None not in ids and ids[0] != ids[1]

    def _foreignness(
        self,
        response: MetadataResponse,
        changes: ClusterChanges,
        is_bootstrap: bool,
        has_nodes: bool,
    ) -> KafkaError | None:
        """Return why another cluster is not followed; None: it takes the place of this one."""
        if is_bootstrap and not has_nodes:
            return None
        changes.foreign_cluster_id = response.cluster_id
        if is_bootstrap:
            return ProtocolError(
                f"a server in bootstrap.servers belongs to cluster {response.cluster_id!r}, while "
                f"nodes of cluster {self._cluster_id!r} can be reached"
            )
        changes.rebootstrap = self._can_rebootstrap
        return ProtocolError(
            f"a broker of cluster {response.cluster_id!r} answered at an address that cluster "
            f"{self._cluster_id!r} advertises"
        )

    def _take_cluster_id(self, cluster_id: str | None, changes: ClusterChanges) -> None:
        """Keep the cluster's id; forget all topics if the bootstrap servers lead to another one."""
        if cluster_id is None or cluster_id == self._cluster_id:
            return
        if self._cluster_id is not None:
            logger.warning("cluster %r took the place of %r", cluster_id, self._cluster_id)
            changes.cluster_replaced = True
            self._leave_topics()
        self._cluster_id = cluster_id

    def _drop_heard(self, now: float) -> None:
        """Forget the recreated topics of which all brokers have heard by now."""
        for name in [topic for topic, end in self._unclear_until.items() if now >= end]:
            del self._unclear_until[name]

    def _drop_idle(self, now: float, changes: ClusterChanges) -> None:
        """Forget the topics that nobody used for long."""
        for name in self._schedule.drop_idle(now):
            self._forget_topic(name, changes)
            changes.expired_topics.append(name)

    def _note_unanswered(self, now: float) -> None:
        """Remember since when a request has been due without an answer."""
        if self._unanswered_since is None and now >= self._schedule.next_deadline():
            self._unanswered_since = now

    def _finish(self, changes: ClusterChanges) -> ClusterChanges:
        """Count an update that changed something."""
        if changes:
            self._update_count += 1
        return changes


def _topics(ask: Ask) -> str:
    """Return the topics of a request, for the log."""
    if ask.is_all:
        return "all topics"
    counted = count_of(len(ask.topics), "topic")
    return f"{counted} ({some_of(ask.topics)})" if ask.topics else counted
