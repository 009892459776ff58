"""A group's offsets, read: where its members stopped reading.

Offsets are requested by topic id if the coordinator knows ids (OffsetFetch v10). So even a client
that learns late of a recreated topic begins where its group stopped in the new topic. Older brokers
know only names, and an offset may belong to the deleted topic. With such brokers the new topic is
read from its first record: records may be read twice, but none is skipped.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from kafka_fast.config import CONSUMER_PROTOCOL, ConsumerSettings
from kafka_fast.control.context import Context
from kafka_fast.control.diagnosis.permissions import described
from kafka_fast.control.diagnosis.troubles import About
from kafka_fast.control.group.group_coordinator import GroupCoordinator
from kafka_fast.control.group.member import GroupIdentity
from kafka_fast.control.item_splitting import split_items
from kafka_fast.control.metadata.metadata import NO_TOPIC_ID, by_topic
from kafka_fast.control.requests.call import ONLY, AnswerSource, CollectingCall
from kafka_fast.control.requests.meanings import (
    Done,
    Meaning,
    NotDone,
    Refused,
    Retry,
    meaning_of,
    worst,
)
from kafka_fast.errors import ErrorCode, KafkaError, ProtocolError, broker_error
from kafka_fast.protocol.apis.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kafka_fast.types import OffsetAndMetadata, TopicPartition

PARTITIONS_PER_REQUEST = 500
"""More would make an answer that keeps the control thread from other work."""

LAST_VERSION_WITH_NAMES = 9
FIRST_VERSION_WITH_STABLE = 7
FIRST_VERSION_WITH_GROUPS = 8

Fetched: TypeAlias = dict[TopicPartition, OffsetAndMetadata | None]


class CommittedOffsets:
    """Reads one group's offsets. Control thread only."""

    def __init__(
        self,
        context: Context[ConsumerSettings],
        coordinator: GroupCoordinator,
        identity: Callable[[], GroupIdentity],
    ) -> None:
        """Keep the arguments; each `fetch` makes its requests.

        Args:
            context: the consumer's.
            coordinator: of the group.
            identity: returns the member's present identity.
        """
        self.context = context
        self.coordinator = coordinator
        self.identity = identity

    @property
    def tells_topics_apart(self) -> bool:
        """Whether the coordinator is known to support topic ids."""
        link = self.coordinator.link
        return link is not None and link.versions.pick(OffsetFetchRequest) > LAST_VERSION_WITH_NAMES

    def fetch(
        self,
        partitions: Iterable[TopicPartition] | None,
        done: Callable[[Fetched | KafkaError], None],
    ) -> Callable[[], None]:
        """Ask for committed offsets until there is an answer; return a function that cancels.

        Args:
            partitions: the partitions; None: all that have a committed offset.
            done: called with the offset of each partition, or None where there is none; or with
                the error.
        """
        requested = None if partitions is None else tuple(partitions)
        if requested is None or len(requested) <= PARTITIONS_PER_REQUEST:
            return self.context.requester.open_call(
                _FetchOffsets(self, requested, done), [ONLY]
            ).cancel
        return _Pieces(self, split_items(requested, PARTITIONS_PER_REQUEST), done).cancel


class _Pieces:
    """The offsets of so many partitions that one answer would keep the control thread busy."""

    def __init__(
        self,
        group: CommittedOffsets,
        pieces: Sequence[Sequence[TopicPartition]],
        done: Callable[[Fetched | KafkaError], None],
    ) -> None:
        """Ask for all pieces; the arguments are those of `CommittedOffsets.fetch`."""
        self._done = done
        self._missing = len(pieces)
        self._fetched: Fetched = {}
        self._cancels = [group.fetch(piece, self._handle) for piece in pieces]

    def cancel(self) -> None:
        """Ask no more."""
        for cancel in self._cancels:
            cancel()

    def _handle(self, fetched: Fetched | KafkaError) -> None:
        self._missing -= 1
        if isinstance(fetched, KafkaError):
            self.cancel()
            self._done(fetched)
        else:
            self._fetched |= fetched
            if not self._missing:
                self._done(self._fetched)


