"""Requests of a consumer's user that the control thread answers: about offsets and groups.

Thread: the user's unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kafka_fast.consumer.waits import Waits
from kafka_fast.control.consumer.consumer_control import ConsumerControl
from kafka_fast.control.consumer.lookup import Found
from kafka_fast.control.group.group import Group
from kafka_fast.errors import KafkaError, UsageError
from kafka_fast.net.calls import Calls
from kafka_fast.net.waiting.steps import Steps
from kafka_fast.net.waiting.waits import Answer
from kafka_fast.types import OffsetAndMetadata, TopicPartition

NO_GROUP = "this needs a group.id; without a group use assign(), or read_range() for a range"


class ConsumerQueries:
    """What one consumer's user asks about offsets and groups."""

    def __init__(self, control: ConsumerControl, waits: Waits, call: Calls) -> None:
        """Start with no commit under way.

        Args:
            control: answers on the control thread.
            waits: waits for the answers.
            call: reaches the control thread.
        """
        self._control = control
        self._waits = waits
        self._call = call
        # One for each commit that has not ended. The user's thread adds, the control thread
        # removes, each in one step.
        self._commits: set[object] = set()

    # ---- offsets ----

    @property
    def has_commits(self) -> bool:
        """Whether a commit has not ended yet."""
        return bool(self._commits)

    def offsets(self, wanted: Mapping[TopicPartition, int], deadline: float) -> Steps[Found]:
        """Return offsets by time in Unix ms, or at the special timestamps of ListOffsets."""
        answer: Answer[Found] = Answer()
        self._call(lambda now: self._control.lookup.look_up(wanted, answer.set, now))
        try:
            missing = self._control.lookup.why_waiting
            what = "looking up offsets"
            return (yield from self._waits.wait(answer, deadline, what, missing=missing))
        finally:
            self._call(lambda now: self._control.lookup.cancel())

    def committed(
        self, partitions: Iterable[TopicPartition] | None, deadline: float
    ) -> Steps[dict[TopicPartition, OffsetAndMetadata | None]]:
        """Return the group's committed offsets, of all partitions if `partitions` is None."""
        group = self._group()
        answer: Answer[dict[TopicPartition, OffsetAndMetadata | None]] = Answer()
        requested = None if partitions is None else list(partitions)
        cancels: list[Callable[[], None]] = []

        def ask(now: float) -> None:
            for partition in requested or ():
                self._control.cluster.want_topic(partition.topic, now)
            cancels.append(group.committed.fetch(requested, answer.set))

        self._call(ask)
        try:
            missing = group.why_waiting_for_coordinator
            what = "fetching committed offsets"
            return (yield from self._waits.wait(answer, deadline, what, missing=missing))
        finally:
            self._call(lambda now: _call_all(cancels))

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        done: Callable[[KafkaError | None], None],
        deadline: float,
        *,
        as_member: bool,
        skips_unknown: bool = False,
    ) -> None:
        """Commit after all earlier commits have ended. `done` runs on the control thread."""
        self._group()
        commit = object()

        def end(error: KafkaError | None) -> None:
            done(error)
            self._commits.discard(commit)

        self._commits.add(commit)
        self._call(
            lambda now: self._control.commit(
                offsets,
                end,
                now,
                deadline=deadline,
                as_member=as_member,
                skips_unknown=skips_unknown,
            )
        )

    def _group(self) -> Group:
        if self._control.group is None:
            raise UsageError(NO_GROUP)
        return self._control.group


def _call_all(calls: Iterable[Callable[[], None]]) -> None:
    for call in calls:
        call()
