"""The producer's control plane: decides what the data plane is to do. Sans-I/O.

    events from the data plane ─┐                       ┌─► commands for the data plane
    callers' wishes for topics ─┼─► ProducerControl ────┼─► sockets and look-ups for the machine
    sockets, look-ups, time ────┘                       └─► topics settled, for the callers

It knows the cluster, keeps connections to the leaders in use, routes queues, gets a producer id,
and passes verdicts on what failed. It never sees a record.

Thread: control. `now` comes in; randomness comes in; bytes of records stay out.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from kafka_fast.config import ProducerSettings
from kafka_fast.control import link_events
from kafka_fast.control.backoff import Backoff
from kafka_fast.control.cluster import Cluster
from kafka_fast.control.links import BOOTSTRAP, Link, Links
from kafka_fast.control.metadata import ClusterChanges
from kafka_fast.control.plane import (
    Command,
    FailQueue,
    LinkClosed,
    PlaneEvent,
    Punt,
    Refuse,
    Report,
    Response,
    RouteWanted,
    SetProducerId,
    Throttled,
    TopicSettled,
)
from kafka_fast.control.producer.identity import IdentityKeeper
from kafka_fast.control.producer.routes import Routes
from kafka_fast.control.producer.verdicts import (
    Identity,
    Judgement,
    Rules,
    begin_again,
    judge,
)
from kafka_fast.errors import (
    ERRORS,
    BrokerError,
    KafkaError,
    ProtocolError,
    UnsupportedVersionError,
    broker_error,
    error_name,
)
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.metadata import MetadataResponse
from kafka_fast.protocol.apis.produce import ProduceRequest, ProduceResponse

logger = logging.getLogger("kafka_fast.producer")

UNSUPPORTED_VERSION = 35


class ProducerControl:
    """Policy of one producer. Control thread only."""

    def __init__(
        self, settings: ProducerSettings, client_id: str, random: Callable[[], float]
    ) -> None:
        """Begin without connections.

        Args:
            settings: the producer's configuration.
            client_id: of all requests.
            random: returns a float in [0, 1).
        """
        self._settings = settings
        retry = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random)
        self.cluster = Cluster(settings, random, max_idle=settings.metadata_max_idle)
        self.links = Links(
            settings,
            client_id,
            random,
            on_ready=self._handle_ready,
            on_lost=self._handle_lost,
            on_failed=self._handle_connect_failed,
        )
        self.routes = Routes(
            self.cluster,
            self.links,
            client_id,
            acks=settings.acks,
            timeout_ms=settings.request_timeout_ms,
        )
        self.identity = IdentityKeeper(
            self.links,
            retry,
            timeout=settings.request_timeout,
            on_identity=self._handle_identity,
            on_fatal=self._handle_fatal,
        )
        self._rules = Rules(
            idempotent=settings.enable_idempotence,
            retries=settings.retries,
            split_size=max(settings.batch_size, 16384),
            delay=lambda attempts: retry.delay(attempts - 1),
        )
        self._commands: deque[Command] = deque()
        self._awaited: set[str] = set()  # topics that callers wait for
        self._new_leaders: set[int] = set()  # queues whose leader moved since their freeze
        self._waiting_for_epoch: list[Report] = []
        self.fatal: KafkaError | None = None
        self.throttle_ms = 0

    @property
    def awaited(self) -> frozenset[str]:
        """The topics that callers wait for."""
        return frozenset(self._awaited)

    def describe(self) -> str:
        """Return the state of things in a few lines, for people."""
        identity = self.identity.identity
        who = f"{identity.producer_id} epoch {identity.epoch}" if identity else "not there yet"
        lines = [
            f"cluster {self.cluster.cluster_id}, metadata generation {self.cluster.generation}",
            f"producer id {who}",
            *map(str, self.cluster.nodes),
        ]
        lines += [
            f"link {link.id} to node {link.node_id}: ready, Produce up to "
            f"v{link.versions.pick(ProduceRequest)}"
            for link in list(self.links.ready)
        ]
        return "\n".join(lines)

    # Commands of the callers

    def want_topic(self, topic: str, now: float) -> None:
        """A caller waits for this topic; `TopicSettled` answers."""
        self._awaited.add(topic)
        self.cluster.want_topic(topic, now)
        if self.fatal is not None:
            self._commands.append(TopicSettled(topic, self.fatal))
        elif self.cluster.partition_count(topic) is not None:
            self._settle(topic)

    def touch_topics(self, topics: list[str], now: float) -> None:
        """Records went to these topics: their metadata stays, as does what callers wait for."""
        for topic in (*topics, *sorted(self._awaited)):
            self.cluster.want_topic(topic, now)

    def give_up_topic(self, topic: str) -> None:
        """Nobody waits for this topic any more."""
        self._awaited.discard(topic)

    # Time

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        self.links.tick(now)
        if self.cluster.poll_rebootstrap(now):
            trigger = self._settings.metadata_recovery_rebootstrap_trigger
            self._rebootstrap(f"no broker answered for {trigger} s", now)
        for node_id in self.routes.wanted_nodes():
            self._want_node(node_id, now)
        if self.cluster.request_deadline() <= now:
            self._ask_for_metadata(now)
        if self._settings.enable_idempotence and self.identity.next_deadline() <= now:
            self.identity.tick(self._any_link(), now)

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        deadline = min(self.links.next_deadline(), self.cluster.rebootstrap_deadline())
        if any(True for _ in self.links.ready):
            deadline = min(deadline, self.cluster.request_deadline())
            if self._settings.enable_idempotence:
                deadline = min(deadline, self.identity.next_deadline())
        elif self.cluster.request_deadline() != float("inf"):
            deadline = min(deadline, max(self.cluster.request_deadline(), self._next_connect()))
        return deadline

    def _metadata_nodes(self) -> list[int]:
        """Return the nodes that a connection for metadata may lead to."""
        if self.cluster.needs_bootstrap:
            return [BOOTSTRAP]
        return [node.id for node in self.cluster.nodes]

    def _next_connect(self) -> float:
        """Return when to connect for metadata; infinity while that is under way.

        What is under way has its own deadlines: another one, long past, would keep the thread busy.
        """
        candidates = self._metadata_nodes()
        if any(self.links.is_connecting(node_id) for node_id in candidates):
            return float("inf")
        return min(self.links.retry_at(node_id) for node_id in candidates)

    # Out

    def poll_command(self) -> Command | None:
        """Return the next thing to do; None if there is nothing."""
        if self._commands:
            return self._commands.popleft()
        return self.routes.poll_command() or self.links.poll_command()

    # In

    def handle_event(self, event: PlaneEvent, now: float) -> None:
        """Take an event of the data plane."""
        match event:
            case Response():
                self.links.handle_response(event, now)
            case Report():
                self._handle_report(event, now)
            case Punt():
                self._handle_punt(event, now)
            case LinkClosed():
                self.links.handle_closed(event, now)
            case RouteWanted(queue_ids):
                for queue_id in queue_ids:
                    self._want_route(queue_id, now)
            case Throttled(_, throttle_ms):
                self.throttle_ms += throttle_ms

    # Links and metadata

    def _any_link(self) -> Link | None:
        """Return a link for a question to any broker: a node's rather than bootstrap's."""
        links = sorted(self.links.ready, key=lambda link: (link.node_id == BOOTSTRAP, link.id))
        return links[0] if links else None

    def _want_node(self, node_id: int, now: float) -> None:
        node = self.cluster.node(node_id)
        if node is not None and self.links.link_to(node_id) is None:
            self.links.want_node(node, now, self.cluster.cluster_id)

    def _want_route(self, queue_id: int, now: float) -> None:
        self.routes.want(queue_id)
        queue = self.routes.queue(queue_id)
        self.cluster.want_topic(queue.topic, now)
        leader = self.cluster.leader(queue.topic, queue.partition)
        if leader is None:
            self.cluster.request_refresh("a partition with data has no leader", queue.topic)
        else:
            self._want_node(leader.id, now)

    def _ask_for_metadata(self, now: float) -> None:
        """Send the metadata request that is due, or see to it that there is a link for it."""
        link = self._any_link()
        if link is None:
            if self.cluster.needs_bootstrap:
                self.links.want_bootstrap(now)
            elif not any(self.links.is_connecting(node.id) for node in self.cluster.nodes):
                node = min(self.cluster.nodes, key=lambda node: self.links.retry_at(node.id))
                self._want_node(node.id, now)
            return
        request = self.cluster.poll_request(now)
        if request is None:
            return
        versions: list[int] = []  # known once it is sent
        try:
            versions.append(
                self.links.ask(
                    link,
                    request,
                    MetadataResponse,
                    lambda response, then: self._handle_metadata(response, versions[0], then),
                    lambda error, then: self.cluster.handle_failure(then),
                    timeout=self._settings.request_timeout,
                )
            )
        except UnsupportedVersionError as error:
            self.cluster.handle_failure(now)
            self._handle_fatal(error)

    def _handle_metadata(self, response: MetadataResponse, version: int, now: float) -> None:
        self._apply(self.cluster.handle_response(response, now, version), now)

    def _apply(self, changes: ClusterChanges, now: float) -> None:
        """Bring routes and connections in line with what changed in the cluster."""
        if changes.rebootstrap:
            self._rebootstrap("a broker asked for it", now)
            return
        touched = {*changes.new_topics, *changes.returned_topics}
        touched |= {change.topic for change in changes.resized}
        touched |= {change.topic for change in changes.recreated_topics}
        touched |= {topic for topic, _ in changes.leaders}
        for topic in sorted(touched):  # a set's order differs from run to run
            if self.cluster.partition_count(topic) is not None:
                self.routes.set_up(topic)
        for old, _ in changes.nodes_readdressed:
            self.links.forget(old.id, "it moved to another address", now)
        for node in changes.nodes_removed:
            self.links.forget(node.id, "it left the cluster", now)
        for topic, partition in changes.leaders:
            queue = self.routes.queue_of(topic, partition)
            if queue is not None:
                self._new_leaders.add(queue.id)
                self.routes.move(queue)
        for topic in sorted(self._awaited):
            self._settle(topic)

    def _settle(self, topic: str) -> None:
        """Tell the callers that wait for the topic, if there is something to tell."""
        code = self.cluster.error(topic)
        known = ERRORS.get(code)
        if self.cluster.partition_count(topic):
            if topic not in self.routes.topics:
                self.routes.set_up(topic)
            self._flush_routes()
            self._awaited.discard(topic)
            self._commands.append(TopicSettled(topic, None))
        elif code != 0 and (known is None or not known.retriable):
            self._awaited.discard(topic)
            self._commands.append(TopicSettled(topic, broker_error(code, f"topic {topic!r}")))

    def _flush_routes(self) -> None:
        """Put what the routes want done before what follows."""
        while (command := self.routes.poll_command()) is not None:
            self._commands.append(command)

    def _rebootstrap(self, reason: str, now: float) -> None:
        logger.warning("beginning again at bootstrap.servers: %s", reason)
        changes = self.cluster.rebootstrap()
        for node in changes.nodes_removed:
            self.links.forget(node.id, "beginning again at bootstrap.servers", now)
        self.links.want_bootstrap(now)

    def _handle_ready(self, link: Link, now: float) -> None:
        try:
            self.routes.program(link)
        except UnsupportedVersionError as error:
            self._handle_fatal(error)
            return
        self.routes.handle_ready(link)

    def _handle_lost(self, link: Link, error: KafkaError, now: float) -> None:
        logger.info("%s", error)
        self.routes.handle_lost(link)
        self.cluster.request_refresh(f"link to node {link.node_id} was lost")

    def _handle_connect_failed(self, node_id: int, failed: link_events.Failed, now: float) -> None:
        logger.warning("%s", failed.error)
        if failed.rebootstrap and self._settings.metadata_recovery_strategy == "rebootstrap":
            self._rebootstrap(str(failed.error), now)
        elif node_id != BOOTSTRAP:
            self.cluster.request_refresh(f"node {node_id} cannot be reached")

    # Identity

    def _handle_identity(self, identity: Identity, now: float) -> None:
        self._commands.append(SetProducerId(identity.producer_id, identity.epoch))
        waiting, self._waiting_for_epoch = self._waiting_for_epoch, []
        for report in waiting:
            self._handle_report(report, now)

    def _handle_fatal(self, error: KafkaError) -> None:
        logger.error("the producer cannot go on: %s", error)
        self.fatal = error
        code = error.code if isinstance(error, BrokerError) else UNSUPPORTED_VERSION
        self._commands.append(Refuse(error))
        self._commands.extend(FailQueue(queue_id, code) for queue_id in self.routes.queue_ids)
        for topic in sorted(self._awaited):
            self._commands.append(TopicSettled(topic, error))
        self._awaited.clear()

    # Failures

    def _handle_report(self, report: Report, now: float) -> None:
        """Judge a frozen queue."""
        queue = self.routes.queue(report.queue.queue_id)
        leader_is_new = queue.id in self._new_leaders
        judgement = judge(report, self._rules, now, leader_is_new=leader_is_new)
        if judgement.bump and not self._begin_again(report, judgement, now):
            return
        self._new_leaders.discard(queue.id)
        self._commands.extend(judgement.commands)
        self._commands.append(judgement.thaw)
        self.cluster.want_topic(queue.topic, now)
        self._refresh_after(report, queue.topic)

    def _begin_again(self, report: Report, judgement: Judgement, now: float) -> bool:
        """Bump the epoch; False if a new producer id has to come first."""
        identity = self.identity.bump(now)
        if identity is None:
            self._waiting_for_epoch.append(report)
            return False
        logger.info(
            "epoch %d of producer %d begins with %s-%d",
            identity.epoch,
            identity.producer_id,
            *self._place(report),
        )
        judgement.commands.append(begin_again(report, identity))
        return True

    def _place(self, report: Report) -> tuple[str, int]:
        queue = self.routes.queue(report.queue.queue_id)
        return queue.topic, queue.partition

    def _refresh_after(self, report: Report, topic: str) -> None:
        """Ask for metadata if an answer says that ours is stale."""
        for row in report.batches:
            known = ERRORS.get(row.error_code)
            if known is not None and known.refresh_metadata:
                self.cluster.request_refresh(f"{known.name} for {topic}", topic)
                return

    def _handle_punt(self, event: Punt, now: float) -> None:
        """Take the leaders that the answer names, and say in the log what it refused."""
        try:
            _, body = frame.decode_response(ProduceResponse, event.frame, event.version)
        except ProtocolError as error:
            logger.warning("a Produce answer cannot be read: %s", error)
            return
        for topic in body.responses:
            for partition in topic.partition_responses:
                if partition.error_code == 0:
                    continue
                name = topic.name or self.cluster.topic_name(topic.topic_id) or "?"
                logger.info(
                    "%s-%d: %s %s",
                    name,
                    partition.index,
                    error_name(partition.error_code),
                    partition.error_message or "",
                )
                hint = partition.current_leader
                if hint.leader_id >= 0:
                    changes = self.cluster.apply_leader_hint(
                        name,
                        partition.index,
                        hint.leader_id,
                        hint.leader_epoch,
                        body.node_endpoints,
                    )
                    self._apply(changes, now)
