"""What is written down of each call: its items, every try of an item, and how the tries ended."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kafka_fast.control.admin.operation import ONLY
from kafka_fast.control.admin.types.topic_ids import topic_id_text
from kafka_fast.control.admin.types.topics import NewTopic
from kafka_fast.errors import ErrorCode
from kafka_fast.protocol.apis.cluster.metadata import MetadataResponse
from kafka_fast.protocol.apis.topics.create_topics import CreateTopicsResponse
from kafka_fast.protocol.apis.topics.delete_records import DeleteRecordsResponse
from kafka_fast.protocol.apis.topics.delete_topics import DeleteTopicsResponse
from kafka_fast.protocol.apis.topics.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
)
from kafka_fast.types import TopicPartition
from tests.sim.worlds.clock import Clock

Key: TypeAlias = str | TopicPartition

UNRESOLVED_CODES = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_SERVER_ERROR})
"""After these nobody knows whether the change was made."""


class AdminKind(enum.Enum):
    """What may be wrong with a call."""

    TWICE = "an item ended twice, or never"
    KEYS = "the result is not about what was asked"
    WRONG_ITEM = "the outcome is not that of this item's last answer"
    NAMELESS = "the error does not name its item"
    FORBIDDEN = "this error must not reach the user"
    UNEXPLAINED = "the error may be the work of an earlier try, and does not say so"
    FALSELY_EXPLAINED = "the error blames an earlier try, and each of them was answered"
    CONTRADICTION = "what the user was told contradicts what the user knew"
    UNTRUE = "what the user was told is not what the brokers have"
    LATE = "the call went on after its deadline"
    EARLY = "the call gave up before its deadline"
    REPEATED = "an item was sent again that was in flight, had ended, or must not be repeated"
    HASTY = "a request was sent in a pause"
    AFTER_END = "a request was sent for a call that had ended"
    STUCK = "calls hang although everything is healed"


class Kind(enum.Enum):
    """What a call does."""

    CREATE = "create"
    DELETE = "delete"
    DESCRIBE = "describe"
    LIST = "list"
    RECORDS = "records"


@dataclass(frozen=True, slots=True)
class AdminAnomaly:
    """One broken promise."""

    kind: AdminKind
    detail: str

    def __str__(self) -> str:
        """Return both in one line."""
        return f"{self.kind.name}: {self.detail} ({self.kind.value})"


@dataclass(slots=True, eq=False)
class TryRecord:
    """One request, as it concerns the items in it."""

    sent_at: float
    node_id: int
    is_page: bool = False
    """Of topics: it may be answered with some partitions of some of the items."""
    is_resolved: bool = False
    resolved_at: float = 0.0
    outcomes: Mapping[Any, tuple[int, Any]] = field(default_factory=dict)
    """By item: the error code of the answer, and what it says of the item. Empty: lost."""
    throttle_ms: int = 0
    """For how long the answer asks the client to wait."""

    def resolve(
        self, outcomes: Mapping[Any, tuple[int, Any]], now: float, throttle_ms: int = 0
    ) -> None:
        """Keep the answer, or that there will be none."""
        self.is_resolved, self.resolved_at = True, now
        self.outcomes, self.throttle_ms = outcomes, throttle_ms

    @property
    def is_lost(self) -> bool:
        """Whether no answer has come, and none will."""
        return self.is_resolved and not self.outcomes

    @property
    def is_answered_page(self) -> bool:
        """Whether more may be asked at once: the next page, or what this one has not settled."""
        return self.is_page and self.is_resolved and not self.is_lost

    def is_uncertain(self, key: Key) -> bool:
        """Return whether nobody knows if it was carried out for an item."""
        return key not in self.outcomes or self.outcomes[key][0] in UNRESOLVED_CODES


@dataclass(slots=True, eq=False)
class CallRecord:
    """One call of a user."""

    number: int
    kind: Kind
    keys: Sequence[Key]
    began: float
    deadline: float
    new_topics: Mapping[str, NewTopic] = field(default_factory=dict)
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    validate_only: bool = False
    retry_on_quota: bool = True
    is_repeatable: bool = True
    by_id: bool = False
    """The items are ids of topics."""
    is_cancelled: bool = False
    is_settled: bool = False
    """Nothing is broken any more, and the client has recovered."""
    known: dict[Key, bool | None] = field(default_factory=dict)
    """Of the topics, which the user knew to exist, or not to, before the call; None: not known."""
    loose: set[Key] = field(default_factory=set)
    """The topics that changes of earlier calls may still concern."""
    tries: dict[Key, list[TryRecord]] = field(default_factory=dict)
    endings: Counter[Key] = field(default_factory=Counter)
    """How often each item was answered or failed, by a page or by an operation about it."""
    pages: int = 0
    """How many pages of descriptions the call has asked for, as operations."""
    page_endings: int = 0
    """How often one of them was answered or failed."""
    ended_at: float | None = None

    def __str__(self) -> str:
        return f"call {self.number} ({self.kind.value})"

    def last_outcome(self, key: Key) -> tuple[int, Any] | None:
        """Return what the last try of an item was answered; None: nothing.

        A page is answered with what all pages have said of the same topic.
        """
        tries = self.tries.get(key)
        outcome = tries[-1].outcomes.get(key) if tries else None
        if not tries or not tries[-1].is_page or outcome is None or outcome[0] != 0:
            return outcome
        topic_id = outcome[1][0]
        said = [one.outcomes[key][1] for one in tries if one.is_page and key in one.outcomes]
        numbers = [number for of_id, part in said if of_id == topic_id for number in part]
        return 0, (topic_id, numbers)

    def end_by_page(self, keys: Iterable[Key]) -> None:
        """Note that a page has settled items. Each page refuses some that are settled already."""
        self.endings.update(key for key in keys if not self.endings[key])

    def was_uncertain(self, key: Key) -> bool:
        """Return whether a try before the last may have been carried out."""
        return any(one.is_uncertain(key) for one in self.tries.get(key, ())[:-1])


@dataclass(slots=True)
class Findings:
    """What was found in a world: its anomalies, counts and log."""

    clock: Clock
    anomalies: list[AdminAnomaly] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    log_lines: list[str] = field(default_factory=list)

    def log(self, line: str) -> None:
        """Add a line with the virtual time to the log of this run."""
        self.log_lines.append(f"{self.clock.now:.6f} {line}")

    def add(self, kind: AdminKind, detail: str) -> None:
        """Keep that something is wrong."""
        self.anomalies.append(AdminAnomaly(kind, f"{self.clock.now:.6f} {detail}"))
        self.log(f"anomaly: {self.anomalies[-1]}")


def _created(answer: CreateTopicsResponse) -> dict[Key, tuple[int, Any]]:
    return {
        one.name: (one.error_code, (topic_id_text(one.topic_id), one.num_partitions))
        for one in answer.topics
    }


def _deleted(answer: DeleteTopicsResponse) -> dict[Key, tuple[int, Any]]:
    return {one.name or "": (one.error_code, None) for one in answer.responses}


def _described(
    answer: MetadataResponse | DescribeTopicPartitionsResponse,
) -> dict[Key, tuple[int, Any]]:
    described: dict[Key, tuple[int, Any]] = {}
    for one in answer.topics:
        topic_id = topic_id_text(one.topic_id)
        said = topic_id, [part.partition_index for part in one.partitions]
        described[one.name or ""] = one.error_code, said
        if topic_id is not None:
            described[topic_id] = one.error_code, said
    described[ONLY] = (0, {one.name for one in answer.topics})
    return described


def _cut(answer: DeleteRecordsResponse) -> dict[Key, tuple[int, Any]]:
    return {
        TopicPartition(topic.name, one.partition_index): (one.error_code, one.low_watermark)
        for topic in answer.topics
        for one in topic.partitions
    }


READERS: Mapping[Kind, Callable[[Any], dict[Key, tuple[int, Any]]]] = {
    Kind.CREATE: _created,
    Kind.DELETE: _deleted,
    Kind.DESCRIBE: _described,
    Kind.LIST: _described,
    Kind.RECORDS: _cut,
}
"""What an answer says of each item, read without the client's operations."""
