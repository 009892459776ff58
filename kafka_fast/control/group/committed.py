"""A group's offsets, read: where its members left off.

They are asked for by topic id where the coordinator knows ids, so that those of a topic which was
made anew are never taken for the former one's, nor the reverse.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from kafka_fast.config import CONSUMER_PROTOCOL, ConsumerSettings
from kafka_fast.control.context import Context
from kafka_fast.control.group.coordinator import Coordinator
from kafka_fast.control.group.member import Identity
from kafka_fast.control.instants import LONG_AGO, NEVER
from kafka_fast.control.leader_query import by_topic
from kafka_fast.control.link import Link
from kafka_fast.control.metadata import NO_TOPIC_ID
from kafka_fast.errors import ERRORS, ErrorCode, KafkaError, ProtocolError, broker_error
from kafka_fast.protocol.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from kafka_fast.values import Value, field

LAST_VERSION_WITH_NAMES = 9
FIRST_VERSION_WITH_STABLE = 7
FIRST_VERSION_WITH_GROUPS = 8


Fetched: TypeAlias = dict[TopicPartition, OffsetAndMetadata | None]


class _Fetch(Value, frozen=False):
    partitions: Sequence[TopicPartition] | None
    """None: all of which the group has committed anything."""
    done: Callable[[Fetched | KafkaError], None]
    topic_ids: dict[str, bytes | None] = field(factory=dict)  # when it was sent
    failures: int = 0
    not_before: float = LONG_AGO
    in_flight: bool = False


class CommittedOffsets:
    """Reads one group's offsets. Control thread only."""

    def __init__(
        self,
        context: Context[ConsumerSettings],
        coordinator: Coordinator,
        identity: Callable[[], Identity],
    ) -> None:
        """Begin with nothing to do.

        Args:
            context: the consumer's.
            coordinator: keeps the offsets.
            identity: returns who asks.
        """
        settings = context.settings
        self._coordinator = coordinator
        self._cluster = context.cluster
        self._backoff = context.backoff
        self._identity = identity
        # Wait for transactions that have offsets pending.
        self._require_stable = settings.is_read_committed
        # The coordinator wants to know which member asks (KIP-848).
        self._is_consumer_protocol = settings.group_protocol == CONSUMER_PROTOCOL
        self._fetches: list[_Fetch] = []

    @property
    def tells_topics_apart(self) -> bool:
        """Whether the coordinator is known to know topics by id."""
        link = self._coordinator.link
        return link is not None and link.versions.pick(OffsetFetchRequest) > LAST_VERSION_WITH_NAMES

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        if self._coordinator.link is None:
            return NEVER
        waiting = (fetch.not_before for fetch in self._fetches if not fetch.in_flight)
        return min(waiting, default=NEVER)

    def fetch(
        self,
        partitions: Iterable[TopicPartition] | None,
        done: Callable[[Fetched | KafkaError], None],
        now: float,
    ) -> Callable[[], None]:
        """Ask for committed offsets until there is an answer; returns what gives it up.

        Args:
            partitions: whose; None: all of which the group has committed anything.
            done: called with an offset, or None where there is none, for each; or with why not.
            now: the time.
        """
        fetch = _Fetch(None if partitions is None else tuple(partitions), done)
        self._fetches.append(fetch)
        self.tick(now)

        def cancel() -> None:
            if fetch in self._fetches:
                self._fetches.remove(fetch)

        return cancel

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        waiting = [it for it in self._fetches if not it.in_flight and it.not_before <= now]
        link = self._coordinator.want(now) if waiting else None
        if link is not None:
            for fetch in waiting:
                self._send(fetch, link)

    def fail_all(self, error: KafkaError) -> None:
        """There will never be a coordinator."""
        for fetch in list(self._fetches):
            self._end(fetch, error)

    def _send(self, fetch: _Fetch, link: Link) -> None:
        topics = None if fetch.partitions is None else by_topic(fetch.partitions)
        fetch.topic_ids = {topic: self._cluster.topic_id(topic) for topic in topics or ()}
        # Who asks for everything may be told of topics whose ids he does not know.
        has_ids = topics is not None and None not in fetch.topic_ids.values()
        limit = None if has_ids else LAST_VERSION_WITH_NAMES
        version = link.versions.pick(OffsetFetchRequest, limit)
        request = self._request(topics, fetch.topic_ids, version)
        try:
            self._coordinator.ask(
                link,
                request,
                OffsetFetchResponse,
                lambda response, then: self._handle_fetched(fetch, response, version, then),
                lambda error, then: self._retry(fetch, then),
                max_version=limit,
            )
        except KafkaError as error:
            self._end(fetch, error)
            return
        fetch.in_flight = True

    def _request(
        self,
        topics: Mapping[str, list[int]] | None,
        topic_ids: Mapping[str, bytes | None],
        version: int,
    ) -> OffsetFetchRequest:
        """Return a request for these partitions of topics; None asks for everything."""
        # Before version 7 a broker cannot wait for transactions; then it need not, as in Java.
        can_wait = version >= FIRST_VERSION_WITH_STABLE
        request = OffsetFetchRequest(require_stable=self._require_stable and can_wait)
        if version < FIRST_VERSION_WITH_GROUPS:
            request.group_id = self._coordinator.group_id
            request.topics = None
            if topics is not None:
                request.topics = [
                    OffsetFetchRequestTopic(name=topic, partition_indexes=partitions)
                    for topic, partitions in topics.items()
                ]
            return request
        group = OffsetFetchRequestGroup(group_id=self._coordinator.group_id)
        if self._is_consumer_protocol:
            who = self._identity()
            # Who is no member may read all the same, but has to say nothing of itself.
            group.member_id, group.member_epoch = who.member_id or None, who.generation
        group.topics = None
        if topics is not None:
            group.topics = [
                OffsetFetchRequestTopics(
                    name=name, topic_id=topic_ids[name] or NO_TOPIC_ID, partition_indexes=partitions
                )
                for name, partitions in topics.items()
            ]
        request.groups = [group]
        return request

    def _handle_fetched(
        self, fetch: _Fetch, response: OffsetFetchResponse, version: int, now: float
    ) -> None:
        if version >= FIRST_VERSION_WITH_GROUPS:
            group = response.groups[0] if response.groups else None
            code = group.error_code if group is not None else ErrorCode.UNSTABLE_OFFSET_COMMIT
            parts = [
                (topic.name or self._cluster.topic_name(topic.topic_id) or "", part)
                for topic in (group.topics if group is not None else ())
                for part in topic.partitions
            ]
        else:
            code = response.error_code
            parts = [(topic.name, part) for topic in response.topics for part in topic.partitions]  # type: ignore[misc]
        found: Fetched = {}
        codes = {code} - {0}
        for name, part in parts:
            if name in fetch.topic_ids and fetch.topic_ids[name] != self._cluster.topic_id(name):
                continue  # made anew since it was asked for: ask again
            if part.error_code and not self._is_gone(name, part.error_code):
                codes.add(part.error_code)
            offset = OffsetAndMetadata(
                part.committed_offset, part.committed_leader_epoch, part.metadata or ""
            )
            found[TopicPartition(name, part.partition_index)] = (
                None if offset.offset < 0 else offset
            )
        refused = [it for it in codes if not self._is_passing(it, now)]
        left_out = [it for it in fetch.partitions or () if it not in found]
        if not codes and not left_out:
            self._coordinator.note_success()
        if refused:
            self._end(fetch, broker_error(refused[0], "committed offsets"))
        elif codes or left_out:
            if not codes:
                text = f"the answer to OffsetFetch leaves {left_out[0]} out"
                self._coordinator.note_refusal(ProtocolError(text), now)
            self._retry(fetch, now)
        elif fetch.partitions is None:
            self._end(fetch, found)
        else:
            self._end(fetch, {partition: found[partition] for partition in fetch.partitions})

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

    def _is_passing(self, code: int, now: float) -> bool:
        """Tell whether a fetch that got this error may succeed later."""
        if self._coordinator.handle_error(code, now, "OffsetFetch"):
            return True
        if self._is_consumer_protocol and code in (
            ErrorCode.STALE_MEMBER_EPOCH,
            ErrorCode.UNKNOWN_MEMBER_ID,
        ):
            return True  # the heartbeat brings the new epoch
        known = ERRORS.get(code)
        return known is not None and known.retriable

    def _retry(self, fetch: _Fetch, now: float) -> None:
        fetch.in_flight = False
        fetch.not_before = now + self._backoff.delay(fetch.failures)
        fetch.failures += 1

    def _end(self, fetch: _Fetch, result: Fetched | KafkaError) -> None:
        if fetch in self._fetches:
            self._fetches.remove(fetch)
            fetch.done(result)
