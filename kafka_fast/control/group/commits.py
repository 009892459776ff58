"""A group's offsets, written: one commit after the other.

An earlier commit that is repeated must not overwrite a later one. So a commit is sent when the one
before it has ended. These rules decide which offsets may be committed:

* A commit of one membership is not sent in the next, because other members may own the partitions
  by then. A membership ends when the member is fenced or leaves.
* A client that is no member any more commits nothing. The coordinator of an empty group would
  accept its commit.
* A commit that is made while the member joins waits for the next group generation. The coordinator
  would read it behind the JoinGroup, when the generation that it names is over.
* A commit is for the topics that existed when it was made. While it is queued or repeated, it keeps
  their ids (OffsetCommit v10, for classic members too). Offsets that are known to belong to a
  deleted topic of the same name are left out. Offsets from a record that the user kept have no
  topic id, so these may be committed for a recreated topic.
* After a topic was recreated, its offsets are not committed until the user's thread has forgotten
  the old topic. Otherwise old offsets would be taken for the new topic's.
* A coordinator may hear of a new topic late, so a commit for a topic that it does not know is
  repeated. Once the metadata deny a topic that is read as well, it is gone: its offsets are left
  out, or the commit is refused if the topic's id is not known. An automatic or last commit is not
  repeated for it, because commits for topics that exist may wait behind it.

Thread: control.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from kafka_fast.config import CONSUMER_PROTOCOL, ConsumerSettings
from kafka_fast.control.context import Context
from kafka_fast.control.diagnosis.permissions import described
from kafka_fast.control.diagnosis.troubles import About
from kafka_fast.control.group.group_coordinator import GroupCoordinator
from kafka_fast.control.group.member import GroupIdentity
from kafka_fast.control.item_splitting import split_items
from kafka_fast.control.metadata.metadata import NO_TOPIC_ID, by_topic
from kafka_fast.control.requests.call import ONLY, AnswerSource, Call
from kafka_fast.control.requests.meanings import (
    Done,
    Meaning,
    NotDone,
    Refused,
    Retry,
    meaning_of,
    worst,
)
from kafka_fast.errors import CommitFailedError, ErrorCode, KafkaError, broker_error
from kafka_fast.logs import get_logger
from kafka_fast.protocol.apis.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafka_fast.types import OffsetAndMetadata, TopicPartition

logger = get_logger("kafka_fast.group")

OFFSETS_PER_REQUEST = 2000

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


class Commits:
    """Writes one group's offsets. Control thread only."""

    def __init__(
        self,
        context: Context[ConsumerSettings],
        coordinator: GroupCoordinator,
        identity: Callable[[], GroupIdentity],
        *,
        is_held: Callable[[], bool],
        on_stale: Callable[[int, float], None],
    ) -> None:
        """Start without commits; `commit` adds them.

        Args:
            context: the consumer's.
            coordinator: of the group.
            identity: returns the member's present identity.
            is_held: returns whether commits have to wait, because they would be refused now.
            on_stale: called with an error code that means the member's identity is outdated.
        """
        self.context = context
        self.coordinator = coordinator
        self.identity = identity
        self.on_stale = on_stale
        self._is_held = is_held
        self._commits: deque[Commit] = deque()
        self._settling: list[tuple[Collection[TopicPartition] | None, Callable[[float], None]]] = []

    def commit(
        self,
        offsets: Offsets,
        done: Callable[[KafkaError | None], None],
        *,
        deadline: float,
        as_member: bool = False,
        skips_unknown: bool = False,
    ) -> None:
        """Commit these offsets, after all commits before.

        Very many offsets are committed piece by piece: a coordinator writes those of a request as
        one batch, which has a largest size, and one request would keep the control thread busy.

        Args:
            offsets: by partition.
            done: called with None, or with the error. After an error the offsets may have been
                committed nevertheless.
            deadline: when to give up. A commit in flight ends with its answer, however late.
            as_member: refuse the commit if this client is no member any more. The coordinator of
                an empty group would accept it, over the offsets that the next member commits.
            skips_unknown: a topic that the coordinator does not know counts as deleted, even if
                it may just be new: the partitions are given up next, or the next automatic commit
                has their offsets again.
        """
        if not offsets:
            done(None)
            return
        pieces = split_items(list(offsets), OFFSETS_PER_REQUEST)
        if len(pieces) > 1:
            done = _once_all_have_ended(len(pieces), done)
        for piece in pieces:
            some = {partition: offsets[partition] for partition in piece}
            commit = Commit(self, some, done, as_member=as_member, skips_unknown=skips_unknown)
            self._commits.append(commit)
            self.context.requester.open_call(commit, [ONLY], deadline=deadline)

    def settle(
        self,
        partitions: Collection[TopicPartition] | None,
        then: Callable[[float], None],
        now: float,
    ) -> None:
        """Call `then` once no commit of these partitions is open; None: of any partition."""
        self._settling.append((partitions, then))
        self._look_settled(now)

    def may_send(self, commit: Commit) -> bool:
        """Tell whether it is a commit's turn."""
        return commit is self._commits[0] and not self._is_held()

    def end_commit(self, commit: Commit, error: KafkaError | None, now: float) -> None:
        """Remove a commit that has ended, and call its `done` with the error, or None.

        Then callbacks of `settle` are called that had only this commit to wait for.
        """
        self._commits.remove(commit)
        commit.done(error)
        self._look_settled(now)

    def _look_settled(self, now: float) -> None:
        for entry in [waiting for waiting in self._settling if not self._is_pending(waiting[0])]:
            if entry in self._settling:  # a call below may have removed it
                self._settling.remove(entry)
                entry[1](now)

    def _is_pending(self, partitions: Collection[TopicPartition] | None) -> bool:
        if partitions is None:
            return bool(self._commits)
        return any(not commit.offsets.keys().isdisjoint(partitions) for commit in self._commits)


