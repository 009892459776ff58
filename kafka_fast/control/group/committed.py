"""A group's offsets, read: where its members left off.

Offsets are asked for by topic id where the coordinator knows ids (OffsetFetch v10). So a client
that hears late that a topic was made anew still begins the new one where its group left off. Older
brokers know names only, and an offset may be the former topic's. There the new topic begins with
its first record: twice rather than never.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from kafka_fast.config import CONSUMER_PROTOCOL, ConsumerSettings
from kafka_fast.control.context import Context
from kafka_fast.control.group.coordinator import GroupCoordinator
from kafka_fast.control.group.member import GroupIdentity
from kafka_fast.control.metadata import NO_TOPIC_ID, by_topic
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
from kafka_fast.control.troubles import About
from kafka_fast.errors import ErrorCode, KafkaError, ProtocolError, broker_error
from kafka_fast.protocol.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kafka_fast.types import OffsetAndMetadata, TopicPartition

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
        """Begin with nothing to do.

        Args:
            context: the consumer's.
            coordinator: keeps the offsets.
            identity: returns who asks.
        """
        self.context = context
        self.coordinator = coordinator
        self.identity = identity

    @property
    def tells_topics_apart(self) -> bool:
        """Whether the coordinator is known to know topics by id."""
        link = self.coordinator.link
        return link is not None and link.versions.pick(OffsetFetchRequest) > LAST_VERSION_WITH_NAMES

    def fetch(
        self,
        partitions: Iterable[TopicPartition] | None,
        done: Callable[[Fetched | KafkaError], None],
    ) -> Callable[[], None]:
        """Ask for committed offsets until there is an answer; returns what gives it up.

        Args:
            partitions: whose; None: all of which the group has committed anything.
            done: called with an offset, or None where there is none, for each; or with why not.
        """
        wanted = None if partitions is None else tuple(partitions)
        return self.context.requester.begin(_FetchOffsets(self, wanted, done), [ONLY]).cancel


class _FetchOffsets(Call[str, Fetched]):
    """One question for offsets."""

    request_class = OffsetFetchRequest
    response_class = OffsetFetchResponse

    def __init__(
        self,
        group: CommittedOffsets,
        partitions: Sequence[TopicPartition] | None,
        done: Callable[[Fetched | KafkaError], None],
    ) -> None:
        settings = group.context.settings
        super().__init__(group.coordinator.target, timeout=settings.request_timeout)
        self._identity = group.identity
        self._cluster = group.context.cluster
        # In read_committed, transactions that have offsets pending are waited for.
        self._require_stable = settings.is_read_committed
        # With KIP-848 the coordinator wants to know which member asks.
        self._is_consumer_protocol = settings.group_protocol == CONSUMER_PROTOCOL
        self._group_id = group.coordinator.group_id
        self._partitions = partitions
        self._done = done
        self._topic_ids: dict[str, bytes | None] = {}  # when it was sent

    def subject(self, item: str) -> About:
        """Keep troubles as the group's."""
        return About.GROUP

    def max_version(self, items: Sequence[str]) -> int | None:
        """Ask by name unless all ids are known.

        Who asks for everything may be told of topics whose ids he does not know.
        """
        if self._partitions is None:
            return LAST_VERSION_WITH_NAMES
        ids = (self._cluster.topic_id(it.topic) for it in self._partitions)
        return LAST_VERSION_WITH_NAMES if None in ids else None

    def build(self, items: Sequence[str], version: int) -> OffsetFetchRequest:
        """Return a request for the partitions; None of them asks for everything."""
        topics = None if self._partitions is None else by_topic(self._partitions)
        self._topic_ids = {topic: self._cluster.topic_id(topic) for topic in topics or ()}
        # Before version 7 a broker cannot wait for transactions; then it need not, as in Java.
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
            # Who is no member may read all the same, but has to say nothing of itself.
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
        """Return the offsets, or the worst of what is wrong with them."""
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
        found: Fetched = {}
        codes = {code} - {0}
        for name, part in parts:
            if name in self._topic_ids and self._topic_ids[name] != self._cluster.topic_id(name):
                continue  # made anew since it was asked for: ask again
            if part.error_code and not self._is_gone(name, part.error_code):
                codes.add(part.error_code)
            offset = OffsetAndMetadata(
                part.committed_offset, part.committed_leader_epoch, part.metadata or ""
            )
            found[TopicPartition(name, part.partition_index)] = (
                None if offset.offset < 0 else offset
            )
        if codes:
            return worst([self._meaning_of(it) for it in sorted(codes)])
        if self._partitions is None:
            return Done(found)
        left_out = [it for it in self._partitions if it not in found]
        if left_out:
            return Retry(ProtocolError(f"the answer to OffsetFetch leaves {left_out[0]} out"))
        return Done({partition: found[partition] for partition in self._partitions})

    def _is_gone(self, topic: str, code: int) -> bool:
        """Tell whether a topic that the coordinator does not know by its id was deleted.

        It may have been made anew as well, or be so new that the coordinator has not heard of it.
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
        what = f"OffsetFetch in group {self._group_id!r}"
        meaning = meaning_of(code, what)
        if isinstance(meaning, Refused):
            is_old = code in (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
            if is_old and self._is_consumer_protocol:
                return Retry(meaning.error)  # the heartbeat brings the new epoch
            return Refused(broker_error(code, "committed offsets"))
        return meaning

    def handle_done(self, item: str, value: Fetched, now: float) -> None:
        """Hand the offsets on."""
        self._done(value)

    def handle_failed(self, item: str, error: KafkaError, now: float) -> None:
        """Tell that there will be none."""
        self._done(error)
