"""A group's offsets, written: one commit after the other.

Commits go out one after the other, so a later one is never overtaken by an earlier one, also when
the earlier has to be repeated. Each is of the topics that there were when it was made: one that was
made anew since then has another id, and gets nothing of it.

Thread: control.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from kafka_fast.config import CONSUMER_PROTOCOL, ConsumerSettings
from kafka_fast.control.context import Context
from kafka_fast.control.group.coordinator import Coordinator
from kafka_fast.control.group.member import Identity
from kafka_fast.control.instants import LONG_AGO, NEVER
from kafka_fast.control.leader_query import by_topic
from kafka_fast.control.link import Link
from kafka_fast.control.metadata import NO_TOPIC_ID
from kafka_fast.errors import (
    ERRORS,
    CommitFailedError,
    ErrorCode,
    KafkaError,
    broker_error,
)
from kafka_fast.logs import get_logger
from kafka_fast.protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from kafka_fast.values import Value

logger = get_logger("kafka_fast.group")


LAST_COMMIT_WITH_NAMES = 9


TOPIC_GONE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})

NOT_OURS_ANY_MORE = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_MEMBER_EPOCH,
    }
)

NOT_A_MEMBER = (
    "{} was refused: the group has rebalanced, and other members may read these partitions now; "
    "poll() more often, raise max.poll.interval.ms, or lower max.poll.records"
)

Offsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]


class _Commit(Value, frozen=False):
    offsets: dict[TopicPartition, OffsetAndMetadata]
    done: Callable[[KafkaError | None], None]
    deadline: float
    as_member: bool
    life: int  # of the member, when it committed
    topic_ids: dict[str, bytes]  # of the topics then, as far as they were known
    is_last: bool
    failures: int = 0


class Commits:
    """Writes one group's offsets. Control thread only."""

    def __init__(
        self,
        context: Context[ConsumerSettings],
        coordinator: Coordinator,
        identity: Callable[[], Identity],
        *,
        is_held: Callable[[], bool] = lambda: False,
        on_stale: Callable[[int, float], None] = lambda code, now: None,
    ) -> None:
        """Begin with nothing to do.

        Args:
            context: the consumer's.
            coordinator: keeps the offsets.
            identity: returns who commits.
            is_held: returns whether commits have to wait, since they would be refused now.
            on_stale: called with the code of an answer that says the member is not what it was.
        """
        self._coordinator = coordinator
        self._cluster = context.cluster
        self._backoff = context.backoff
        self._identity = identity
        self._is_held = is_held
        # Its member's epoch may change under a commit, which then is repeated (KIP-848).
        self._is_consumer_protocol = context.settings.group_protocol == CONSUMER_PROTOCOL
        self._on_stale = on_stale
        self._commits: deque[_Commit] = deque()
        self._settling: list[tuple[Collection[TopicPartition] | None, Callable[[float], None]]] = []
        self._committing = False
        self._commit_at = LONG_AGO

    # Getters

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        if not all(self._is_pending(partitions) for partitions, _ in self._settling):
            return LONG_AGO
        # What is in flight ends with its answer, however late.
        waiting = itertools.islice(self._commits, int(self._committing), None)
        deadline = min((commit.deadline for commit in waiting), default=NEVER)
        may_send = self._coordinator.link is not None and not self._is_held()
        if may_send and self._commits and not self._committing:
            deadline = min(deadline, self._commit_at)
        return deadline

    # Commands

    def commit(
        self,
        offsets: Offsets,
        done: Callable[[KafkaError | None], None],
        now: float,
        *,
        deadline: float,
        as_member: bool = False,
        is_last: bool = False,
    ) -> None:
        """Commit after everything that was committed before.

        Args:
            offsets: by partition.
            done: called with None, or with why it was not (or perhaps not) done.
            now: the time.
            deadline: when to give up.
            as_member: refused once this client is no member any more: a coordinator takes a
                stranger's commit while the group is empty, over what its next member may commit.
            is_last: the partitions are given up next; a topic that the brokers do not know, which
                may be a new one, is then taken for one that was deleted.
        """
        if not offsets:
            done(None)
            return
        self._commits.append(
            _Commit(
                dict(offsets),
                done,
                deadline,
                as_member,
                self._identity().life,
                self._topic_ids(offsets),
                is_last,
            )
        )
        self.tick(now)

    def _topic_ids(self, offsets: Offsets) -> dict[str, bytes]:
        known = {topic: self._cluster.topic_id(topic) for topic in by_topic(offsets)}
        return {topic: topic_id for topic, topic_id in known.items() if topic_id is not None}

    def settle(
        self,
        partitions: Collection[TopicPartition] | None,
        then: Callable[[float], None],
        now: float,
    ) -> None:
        """Call `then` once no commit of these partitions waits or is in flight; None: of any."""
        self._settling.append((partitions, then))
        self.tick(now)

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        self._send_next(now)
        for entry in [it for it in self._settling if not self._is_pending(it[0])]:
            if entry in self._settling:  # one may have brought another tick
                self._settling.remove(entry)
                entry[1](now)

    def _is_pending(self, partitions: Collection[TopicPartition] | None) -> bool:
        if partitions is None:
            return bool(self._commits)
        return any(not commit.offsets.keys().isdisjoint(partitions) for commit in self._commits)

    def _send_next(self, now: float) -> None:
        for commit in [it for it in self._commits if it.deadline <= now]:
            if not (self._committing and commit is self._commits[0]):
                late = self._coordinator.late("the commit was not sent in time")
                self._end_commit(commit, late)
        if not self._commits or self._committing or now < self._commit_at or self._is_held():
            return
        link = self._coordinator.want(now)
        if link is not None:
            self._send_commit(link, now)

    def fail_all(self, error: KafkaError) -> None:
        """There will never be a coordinator."""
        for commit in list(self._commits):
            self._end_commit(commit, error)

    # Commits

    def _send_commit(self, link: Link, now: float) -> None:
        commit = self._commits[0]
        who = self._identity()
        is_over = who.life != commit.life or (commit.as_member and who.generation < 0)
        if is_over:
            self._end_commit(commit, CommitFailedError(NOT_A_MEMBER.format("the commit")))
            self._send_next(now)
            return
        self._drop_former(commit)
        if not commit.offsets:
            self._end_commit(commit, None)
            self._send_next(now)
            return
        topics = by_topic(commit.offsets)
        has_ids = commit.topic_ids.keys() >= topics.keys()
        request = OffsetCommitRequest(
            group_id=self._coordinator.group_id,
            generation_id_or_member_epoch=who.generation,
            member_id=who.member_id,
            group_instance_id=who.instance_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=commit.topic_ids.get(topic, NO_TOPIC_ID),
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset.offset,
                            committed_leader_epoch=offset.leader_epoch,
                            committed_metadata=offset.metadata,
                        )
                        for partition in partitions
                        for offset in [commit.offsets[TopicPartition(topic, partition)]]
                    ],
                )
                for topic, partitions in topics.items()
            ],
        )
        try:
            self._coordinator.ask(
                link,
                request,
                OffsetCommitResponse,
                lambda response, then: self._handle_committed(commit, response, then),
                lambda error, then: self._retry_commit(commit, then),
                max_version=None if has_ids else LAST_COMMIT_WITH_NAMES,
            )
        except KafkaError as error:
            self._end_commit(commit, error)
            return
        self._committing = True

    def _drop_former(self, commit: _Commit) -> None:
        """Leave out what was made for topics that are known to be others by now.

        Their offsets went with them. A broker that is asked by name would store these for the new
        ones; one that is asked by id knows none of the old.
        """
        now_known = self._topic_ids(commit.offsets)
        for partition in list(commit.offsets):
            made_for = commit.topic_ids.get(partition.topic)
            if made_for is not None and now_known.get(partition.topic, made_for) != made_for:
                logger.info("%s: not committed, its topic was made anew", partition)
                del commit.offsets[partition]

    def _handle_committed(
        self, commit: _Commit, response: OffsetCommitResponse, now: float
    ) -> None:
        self._committing = False
        worst: KafkaError | None = None
        retry = False
        names = {topic_id: name for name, topic_id in commit.topic_ids.items()}
        for topic in response.topics:
            name = topic.name or names.get(topic.topic_id, "?")
            for part in topic.partitions:
                code = part.error_code
                partition = TopicPartition(name, part.partition_index)
                if code == 0 or (commit.is_last and code in TOPIC_GONE):
                    commit.offsets.pop(partition, None)
                    continue
                known = ERRORS.get(code)
                may_pass = known is not None and known.retriable
                is_stale = code == ErrorCode.STALE_MEMBER_EPOCH and self._is_consumer_protocol
                what = f"OffsetCommit of {partition}"
                if self._coordinator.handle_error(code, now, what) or may_pass or is_stale:
                    retry = True
                    if code in TOPIC_GONE:
                        self._cluster.request_refresh("a commit found no such topic", name)
                else:
                    worst = worst or _commit_error(code, partition)
                    if code in NOT_OURS_ANY_MORE or code == ErrorCode.FENCED_INSTANCE_ID:
                        self._on_stale(code, now)
        if worst is not None or not retry:
            self._coordinator.note_success()
            self._end_commit(commit, worst)
            self.tick(now)
        else:
            self._retry_commit(commit, now)

    def _retry_commit(self, commit: _Commit, now: float) -> None:
        self._committing = False
        self._commit_at = now + self._backoff.delay(commit.failures)
        commit.failures += 1

    def _end_commit(self, commit: _Commit, error: KafkaError | None) -> None:
        self._commits.remove(commit)
        self._commit_at = LONG_AGO
        commit.done(error)


def _commit_error(code: int, partition: TopicPartition) -> KafkaError:
    """Return what a commit raises for this code."""
    error = broker_error(code, f"commit of {partition}")
    if code not in NOT_OURS_ANY_MORE:
        return error
    failed = CommitFailedError(NOT_A_MEMBER.format(f"the commit of {partition} ({error.name})"))
    failed.__cause__ = error
    return failed