class Commit(Call[str, None]):
    """One commit. Offsets that a try did not commit are tried again."""

    request_class = OffsetCommitRequest
    response_class = OffsetCommitResponse
    waits_for_answer = True

    def __init__(
        self,
        group: Commits,
        offsets: Offsets,
        done: Callable[[KafkaError | None], None],
        *,
        as_member: bool,
        skips_unknown: bool,
    ) -> None:
        settings = group.context.settings
        super().__init__(group.coordinator.target, timeout=settings.request_timeout)
        self.offsets = dict(offsets)
        self.done = done
        self._group = group
        self._cluster = group.context.cluster
        # With KIP-848 the member's epoch may change during a commit, which is then repeated.
        self._is_consumer_protocol = settings.group_protocol == CONSUMER_PROTOCOL
        self._as_member = as_member
        self._skips_unknown = skips_unknown
        self._denied: dict[str, int] = {}  # topic -> answers of the metadata when it was unknown
        self._membership = group.identity().number  # when the commit was made
        self._topic_ids = self._known_ids()  # when the commit was made

    def _known_ids(self) -> dict[str, bytes]:
        known = {topic: self._cluster.topic_id(topic) for topic in by_topic(self.offsets)}
        return {topic: topic_id for topic, topic_id in known.items() if topic_id is not None}

    def describe(self, item: str) -> str:
        """Return the name of the commit in errors."""
        return "the commit"

    def subject(self, item: str) -> About:
        """Keep troubles under `About.GROUP`."""
        return About.GROUP

    def may_send(self, item: str) -> bool:
        """Tell whether all earlier commits have ended, and no rebalance is under way."""
        return self._group.may_send(self)

    def settle_unsent(self, item: str, now: float) -> Meaning[None] | None:
        """Refuse a commit of a former membership; end one that has no offsets left."""
        who = self._group.identity()
        if who.number != self._membership or (self._as_member and who.generation < 0):
            return Refused(CommitFailedError(NOT_A_MEMBER.format("the commit")))
        self._drop_former()
        return None if self.offsets else Done(None)

    def _drop_former(self) -> None:
        """Leave out the offsets of topics that were recreated since the commit was made.

        A broker that is asked by name would store these offsets for the new topics. A broker that
        is asked by id does not know the old topics.
        """
        now_known = self._known_ids()
        for partition in list(self.offsets):
            made_for = self._topic_ids.get(partition.topic)
            if made_for is not None and now_known.get(partition.topic, made_for) != made_for:
                logger.info("%s: not committed, its topic was recreated", partition)
                del self.offsets[partition]

    def max_version(self, items: Sequence[str]) -> int | None:
        """Commit by name unless all ids are known."""
        has_ids = self._topic_ids.keys() >= by_topic(self.offsets).keys()
        return None if has_ids else LAST_COMMIT_WITH_NAMES

    def build(self, items: Sequence[str], version: int) -> OffsetCommitRequest:
        """Return the request for the offsets that are left."""
        who = self._group.identity()
        return OffsetCommitRequest(
            group_id=self._group.coordinator.group_id,
            generation_id_or_member_epoch=who.generation,
            member_id=who.member_id,
            group_instance_id=who.instance_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=self._topic_ids.get(topic, NO_TOPIC_ID),
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset.offset,
                            committed_leader_epoch=offset.leader_epoch,
                            committed_metadata=offset.metadata,
                        )
                        for partition in partitions
                        for offset in [self.offsets[TopicPartition(topic, partition)]]
                    ],
                )
                for topic, partitions in by_topic(self.offsets).items()
            ],
        )

    def read(
        self, answer: OffsetCommitResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[None]]]:
        """Drop the committed offsets, and return the worst error of the rest."""
        names = {topic_id: name for name, topic_id in self._topic_ids.items()}
        wrong: list[NotDone] = []
        for topic in answer.topics:
            name = topic.name or names.get(topic.topic_id, "?")
            for part in topic.partitions:
                code = part.error_code
                partition = TopicPartition(name, part.partition_index)
                meaning = self._meaning_of(code, partition, source.now) if code else None
                if meaning is None:
                    self.offsets.pop(partition, None)
                else:
                    wrong.append(meaning)
        yield ONLY, worst(wrong) if wrong else Done(None)

    def _is_gone(self, topic: str) -> bool:
        """Tell whether metadata deny the topic, and did so again since this was first noticed."""
        answers = self._cluster.answers(topic)
        return self._cluster.is_absent(topic) and answers > self._denied.setdefault(topic, answers)

    def _meaning_of(self, code: int, partition: TopicPartition, now: float) -> NotDone | None:
        """Return what an error means; None: the offset is left out, because its topic is gone."""
        topic = partition.topic
        if code in TOPIC_GONE and (self._skips_unknown or self._is_gone(topic)):
            if not self._skips_unknown and topic not in self._topic_ids:
                return Refused(_commit_error(code, partition))
            logger.info("%s: not committed, its topic is gone", partition)
            return None
        about = f" of {partition} in group {self._group.coordinator.group_id!r}"
        meaning = meaning_of(code, "OffsetCommit", about, topic=partition.topic)
        if not isinstance(meaning, Refused):
            return meaning
        if code == ErrorCode.STALE_MEMBER_EPOCH and self._is_consumer_protocol:
            return Retry(meaning.error)
        if code in NOT_OURS_ANY_MORE or code == ErrorCode.FENCED_INSTANCE_ID:
            self._group.on_stale(code, now)
        return Refused(_commit_error(code, partition))

    def handle_done(self, item: str, value: None, now: float) -> None:
        """End the commit: all offsets are committed."""
        self._group.end_commit(self, None, now)

    def handle_failed(self, item: str, error: KafkaError, now: float) -> None:
        """End the commit with the error of some offsets."""
        self._group.end_commit(self, error, now)


def _once_all_have_ended(
    count: int, done: Callable[[KafkaError | None], None]
) -> Callable[[KafkaError | None], None]:
    """Return what to call at the end of each piece; the last one tells the first error."""
    outcomes: list[KafkaError | None] = []

    def end(error: KafkaError | None) -> None:
        outcomes.append(error)
        if len(outcomes) == count:
            done(next(filter(None, outcomes), None))

    return end


def _commit_error(code: int, partition: TopicPartition) -> KafkaError:
    """Return what a commit raises for this code."""
    error = broker_error(code, f"commit of {partition}: {described(code, 'OffsetCommit')}")
    if code not in NOT_OURS_ANY_MORE:
        return error
    failed = CommitFailedError(NOT_A_MEMBER.format(f"the commit of {partition} ({error.name})"))
    failed.__cause__ = error
    return failed
