"""Judges calls: against each item's last answer, what the user knew, and what the brokers have.

    result of a call ─► one outcome for each item ─► is that its last answer?        WRONG_ITEM
                                                  ─► does it fit what was known?     CONTRADICTION
                                                  ─► do the brokers have it so?      UNTRUE

A user knows of each of its topics whether it exists, but for changes that may or may not have been
made. Such a change is *loose* until it can take effect no more. After that, the next certain answer
tells. What cannot be known is no anomaly.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

from kafka_fast.admin import AdminResult
from kafka_fast.control.admin.operation import ONLY
from kafka_fast.errors import (
    BrokerError,
    ErrorCode,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersionError,
    WakeupError,
)
from kafka_fast.types import TopicPartition
from tests.sim.worlds.admins.admin_plan import NO_SUCH_NAME, AdminPlan
from tests.sim.worlds.admins.admin_records import (
    AdminKind,
    CallRecord,
    Findings,
    Key,
    Kind,
    TryRecord,
)
from tests.sim.worlds.admins.topic_history import (
    RECORDS,
    TopicHistory,
    TopicLife,
    was_missing,
    was_there,
)

SLACK = 0.1
"""Seconds after its deadline within which a call has ended."""

LINGERS = 0.3
"""Seconds for which a request may be on its way to its broker after its connection has ended."""

EXPLANATION = "an earlier try, of which no answer came"

INJECTED: dict[Kind, frozenset[int]] = {
    Kind.CREATE: frozenset(
        {
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            ErrorCode.POLICY_VIOLATION,
            ErrorCode.UNKNOWN_SERVER_ERROR,
        }
    ),
    Kind.DELETE: frozenset(
        {
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            ErrorCode.POLICY_VIOLATION,
            ErrorCode.UNKNOWN_SERVER_ERROR,
        }
    ),
    Kind.RECORDS: frozenset({ErrorCode.POLICY_VIOLATION}),
    Kind.DESCRIBE: frozenset(),
    Kind.LIST: frozenset(),
}
"""Errors that faults cause, and that are no reason to try again."""

OWN: dict[Kind, frozenset[int]] = {
    Kind.CREATE: frozenset(
        {
            ErrorCode.TOPIC_ALREADY_EXISTS,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.INVALID_PARTITIONS,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            ErrorCode.INVALID_CONFIG,
        }
    ),
    Kind.DELETE: frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}),
    Kind.DESCRIBE: frozenset(
        {
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
    ),
    Kind.RECORDS: frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OFFSET_OUT_OF_RANGE}),
    Kind.LIST: frozenset(),
}
"""Errors that the user's own items cause."""