class _FetchOffsets(CollectingCall[str, Fetched]):
    """One request for offsets."""

    request_class = OffsetFetchRequest
    response_class = OffsetFetchResponse

    def __init__(
        self,
        group: CommittedOffsets,
        partitions: Sequence[TopicPartition] | None,
        done: Callable[[Fetched | KafkaError], None],
    ) -> None:
        settings = group.context.settings
        super().__init__(
            group.coordinator.target,
            timeout=settings.request_timeout,
            on_ended=lambda results, now: done(results.only()),
        )
        self._identity = group.identity
        self._cluster = group.context.cluster
        # With read_committed the coordinator waits for transactions that have pending offsets.
        self._require_stable = settings.is_read_committed
        # With KIP-848 the request names the member.
        self._is_consumer_protocol = settings.group_protocol == CONSUMER_PROTOCOL
        self._group_id = group.coordinator.group_id
        self._partitions = partitions
        self._topic_ids: dict[str, bytes | None] = {}  # when the request was sent

    def subject(self, item: str) -> About:
        """Keep troubles under `About.GROUP`."""
        return About.GROUP

    def max_version(self, items: Sequence[str]) -> int | None:
        """Ask by name unless all ids are known.

        An answer about all partitions may name topics whose ids this client does not know.
        """
        if self._partitions is None:
            return LAST_VERSION_WITH_NAMES
        ids = (self._cluster.topic_id(partition.topic) for partition in self._partitions)
        return LAST_VERSION_WITH_NAMES if None in ids else None

    def build(self, items: Sequence[str], version: int) -> OffsetFetchRequest:
        """Return the request for the partitions, or for all if they are None."""
        topics = None if self._partitions is None else by_topic(self._partitions)
        self._topic_ids = {topic: self._cluster.topic_id(topic) for topic in topics or ()}
        # Before version 7 a broker cannot wait for transactions. Java does without, too.
        can_wait = version >= FIRST_VERSION_WITH_STABLE
        request = OffsetFetchRequest(require_stable=self._require_stable and can_wait)
        if version < FIRST_VERSION_WITH_GROUPS:
            request.group_id = self._group_id
            request.topics = (
                None
                if topics is None
                else [
                    OffsetFetchRequestTopic(name=topic, partition_indexes=partitions)
                    for topic, partitions in topics.items()
                ]
            )
            return request
        group = OffsetFetchRequestGroup(group_id=self._group_id)
        if self._is_consumer_protocol:
            who = self._identity()
            # A client that is no member may read the offsets if it names no member.
            group.member_id, group.member_epoch = who.member_id or None, who.generation
        group.topics = (
            None
            if topics is None
            else [
                OffsetFetchRequestTopics(
                    name=name,
                    topic_id=self._topic_ids[name] or NO_TOPIC_ID,
                    partition_indexes=partitions,
                )
                for name, partitions in topics.items()
            ]
        )
        request.groups = [group]
        return request

    def read(
        self, answer: OffsetFetchResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[Fetched]]]:
        """Return the offsets, or the worst of the errors."""
        yield ONLY, self._read(answer, source.version)

    def _read(self, answer: OffsetFetchResponse, version: int) -> Meaning[Fetched]:
        if version >= FIRST_VERSION_WITH_GROUPS:
            group = answer.groups[0] if answer.groups else None
            code = group.error_code if group is not None else ErrorCode.UNSTABLE_OFFSET_COMMIT
            parts = [
                (topic.name or self._cluster.topic_name(topic.topic_id) or "", part)
                for topic in (group.topics if group is not None else ())
                for part in topic.partitions
            ]
        else:
            code = answer.error_code
            parts = [(topic.name, part) for topic in answer.topics for part in topic.partitions]  # type: ignore[misc]
        offsets: Fetched = {}
        codes = {code} - {0}
        for name, part in parts:
            if name in self._topic_ids and self._topic_ids[name] != self._cluster.topic_id(name):
                continue  # recreated since the request was sent: ask again
            if part.error_code and not self._is_gone(name, part.error_code):
                codes.add(part.error_code)
            offset = OffsetAndMetadata(
                part.committed_offset, part.committed_leader_epoch, part.metadata or ""
            )
            offsets[TopicPartition(name, part.partition_index)] = (
                None if offset.offset < 0 else offset
            )
        if codes:
            return worst([self._meaning_of(error_code) for error_code in sorted(codes)])
        if self._partitions is None:
            return Done(offsets)
        left_out = [partition for partition in self._partitions if partition not in offsets]
        if left_out:
            return Retry(ProtocolError(f"the answer to OffsetFetch leaves {left_out[0]} out"))
        return Done({partition: offsets[partition] for partition in self._partitions})

    def _is_gone(self, topic: str, code: int) -> bool:
        """Tell whether a topic that the coordinator does not know by its id was deleted.

        It may also have been recreated, or be so new that the coordinator does not know it yet.
        """
        if code != ErrorCode.UNKNOWN_TOPIC_ID:
            return False
        if self._cluster.error(topic) in (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
        ):
            return True
        self._cluster.request_refresh("the group's coordinator does not know it", topic)
        return False

    def _meaning_of(self, code: int) -> NotDone:
        meaning = meaning_of(code, "OffsetFetch", f" in group {self._group_id!r}")
        if isinstance(meaning, Refused):
            is_old = code in (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
            if is_old and self._is_consumer_protocol:
                return Retry(meaning.error)  # the heartbeat brings the new epoch
            return Refused(
                broker_error(code, f"committed offsets: {described(code, 'OffsetFetch')}")
            )
        return meaning
