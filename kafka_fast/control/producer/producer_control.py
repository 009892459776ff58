"""The producer's control plane: decides what the data plane is to do. Sans-I/O.

    events from the data plane ─┐                       ┌─► commands for the data plane
    callers' wishes for topics ─┼─► ProducerControl ────┼─► sockets and look-ups for the host
    sockets, look-ups, time ────┘                       └─► topics settled, for the callers

Beyond what every client's control plane does, `ProducerControl` keeps connections to the leaders in
use, routes queues, gets a producer id, and passes verdicts on failed batches. It never sees a
record. If the brokers refuse a producer id for good, the producer cannot go on. Waiting records
then fail at once, and `send` raises the reason.

Thread: control. `now` comes in; randomness comes in; bytes of records stay out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kafka_fast.config import ProducerSettings
from kafka_fast.control.authentication.mechanism import Mechanism
from kafka_fast.control.client_control import ClientControl
from kafka_fast.control.connections.connection_key import ConnectionKey
from kafka_fast.control.connections.connection_outputs import ConnectionFailed
from kafka_fast.control.connections.links import Link
from kafka_fast.control.messages import TopicSettled
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.metadata import NO_LEADER, ClusterChanges, LeaderHint
from kafka_fast.control.producer.causes import Causes
from kafka_fast.control.producer.identity import InitProducerIdCall
from kafka_fast.control.producer.limits import BatchLimit, TopicLimits
from kafka_fast.control.producer.lost_partitions import LostPartitions
from kafka_fast.control.producer.producer_messages import (
    ABORTED,
    BatchRow,
    FailBatch,
    FailQueue,
    LimitTopic,
    OwnCommand,
    ProduceEvent,
    ProducePunt,
    ProducerCommand,
    QueueReport,
    RefuseRecords,
    RenumberQueue,
    RouteWanted,
    SetProducerId,
    ThawQueue,
)
from kafka_fast.control.producer.refusals import RefusedBatches, refusal_of, rows_of
from kafka_fast.control.producer.routes import Routes
from kafka_fast.control.producer.verdicts import (
    TOO_LARGE,
    ProducerIdentity,
    Rules,
    begin_again,
    consequences,
    judge,
)
from kafka_fast.errors import (
    ERRORS,
    ErrorCode,
    KafkaError,
    ProtocolError,
    UnsupportedVersionError,
    broker_error,
)
from kafka_fast.instants import NEVER
from kafka_fast.logs import LONG, LongWait, Waiting, get_logger, in_seconds, some_of
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.records.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
)
from kafka_fast.types import TopicPartition
from kafka_fast.values import assert_never

if TYPE_CHECKING:
    from kafka_fast.control.producer.transaction_control import TransactionControl

logger = get_logger("kafka_fast.producer")


class ProducerControl(ClientControl[ProducerSettings, OwnCommand, ProduceEvent]):
    """Policy of one producer. Control thread only."""

    kind = "producer"
    logger = logger

    def __init__(
        self,
        settings: ProducerSettings,
        client_id: str,
        random: Callable[[], float],
        wall_ms: Callable[[], int],
        mechanism: Mechanism | None = None,
    ) -> None:
        """Make the parts that only producers have, beside those of every client.

        Args:
            settings: the producer's configuration.
            client_id: of all requests.
            random: returns a float in [0, 1).
            wall_ms: returns the Unix time in ms.
            mechanism: for the login over each connection; None: there is none.
        """
        cluster = Cluster(settings, random, max_idle=settings.metadata_max_idle)
        super().__init__(settings, client_id, random, wall_ms, cluster, mechanism=mechanism)
        self._settings = settings
        self.routes = Routes(self.context)
        self.transactions: TransactionControl | None = None
        """The transactions, if the producer has a transactional id."""
        if settings.transactional_id is None:
            self.identity: InitProducerIdCall = InitProducerIdCall(
                self.context, on_identity=self._handle_identity, on_fatal=self._handle_fatal
            )
        else:
            from kafka_fast.control.producer.transaction_control import TransactionControl

            self.transactions = TransactionControl(
                self.context,
                settings.transactional_id,
                self.routes,
                put_command=self._commands.append,
                on_identity=self._handle_identity,
                on_fatal=self._handle_fatal,
                on_unusable=self._refuse_link,
            )
            self.identity = self.transactions.identity
            self.routes.may_send = self.transactions.may_send
        self.lost_partitions = LostPartitions(
            self.cluster, self.routes, on_lost=self._commands.append
        )
        self.limits = TopicLimits(self.context, on_settled=self._handle_limits)
        self.causes = Causes(self.context, self.identity, self.limits, lambda: self.fatal)
        self._rules = Rules(
            idempotent=settings.enable_idempotence,
            transactional=settings.transactional_id is not None,
            retries=settings.retries,
            delay=lambda attempts: self.context.backoff.delay(attempts - 1),
        )
        self._awaited: set[str] = set()  # topics that callers wait for
        self._new_leaders: set[int] = set()  # queues whose leader moved since their freeze
        self._begun: set[int] = set()  # nodes to which a link is being made, unless news ended that
        self._waiting_for_epoch: list[QueueReport] = []
        self._waiting_for_limits: dict[int, QueueReport] = {}  # by queue
        self._limited: dict[str, BatchLimit | None] = {}  # as the data plane knows it, by topic
        self._refused = RefusedBatches()
        self._unsent = LongWait(logger)

    @property
    def awaited(self) -> frozenset[str]:
        """The topics that callers wait for."""
        return frozenset(self._awaited)

    def _describe_own(self, now: float) -> list[str]:
        identity = self.identity.identity
        who = f"{identity.producer_id} epoch {identity.epoch}" if identity else "not there yet"
        lines = [f"producer id {who}"]
        if self.transactions is not None:
            lines.append(self.transactions.describe_state())
        lines += [
            f"link {link.id} to {link.key}: ready, Produce up to "
            f"v{link.versions.pick(ProduceRequest)}"
            for link in list(self.links.ready)
        ]
        return lines

    def says_what_waits(self) -> bool:
        """Tell whether the log already says what records wait for. Any thread."""
        return self._unsent.is_told

    # ---- commands of the callers ----

    def want_topic(self, topic: str, now: float) -> None:
        """Ask for a topic that a caller waits for; `TopicSettled` answers."""
        self._awaited.add(topic)
        self.cluster.want_topic(topic, now)
        if self.fatal is not None:
            self._commands.append(TopicSettled(topic, self.fatal))
        elif self.cluster.partition_count(topic) is not None:
            self._settle(topic, now)

    def touch_topics(self, topics: list[str], now: float) -> None:
        """Keep the metadata of topics in use.

        Those are the ones that records went to, those that callers wait for, and those whose
        records wait for a link to their leader.
        """
        waiting = dict.fromkeys(partition.topic for partition in self.routes.without_link())
        for topic in (*topics, *sorted(self._awaited), *waiting):
            self.cluster.want_topic(topic, now)

    def give_up_topic(self, topic: str) -> None:
        """Stop asking for a topic: nobody waits for it any more."""
        self._awaited.discard(topic)

    # ---- time ----

    def _tick(self, now: float) -> None:
        if self.fatal is not None:
            return
        self._connect_to_leaders(now)
        if self.transactions is not None:
            self.transactions.warn_if_due(now)
            for report in list(self._waiting_for_limits.values()) * self.transactions.is_giving_up:
                self._give_up_report(report)
        elif self._settings.enable_idempotence:
            self.identity.want_identity()
        if not any(True for _ in self._unsendable()):
            self._unsent.end_wait()
        elif not self._unsent.is_told:
            self._unsent.log_if_long(now, self._describe_unsent)

    def _connect_to_leaders(self, now: float) -> None:
        """Have a link made to each node to which queues with data need one."""
        for node_id in self.routes.wanted_nodes():
            if node_id not in self._begun:
                if not self.connections.may_begin:
                    return
                self.requester.want_data_link(node_id, now)
                self._begun.add(node_id)

    def _unsendable(self) -> Iterator[TopicPartition]:
        """Yield the partitions whose records cannot be sent now."""
        lacks_id = self._settings.enable_idempotence and self.identity.identity is None
        partitions = self.routes.with_data() if lacks_id else self.routes.without_link()
        return (partition for partition in partitions if partition not in self.lost_partitions)

    def _describe_unsent(self, now: float) -> Waiting:
        """Return what records wait for that have not been sent for long."""
        waiting = list(self._unsendable())
        why = self.causes.why_not_acknowledged(waiting[0], now - LONG, now, is_sent=False)
        return Waiting(
            f"records of {some_of(waiting)} wait to be sent: {why.text}; they fail after "
            f"delivery.timeout.ms ({in_seconds(self._settings.delivery_timeout)})"
        )

    def _next_deadline(self) -> float:
        if self.fatal is not None:
            return NEVER
        deadline = NEVER if self.transactions is None else self.transactions.next_warning()
        return deadline if self._unsent.is_told else min(deadline, self._unsent.deadline)

    # ---- out and in ----

    def _poll_own(self) -> ProducerCommand | None:
        return self.routes.poll_command()

    def _handle_own(self, event: ProduceEvent, now: float) -> None:
        match event:
            case QueueReport():
                self._handle_report(event, now)
            case ProducePunt():
                self._handle_punt(event, now)
            case RouteWanted(queue_ids):
                for queue_id in queue_ids:
                    self._want_route(queue_id, now)
            case _:
                assert_never(event)

    # ---- links and metadata ----

    def _want_route(self, queue_id: int, now: float) -> None:
        if self.fatal is not None:
            self._commands.append(self._give_up(queue_id))
            return
        self.routes.route_queue(queue_id)
        queue = self.routes.queue(queue_id)
        self.cluster.want_topic(queue.topic, now)
        if queue.awaited_node == NO_LEADER:
            self.cluster.request_refresh("a partition with data has no leader", queue.topic)
            self.lost_partitions.handle_records(queue)

    def _handle_changes(self, changes: ClusterChanges, now: float) -> None:
        """Bring the routes in line with what changed in the cluster."""
        self._begun.clear()
        if changes.cluster_replaced:
            self._leave_cluster()
        touched = {*changes.new_topics, *changes.returned_topics, *changes.identified_topics}
        touched |= {change.topic for change in changes.resized}
        touched |= {change.topic for change in changes.recreated_topics}
        touched |= {topic for topic, _ in changes.leaders}
        anew = self._topics_anew(changes)
        for topic, partition in changes.leaders:
            queue = self.routes.queue_of(topic, partition)
            if queue is not None:
                self._new_leaders.add(queue.id)
        for topic in sorted(touched):  # a set's order differs from run to run
            if topic in anew:
                self._begin_anew(topic)
            if self.cluster.partition_count(topic) is not None:
                self._set_up(topic, now)
        for topic in changes.expired_topics:
            self.limits.forget_topic(topic)
            self._limit_batches(topic)
        self.limits.renew(now)
        self.lost_partitions.handle_answer(now)
        for topic in changes.answered:
            if topic in self._awaited:
                self._settle(topic, now)

    def _leave_cluster(self) -> None:
        """Get another producer id: in another cluster this one belongs to somebody else."""
        if self.transactions is not None:
            self.transactions.leave_cluster()
        elif self.identity.identity is not None:
            self.identity.replace_identity()
            self._commands.append(SetProducerId(-1, -1))

    def _topics_anew(self, changes: ClusterChanges) -> set[str]:
        """Return the topics whose logs are new, as far as the metadata tell.

        A topic without an id that was gone for a while may have been created again. One that
        metadata.max.idle.ms had dropped comes as a new one, but its queues are there.
        """
        returned = (
            topic for topic in changes.returned_topics if self.cluster.topic_id(topic) is None
        )
        known = filter(self.routes.is_another, changes.new_topics)
        return {*(change.topic for change in changes.recreated_topics), *returned, *known}

    def _begin_anew(self, topic: str) -> None:
        """Forget what is known of the logs of a topic that was deleted and created again."""
        queues = self.routes.queues_of(topic)
        self._new_leaders.update(queue.id for queue in queues)
        self.limits.forget_topic(topic)
        self._limit_batches(topic)
        for queue in queues:
            self.troubles.forget_subject(TopicPartition(topic, queue.partition))
        self.routes.restart(topic)

    def _set_up(self, topic: str, now: float) -> None:
        """Bring a topic's routes in line with the metadata. This may make a link unusable."""
        for link, error in self.routes.set_up(topic):
            self._refuse_link(link, error, now)

    def _settle(self, topic: str, now: float) -> None:
        """Answer the callers that wait for a topic, if the cluster knows the answer."""
        settled = self.cluster.settled(topic)
        if settled is None:
            return
        if settled.error is None:
            if topic not in self.routes.topics:
                self._set_up(topic, now)
            self._flush_routes()
        self._awaited.discard(topic)
        self._commands.append(settled)

    def _flush_routes(self) -> None:
        """Put the routes' commands before the commands that follow."""
        while (command := self.routes.poll_command()) is not None:
            self._commands.append(command)

    def handle_ready(self, link: Link, now: float) -> None:
        """Send the batches that wait for this link."""
        self._begun.discard(link.key.node_id)
        if self.transactions is not None:
            self.transactions.handle_ready(link, now)
        try:
            self.routes.program(link)
        except UnsupportedVersionError as error:
            self._refuse_link(link, error, now)
            return
        self.routes.handle_ready(link)

    def _refuse_link(self, link: Link, error: UnsupportedVersionError, now: float) -> None:
        """Close a link that cannot carry Produce requests, and fail: the next would not either."""
        self.connections.refuse_link(link, error, now)
        self._handle_fatal(error)

    def handle_lost(self, link: Link, error: KafkaError | None, now: float) -> None:
        """Forget the routes over a link that is gone; ask for metadata if it was lost in use."""
        self._begun.discard(link.key.node_id)
        self.routes.handle_lost(link)
        super().handle_lost(link, error, now)

    def handle_connect_failed(
        self, key: ConnectionKey, failed: ConnectionFailed, now: float
    ) -> None:
        """A connection could not be made; if records still need it, it is made again."""
        self._begun.discard(key.node_id)
        super().handle_connect_failed(key, failed, now)

    # ---- producer id and epoch ----

    def _handle_identity(self, identity: ProducerIdentity, now: float) -> None:
        self._commands.append(SetProducerId(identity.producer_id, identity.epoch))
        waiting, self._waiting_for_epoch = self._waiting_for_epoch, []
        for report in waiting:
            self._handle_report(report, now, identity)

    def _stop(self, error: KafkaError) -> None:
        if self.transactions is not None:
            self.transactions.stop(error)
        self._commands.append(RefuseRecords(error))
        self._commands.extend(self._give_up(queue_id) for queue_id in self.routes.queue_ids)
        for topic in sorted(self._awaited):
            self._commands.append(TopicSettled(topic, error))
        self._awaited.clear()
        self._waiting_for_epoch.clear()

    def _give_up(self, queue_id: int) -> FailQueue:
        """Return the command that fails the batches that wait in a queue, because of `fatal`."""
        return FailQueue(queue_id, 0)

    # ---- failures ----

    def _handle_report(
        self, report: QueueReport, now: float, new: ProducerIdentity | None = None
    ) -> None:
        """Judge a frozen queue. `new` is the identity for which the report has waited."""
        queue = self.routes.queue(report.queue.queue_id)
        if self.transactions is not None and self.transactions.is_giving_up:
            self._give_up_report(report)
            return
        if self._asks_for_limits(report, queue.topic, now):
            return
        split_size = self._learn_limit(report, queue.topic, now)
        leader_is_new = queue.id in self._new_leaders
        judgement = judge(
            report,
            self._rules,
            now,
            leader_is_new=leader_is_new,
            split_size=split_size,
            refusals=self._refused.of_queue(queue.id),
        )
        commands = [*judgement.commands]
        if self.fatal is not None:
            commands.append(self._give_up(queue.id))
        elif judgement.bump:
            renumbering = self._begin_again(report, now, new)
            if renumbering is None:
                return
            commands.append(renumbering)
        self._new_leaders.discard(queue.id)
        self._fail_transaction(commands, now)
        self._note_refusals(report, now)
        self._commands.extend(commands)
        self._commands.append(judgement.thaw)
        self.cluster.want_topic(queue.topic, now)
        self._refresh_after(report, queue.topic)

    def _give_up_report(self, report: QueueReport) -> None:
        """Fail what is left of a frozen queue: its transaction will not be committed."""
        queue_id = report.queue.queue_id
        self._waiting_for_limits.pop(queue_id, None)
        self._refused.take_queue(queue_id)
        self._new_leaders.discard(queue_id)
        thaw = ThawQueue(queue_id, report.queue.generation, 0.0, single=False)
        self._commands += (FailQueue(queue_id, ABORTED), thaw)

    def _fail_transaction(self, commands: list[ProducerCommand], now: float) -> None:
        """Let the first batch that these commands fail have its transaction aborted."""
        for command in commands if self.transactions is not None else ():
            if isinstance(command, FailBatch):
                where = self._place_of(command.row.queue_id)
                refusal = self._refused.of_batch(command.row)
                error = broker_error(command.error_code) if refusal is None else refusal.error
                assert self.transactions is not None
                self.transactions.handle_failed_batch(where, error, now)
                return

    def _note_refusals(self, report: QueueReport, now: float) -> None:
        """Forget what the leader said; keep as a trouble what is no other batch's fault."""
        refusals = self._refused.take_queue(report.queue.queue_id)
        followers = consequences(report)
        for row in report.batches:
            refusal = refusals.get((row.serial, row.slice))
            is_late = row.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            if refusal is not None and is_late and row not in followers:
                self.troubles.note(self._place_of(row.queue_id), refusal.error, now)

    def _asks_for_limits(self, report: QueueReport, topic: str, now: float) -> bool:
        """Tell whether a report has to wait for the topic's limits: a batch was too large."""
        queue_id = report.queue.queue_id
        self._waiting_for_limits.pop(queue_id, None)  # a report of an older failure is void
        large = _too_large(report)
        if not large or self.fatal is not None:
            return False
        smallest = min(row.wire_size for row in large)
        if self.limits.is_settled(topic, smallest, now):
            return False
        self._waiting_for_limits[queue_id] = report
        self.limits.ask_limits(topic, now)
        return True

    def _learn_limit(self, report: QueueReport, topic: str, now: float) -> int:
        """Let no batches be made any more that are too large; return how large they may be."""
        large = _too_large(report)
        if not large:
            return 0
        limit = self.limits.learn(topic, large, now)
        self._limit_batches(topic)
        return limit.size

    def _limit_batches(self, topic: str) -> None:
        """Tell the data plane how large a topic's batches may be, if that has changed."""
        limit = self.limits.learnt(topic)
        if limit != self._limited.get(topic):
            self._limited[topic] = limit
            size, wire_size = limit or (0, 0)
            self._commands.append(LimitTopic(topic, size, wire_size))

    def _handle_limits(self, topic: str, now: float) -> None:
        """Judge the reports that waited for a topic's limits, known now or not."""
        self._limit_batches(topic)
        for queue_id, report in list(self._waiting_for_limits.items()):
            if self.routes.queue(queue_id).topic == topic:
                del self._waiting_for_limits[queue_id]
                self._handle_report(report, now)

    def _begin_again(
        self, report: QueueReport, now: float, new: ProducerIdentity | None
    ) -> RenumberQueue | None:
        """Return the command that renumbers a queue under a new epoch.

        None: a new producer id has to come first, and the report waits for it.
        """
        identity = new or self.identity.bump(now)
        if identity is None:
            self._waiting_for_epoch.append(report)
            return None
        logger.info(
            "epoch %d of producer %d begins with %s-%d",
            identity.epoch,
            identity.producer_id,
            *self._place_of(report.queue.queue_id),
        )
        return begin_again(report, identity)

    def _place_of(self, queue_id: int) -> TopicPartition:
        queue = self.routes.queue(queue_id)
        return TopicPartition(queue.topic, queue.partition)

    def _refresh_after(self, report: QueueReport, topic: str) -> None:
        """Ask for metadata if an answer says that the known metadata are stale."""
        for row in report.batches:
            known = ERRORS.get(row.error_code)
            if known is not None and known.refresh_metadata:
                self.cluster.request_refresh(f"{known.name} for {topic}", topic)
                return

    def _partition_of(self, queue_id: int) -> TopicPartition | None:
        return self._place_of(queue_id) if queue_id in self.routes.queue_ids else None

    def _handle_punt(self, event: ProducePunt, now: float) -> None:
        """Take the leaders that the answer names, and keep its errors."""
        try:
            _, body = frame.decode_response(ProduceResponse, event.frame, event.version)
        except ProtocolError as error:
            logger.warning("a Produce answer cannot be read: %s", error)
            return
        link = self.links.link(event.link_id)
        who = "its leader" if link is None else link.versions.node
        by_name, by_number = rows_of(event, self._place_of)
        hints: list[LeaderHint] = []
        for topic in body.responses:
            name = topic.name or self.cluster.topic_name(topic.topic_id) or ""
            for answer in topic.partition_responses:
                if answer.error_code == 0:
                    continue
                row = by_name.get(TopicPartition(name, answer.index)) or by_number[answer.index]
                self._note_refusal(row, answer, who, now)
                hint = answer.current_leader
                if hint.leader_id >= 0 and name:
                    by = topic.name or topic.topic_id
                    hints.append(LeaderHint(by, answer.index, hint.leader_id, hint.leader_epoch))
        if hints:
            changes = self.cluster.apply_leader_hints(hints, body.node_endpoints, now=now)
            self.discovery.apply(changes, now)

    def _note_refusal(
        self, row: BatchRow, answer: PartitionProduceResponse, who: str, now: float
    ) -> None:
        """Keep the refusal of a batch, in the broker's words if it has any.

        Of a batch that comes too early in the sequence the verdict tells whether it is a trouble.
        """
        where = self._place_of(row.queue_id)
        refusal = refusal_of(where, answer, who)
        self._refused.keep_refusal(row, refusal)
        if answer.error_code not in NO_TROUBLE:
            self.troubles.note(where, refusal.error, now)


NO_TROUBLE = frozenset(
    {
        *TOO_LARGE,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    }
)
"""Of a batch that is split, that counts as success, or that waits for its verdict."""


def _too_large(report: QueueReport) -> list[BatchRow]:
    return [row for row in report.batches if row.error_code in TOO_LARGE]