CERTAIN: dict[Kind, tuple[int, bool]] = {
    Kind.CREATE: (ErrorCode.TOPIC_ALREADY_EXISTS, True),
    Kind.DELETE: (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
}
"""The error that says the change was made before, and whether there is a topic after the change."""


def topic_of(key: Key) -> str:
    """Return the topic that an item is about."""
    return key.topic if isinstance(key, TopicPartition) else key


class AdminChecker:
    """Judges the calls of all users of one world."""

    def __init__(self, plan: AdminPlan, history: TopicHistory, findings: Findings) -> None:
        """Know nothing of any topic but that none exists.

        Args:
            plan: of the world.
            history: what the brokers did.
            findings: take what is wrong.
        """
        self._plan = plan
        self._history = history
        self._findings = findings
        self._known: dict[str, bool | None] = {}
        self._loose: defaultdict[str, list[TryRecord]] = defaultdict(list)

    # ---- what users know ----

    def known(self, topic: str) -> bool | None:
        """Return whether a topic exists as far as its user can know; None: that is not known."""
        return None if self._is_loose(topic) else self._known.get(topic, False)

    def contradicts(self, topic: str) -> bool:
        """Return whether a topic is known to exist, and does not; or the other way round."""
        known = self.known(topic)
        return known is not None and known != (self._history.living(topic) is not None)

    def note_beginning(self, call: CallRecord) -> None:
        """Write down what is known before a call that changes topics."""
        if call.kind in CERTAIN:
            call.known = {key: self.known(topic_of(key)) for key in call.keys}
            call.loose = {key for key in call.keys if self._is_loose(topic_of(key))}

    def _is_loose(self, topic: str) -> bool:
        """Return whether a change may still take effect of which no call waits for an answer."""
        now = self._findings.clock.now
        self._loose[topic] = [
            one
            for one in self._loose[topic]
            if not one.is_resolved or (one.is_lost and one.resolved_at + LINGERS > now)
        ]
        return bool(self._loose[topic])

    def _learn(self, call: CallRecord, key: Key) -> None:
        """Keep what the tries of an item that changes a topic have shown."""
        topic = topic_of(key)
        already, exists = CERTAIN[call.kind]
        for one in call.tries.get(key, ()):
            code = one.outcomes.get(key, (None, None))[0]
            if code == already or (code == 0 and not call.validate_only):
                self._known[topic] = exists
            elif one.is_uncertain(key) and not call.validate_only:
                self._known[topic] = None
            if not call.validate_only:
                self._loose[topic].append(one)
        if key in call.loose:  # the order in which both took effect is not known
            self._known[topic] = None
        if self.contradicts(topic):
            self._add(AdminKind.UNTRUE, call, key, f"is known to exist: {self.known(topic)}")

    # ---- calls ----

    def judge(self, call: CallRecord, outcome: object) -> None:
        """Judge a call that has ended.

        Args:
            call: with all its tries.
            outcome: what it has returned or raised.
        """
        ended = self._findings.clock.now
        call.ended_at = ended
        self._findings.log(f"{call} ends: {outcome!r}"[:300])
        if ended > call.deadline + SLACK:
            self._findings.add(AdminKind.LATE, f"{call}: {ended - call.deadline} s")
        if isinstance(outcome, AdminResult):
            self._judge_result(call, outcome)
        elif call.kind is Kind.LIST and not isinstance(outcome, BaseException):
            self._count(call, "done")
            self._judge_endings(call)
            self._judge_list(call, outcome)
        elif isinstance(outcome, WakeupError) and self._plan.closes_early:
            self._count(call, "closed")
        elif isinstance(outcome, asyncio.CancelledError) and call.is_cancelled:
            self._count(call, "cancelled")
        elif call.kind is Kind.LIST and isinstance(outcome, KafkaError):
            self._judge_endings(call)
            self._judge_error(call, ONLY, outcome)
        else:
            self._findings.add(AdminKind.FORBIDDEN, f"{call}: {outcome!r}")
        if call.kind in CERTAIN:
            for key in call.keys:
                self._learn(call, key)

    def _judge_result(self, call: CallRecord, result: AdminResult[Any, Any]) -> None:
        values, errors = result.succeeded, result.errors
        tries = [one for key in call.keys for one in call.tries.get(key, ())]
        throttle_ms = max((one.throttle_ms for one in tries), default=0)
        if result.throttle_time_ms != throttle_ms:
            what = f"throttled for {result.throttle_time_ms} ms, not {throttle_ms}"
            self._findings.add(AdminKind.UNTRUE, f"{call}: {what}")
        if list(result) != list(call.keys) or len(values) + len(errors) != len(call.keys):
            self._findings.add(AdminKind.KEYS, f"{call}: {list(result)}")
        self._judge_endings(call)
        for key in call.keys:
            if key in values:
                self._count(call, "done")
                self._judge_value(call, key, values[key])
            elif key in errors:
                self._judge_error(call, key, errors[key])

    def _judge_endings(self, call: CallRecord) -> None:
        for key in call.keys:
            if call.endings[key] != 1:
                self._add(AdminKind.TWICE, call, key, f"{call.endings[key]} times")
        if call.page_endings != call.pages:
            what = f"{call.page_endings} ends of {call.pages} pages"
            self._findings.add(AdminKind.TWICE, f"{call}: {what}")

    # ---- values ----

    def _judge_value(self, call: CallRecord, key: Key, value: Any) -> None:
        outcome = call.last_outcome(key)
        if outcome is None or outcome[0] != 0:
            self._add(AdminKind.WRONG_ITEM, call, key, f"answered {outcome}")
            return
        said = outcome[1]
        topic = topic_of(key)
        if call.kind is Kind.CREATE:
            if value.topic_id != said[0] or (value.partition_count or -1) != said[1]:
                self._add(AdminKind.WRONG_ITEM, call, key, f"{value} of {said}")
            marks = [life.call for life in self._history.lives(topic)]
            if (call.number in marks) == call.validate_only:
                self._add(AdminKind.UNTRUE, call, key, f"created for calls {marks}")
        elif call.kind is Kind.DESCRIBE:
            is_named = key == (value.topic_id if call.by_id else value.name)
            numbers = [one.partition for one in value.partitions]
            if not is_named or (value.topic_id, numbers) != said:
                self._add(AdminKind.WRONG_ITEM, call, key, f"{value} of {said}")
            self._judge_description(call, key, len(value.partitions))
        elif call.kind is Kind.RECORDS:
            offset = call.offsets[key]  # type: ignore[index]  # a partition
            if value != said or value < (RECORDS if offset == -1 else offset):
                self._add(AdminKind.WRONG_ITEM, call, key, f"{value} of {said}")
        if call.kind in CERTAIN and not call.was_uncertain(key):
            _, exists = CERTAIN[call.kind]
            if call.known.get(key) is exists:
                self._add(AdminKind.CONTRADICTION, call, key, f"existed: {exists}")

    def _judge_description(self, call: CallRecord, key: Key, partitions: int) -> None:
        now = self._findings.clock.now
        counts = [
            len(life.topic.partitions)
            for life in self._lives(call, key)
            if life.born <= now and life.died >= call.began
        ]
        if partitions not in counts:
            self._add(AdminKind.UNTRUE, call, key, f"{partitions} of {counts} partitions")

    def _judge_list(self, call: CallRecord, listed: Any) -> None:
        now, outcome = self._findings.clock.now, call.last_outcome(ONLY)
        if outcome is None or set(listed) != outcome[1] or list(listed) != sorted(listed):
            self._add(AdminKind.WRONG_ITEM, call, ONLY, f"{listed} of {outcome}")
        for name in self._history.names:
            lives = self._history.lives(name)
            is_wrong = (
                not was_there(lives, call.began, now)
                if name in listed
                else not was_missing(lives, call.began, now)
            )
            if is_wrong:
                self._add(AdminKind.UNTRUE, call, name, f"listed: {name in listed}")

    # ---- errors ----

    def _judge_error(self, call: CallRecord, key: Key, error: KafkaError) -> None:
        self._count(call, type(error).__name__)
        shown = repr(key) if isinstance(key, str) else str(key)
        if key != ONLY and shown not in str(error):
            self._add(AdminKind.NAMELESS, call, key, str(error))
        match error:
            case KafkaTimeoutError():
                if self._findings.clock.now < call.deadline:
                    self._add(AdminKind.EARLY, call, key, f"{call.deadline:.6f}: {error}")
                if call.is_settled:
                    self._add(AdminKind.FORBIDDEN, call, key, str(error))
            case BrokerError():
                self._judge_code(call, key, error)
            case UnsupportedVersionError():
                if not self._is_too_old(call, key):
                    self._add(AdminKind.FORBIDDEN, call, key, str(error))
            case KafkaConnectionError():
                if call.is_repeatable or not call.tries[key][-1].is_lost or call.is_settled:
                    self._add(AdminKind.FORBIDDEN, call, key, str(error))
            case _:
                self._add(AdminKind.FORBIDDEN, call, key, repr(error))

    def _judge_code(self, call: CallRecord, key: Key, error: BrokerError) -> None:
        code = error.code
        allowed = OWN[call.kind] if call.is_settled else OWN[call.kind] | INJECTED[call.kind]
        is_of_quota = code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if code not in allowed and not (is_of_quota and not call.retry_on_quota):
            self._add(AdminKind.FORBIDDEN, call, key, str(error))
        outcome = call.last_outcome(key)
        is_absent = code in (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
        )
        if (outcome is None or outcome[0] != code) and not (
            call.kind is Kind.RECORDS and is_absent  # the metadata say so, not a leader
        ):
            self._add(AdminKind.WRONG_ITEM, call, key, f"{error!r}, answered {outcome}")
        if is_absent and call.kind in (Kind.RECORDS, Kind.DESCRIBE):
            self._judge_absence(call, key, error)
        if call.kind in CERTAIN and code == CERTAIN[call.kind][0]:
            self._judge_explanation(call, key, error)
        if call.kind is Kind.CREATE and code != ErrorCode.TOPIC_ALREADY_EXISTS:
            self._judge_refusal(call, key, error)
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and (
            call.offsets[key] <= RECORDS  # type: ignore[index]  # a partition
        ):
            self._add(AdminKind.WRONG_ITEM, call, key, str(error))

    def _judge_refusal(self, call: CallRecord, key: Key, error: BrokerError) -> None:
        """Judge an error that says that this new topic is not possible."""
        new_topic = call.new_topics[topic_of(key)]
        reasons: dict[int, bool] = {
            ErrorCode.INVALID_TOPIC_EXCEPTION: new_topic.name.endswith(NO_SUCH_NAME),
            ErrorCode.INVALID_PARTITIONS: new_topic.num_partitions == 0,
            ErrorCode.INVALID_CONFIG: len(new_topic.configs) > 1,
            ErrorCode.INVALID_REPLICATION_FACTOR: not call.is_settled
            or new_topic.replication_factor > self._plan.nodes,
        }
        if not reasons.get(error.code, True):
            self._add(AdminKind.WRONG_ITEM, call, key, str(error))

    def _judge_absence(self, call: CallRecord, key: Key, error: BrokerError) -> None:
        """Judge an error that says that there is no such topic or partition."""
        lives = self._lives(call, key)
        is_absent = was_missing(lives, call.began, self._findings.clock.now)
        if isinstance(key, TopicPartition):
            is_absent |= any(key.partition >= len(life.topic.partitions) for life in lives)
        is_of_id = error.code == ErrorCode.UNKNOWN_TOPIC_ID  # which no fault says
        if not is_absent and (call.is_settled or is_of_id):
            self._add(AdminKind.UNTRUE, call, key, str(error))

    def _judge_explanation(self, call: CallRecord, key: Key, error: BrokerError) -> None:
        """Judge an error that says that the change was made before."""
        is_explained, was_uncertain = EXPLANATION in str(error), call.was_uncertain(key)
        if is_explained:
            self._count(call, "explained")
        if is_explained and not was_uncertain:
            self._add(AdminKind.FALSELY_EXPLAINED, call, key, str(error))
        if was_uncertain and not is_explained:
            self._add(AdminKind.UNEXPLAINED, call, key, str(error))
        _, exists = CERTAIN[call.kind]
        if not is_explained and call.known.get(key) is (not exists):
            self._add(AdminKind.CONTRADICTION, call, key, str(error))

    def _is_too_old(self, call: CallRecord, key: Key) -> bool:
        """Return whether the brokers are too old for an item."""
        if call.by_id:
            return self._plan.version in ("2.1", "2.8")
        new_topic = call.new_topics.get(topic_of(key))
        is_complete = new_topic is None or new_topic.num_partitions != -1
        return self._plan.version == "2.1" and not is_complete

    # ---- helpers ----

    def _lives(self, call: CallRecord, key: Key) -> list[TopicLife]:
        """Return the topics that an item may mean."""
        topic = topic_of(key)
        return self._history.lives_of_id(topic) if call.by_id else self._history.lives(topic)

    def _count(self, call: CallRecord, what: str) -> None:
        self._findings.counts[f"{call.kind.value} {what}"] += 1

    def _add(self, kind: AdminKind, call: CallRecord, key: Key, detail: str) -> None:
        self._findings.add(kind, f"{call}, {key}: {detail}")
