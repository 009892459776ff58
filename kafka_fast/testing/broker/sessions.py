"""Fetch sessions (KIP-227): what a broker remembers of a consumer's partitions between fetches.

    a full fetch         epoch 0: all partitions are named, a session begins if there is room
    an incremental one   epoch 1, 2, ...: only what changed is named, only what is new is answered
    epoch -1             all partitions are named, and the session ends

Each broker has sessions of its own, gone when it dies. The handler asks `open_context` what is to
be read, and hands the answers to the `finish` of what it got.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kafka_fast.errors import (
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpoch,
)
from kafka_fast.protocol.apis.records.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

IDS_FROM_VERSION = 13
NO_SESSION = 0
EVICTABLE_AFTER = 120.0  # seconds; Kafka's min.incremental.fetch.session.eviction.ms
_INITIAL_EPOCH, _FINAL_EPOCH = 0, -1
_LAST_EPOCH = 2**31 - 1
_NONE = -1

# Topic id, or its name up to version 12, and partition.
Key = tuple[bytes | str, int]


@dataclass(slots=True)
class Wanted:
    """A partition that is to be read."""

    topic: str | None
    """Its name; None: no topic has the id."""
    topic_id: bytes
    """Zeros up to version 12."""
    asked: FetchPartition
    high_watermark: int = _NONE
    """What the client was told last, of which a change is told again."""
    log_start_offset: int = _NONE


@dataclass(slots=True)
class FetchSession:
    """The partitions of one session, in the order in which they are read."""

    session_id: int
    uses_ids: bool
    partitions: dict[Key, Wanted]
    created: float
    """As `now`."""
    used: float
    epoch: int = 1
    """That the next request must carry."""


class Context(Protocol):
    """What one request is about."""

    @property
    def partitions(self) -> list[Wanted]:
        """The partitions to read, in this order."""

    def finish(self, answers: list[tuple[Wanted, PartitionData]], now: float) -> FetchResponse:
        """Return the response, with the answers that the client does not know yet."""


class FetchSessions:
    """The sessions of one broker."""

    def __init__(self, most: int) -> None:
        """Keep at most `most` sessions."""
        self._most = most
        self._sessions: dict[int, FetchSession] = {}
        self._last_id = 0  # goes on after `forget_all`: an old id must not mean a new session

    def __len__(self) -> int:
        """Return the number of sessions."""
        return len(self._sessions)

    def forget_all(self) -> None:
        """Forget all sessions, as a broker does that stops."""
        self._sessions.clear()

    def open_context(
        self, body: FetchRequest, version: int, names: Mapping[bytes, str], now: float
    ) -> Context | FetchResponse:
        """Return the context of a request, or the error response if its session is not valid.

        Args:
            body: the request.
            version: of it.
            names: topic id -> name.
            now: the time.
        """
        uses_ids = version >= IDS_FROM_VERSION
        partitions = _wanted(body, names, uses_ids)
        if body.session_epoch in (_INITIAL_EPOCH, _FINAL_EPOCH):
            self._sessions.pop(body.session_id, None)
            if body.session_epoch == _FINAL_EPOCH:
                return _Sessionless(partitions)
            return _Full(self, partitions, uses_ids)
        session = self._sessions.get(body.session_id)
        if session is None:
            return _refused(FetchSessionIdNotFound.code)
        if session.epoch != body.session_epoch:
            return _refused(InvalidFetchSessionEpoch.code)
        if session.uses_ids != uses_ids:
            return _refused(FetchSessionTopicIdError.code)
        for key, one in partitions.items():
            if key in session.partitions:
                session.partitions[key].asked = one.asked
            else:
                session.partitions[key] = one
        for key in _forgotten(body, uses_ids):
            session.partitions.pop(key, None)
        if not session.partitions:
            del self._sessions[session.session_id]
            return _Sessionless(partitions)
        session.used = now
        session.epoch = 1 if session.epoch == _LAST_EPOCH else session.epoch + 1
        for one in session.partitions.values():
            if one.topic is None:
                one.topic = names.get(one.topic_id)
        return _Incremental(session)

    def open(self, partitions: dict[Key, Wanted], uses_ids: bool, now: float) -> int:
        """Add a session and return its id, or NO_SESSION if the cache is full."""
        if len(self._sessions) >= self._most and not self._evict(len(partitions), now):
            return NO_SESSION
        self._last_id += 1
        self._sessions[self._last_id] = FetchSession(self._last_id, uses_ids, partitions, now, now)
        return self._last_id

    def _evict(self, size: int, now: float) -> bool:
        """End the session that was unused for long, or one that is old and smaller than `size`."""
        if not self._sessions:
            return False
        victim = min(self._sessions.values(), key=lambda one: one.used)
        if now - victim.used <= EVICTABLE_AFTER:
            old = [s for s in self._sessions.values() if now - s.created > EVICTABLE_AFTER]
            if not old:
                return False
            victim = min(old, key=lambda one: len(one.partitions))
            if len(victim.partitions) >= size:
                return False
        del self._sessions[victim.session_id]
        return True


@dataclass(slots=True)
class _Sessionless:
    """A request that stands for itself."""

    requested: dict[Key, Wanted]

    @property
    def partitions(self) -> list[Wanted]:
        return list(self.requested.values())

    def finish(self, answers: list[tuple[Wanted, PartitionData]], now: float) -> FetchResponse:
        return _response(NO_SESSION, answers)


@dataclass(slots=True)
class _Full:
    """A request that names all partitions and would like a session."""

    sessions: FetchSessions
    requested: dict[Key, Wanted]
    uses_ids: bool

    @property
    def partitions(self) -> list[Wanted]:
        return list(self.requested.values())

    def finish(self, answers: list[tuple[Wanted, PartitionData]], now: float) -> FetchResponse:
        kept: dict[Key, Wanted] = {}
        for one, data in answers:
            one.high_watermark = data.high_watermark
            one.log_start_offset = data.log_start_offset
            kept[_key(one)] = one
        return _response(self.sessions.open(kept, self.uses_ids, now), answers)


@dataclass(slots=True)
class _Incremental:
    """A request that goes on with a session."""

    session: FetchSession
    epoch: int = field(init=False)  # of the session after this request

    def __post_init__(self) -> None:
        self.epoch = self.session.epoch

    @property
    def partitions(self) -> list[Wanted]:
        return list(self.session.partitions.values())

    def finish(self, answers: list[tuple[Wanted, PartitionData]], now: float) -> FetchResponse:
        session = self.session
        if session.epoch != self.epoch:  # another request came while this one waited
            response = _refused(InvalidFetchSessionEpoch.code)
            response.session_id = session.session_id
            return response
        told = []
        for one, data in answers:
            if not _is_news(one, data):
                continue
            told.append((one, data))
            if data.records:  # to the end of the line: the others are read first the next time
                session.partitions.pop(_key(one), None)
                session.partitions[_key(one)] = one
        return _response(session.session_id, told)


def _is_news(one: Wanted, data: PartitionData) -> bool:
    """Tell whether an answer has news for the client, and keep what the client then knows."""
    news = bool(
        data.records
        or data.error_code
        or data.high_watermark != one.high_watermark
        or data.log_start_offset != one.log_start_offset
        or data.preferred_read_replica != _NONE
        or data.diverging_epoch.epoch != _NONE
    )
    # After an error the next answer is sent whatever it says.
    one.high_watermark = _NONE if data.error_code else data.high_watermark
    one.log_start_offset = data.log_start_offset
    return news


def _wanted(body: FetchRequest, names: Mapping[bytes, str], uses_ids: bool) -> dict[Key, Wanted]:
    """Return the partitions that a request names; of one named twice the last entry counts."""
    partitions: dict[Key, Wanted] = {}
    for topic in body.topics:
        name = names.get(topic.topic_id) if uses_ids else topic.topic
        for asked in topic.partitions:
            key = (topic.topic_id if uses_ids else topic.topic, asked.partition)
            partitions[key] = Wanted(name, topic.topic_id, asked)
    return partitions


def _forgotten(body: FetchRequest, uses_ids: bool) -> Iterator[Key]:
    for topic in body.forgotten_topics_data:
        for index in topic.partitions:
            yield (topic.topic_id if uses_ids else topic.topic, index)


def _key(one: Wanted) -> Key:
    if any(one.topic_id):
        return one.topic_id, one.asked.partition
    return one.topic or "", one.asked.partition


def _response(session_id: int, answers: list[tuple[Wanted, PartitionData]]) -> FetchResponse:
    """Return the answers under their topics; like Kafka, a topic may come up again."""
    topics: list[FetchableTopicResponse] = []
    for one, data in answers:
        last = topics[-1] if topics else None
        if last is None or (last.topic_id, last.topic) != (one.topic_id, one.topic or ""):
            last = FetchableTopicResponse(
                topic=one.topic or "", topic_id=one.topic_id, partitions=[]
            )
            topics.append(last)
        last.partitions.append(data)
    return FetchResponse(session_id=session_id, responses=topics)


def _refused(code: int) -> FetchResponse:
    return FetchResponse(error_code=code, session_id=NO_SESSION, responses=[])
