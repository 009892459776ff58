"""The user's side of a group: partitions change hands here, where somebody polls.

    kf-control ─ RevokeWanted ─► commit ─► listener ─► give up ── handle_revoked ─► kf-control
               ─ AssignWanted ─► take over ─► listener ───────── handle_assigned ─►

Code that may wait, or that calls the user, is written as steps (`net/waiting/steps.py`).

This module also decides when an automatic commit is sent. It names what is covered (see
`user_cursor.py`): the positions at the beginning of a poll, never the records that this poll hands
over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress

from kafka_fast.config import ConsumerSettings
from kafka_fast.consumer.consumer_core import ConsumerCore
from kafka_fast.consumer.group.rebalances import HearsOfRebalances, RebalanceEvent
from kafka_fast.consumer.queries import NO_GROUP
from kafka_fast.consumer.reading.user_cursor import UserCursor
from kafka_fast.control.group.group import Group
from kafka_fast.control.group.member import (
    AssignWanted,
    GroupNews,
    MemberFailed,
    RevokeWanted,
    Subscription,
    TopicFailed,
)
from kafka_fast.errors import (
    CommitFailedError,
    KafkaError,
    UsageError,
    WakeupError,
    fresh_copy,
)
from kafka_fast.logs import ClientLog, all_of, count_of
from kafka_fast.net.waiting.interruption import Interruption
from kafka_fast.net.waiting.steps import Invoke, Steps
from kafka_fast.net.waiting.waits import GRACE, Answer
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from kafka_fast.values import replace

Offsets = dict[TopicPartition, OffsetAndMetadata]
OnCommit = Callable[[Mapping[TopicPartition, OffsetAndMetadata], KafkaError | None], object]

EVENTS_KEPT = 100


class Membership:
    """One consumer's part in its group, in the user's thread."""

    def __init__(
        self, consumer: object, core: ConsumerCore, cursor: UserCursor, settings: ConsumerSettings
    ) -> None:
        """Start without a subscription: the member joins no group before `subscribe`.

        Args:
            consumer: the argument of listeners.
            core: reaches the control plane.
            cursor: knows which records are covered.
            settings: the consumer's configuration.
        """
        self._consumer = consumer
        self._cursor = cursor
        self._core = core
        self._log = ClientLog("kafka_fast.consumer", core.client_id)
        self._reading = core.reading
        self._settings = settings
        self._listener: HearsOfRebalances | None = None
        self._auto_commit_at = 0.0
        self._auto_commit_until = 0.0  # when the one that is under way ends, at the latest
        self._callbacks: deque[Invoke] = deque()  # of commits that have ended
        self._has_had_partitions = False  # since the last `subscribe`
        # Of those that are read: partitions whose listener was interrupted as it heard of them.
        self._untold: frozenset[TopicPartition] = frozenset()
        self.subscription: Subscription | None = None
        self.events: deque[RebalanceEvent] = deque(maxlen=EVENTS_KEPT)

    # ---- getters ----

    @property
    def group(self) -> Group:
        """The control plane's part of the group; see `require_group`."""
        return self.require_group()

    def require_group(self) -> Group:
        """Return the control plane's part of the group.

        Raises:
            UsageError: there is no group.id.
        """
        group = self._core.control.group
        if group is None:
            raise UsageError(NO_GROUP)
        return group

    @property
    def is_subscribed(self) -> bool:
        """Whether the group decides what is read."""
        return self.subscription is not None

    # ---- subscribing ----

    def subscribe(self, subscription: Subscription, listener: HearsOfRebalances | None) -> None:
        """Let the group decide what is read."""
        self.require_group()
        self.subscription = subscription
        self._listener = listener
        self._auto_commit_at = self._core.now() + self._settings.auto_commit_interval
        self.show_life(0.0)
        self._core.call(lambda now: self._core.control.subscribe(subscription, now))

    def unsubscribe(self, deadline: float) -> Steps[None]:
        """Give up all partitions and leave the group."""
        if self.subscription is None:
            return
        try:
            yield from self._give_up_all(deadline)
        except GeneratorExit:
            raise
        except Exception:
            yield from self._leave_after_commits(deadline)
            raise
        except BaseException:  # Ctrl-C: leave the group, but do not wait for long
            yield from self._leave_after_commits(self._core.now() + GRACE)
            raise
        yield from self._leave_after_commits(deadline)

    def commit_and_leave(self, deadline: float) -> Steps[None]:
        """Commit covered records, if commits are automatic, and leave the group, if in one."""
        if self.is_subscribed:
            yield from self.unsubscribe(deadline)
        elif self._settings.group_id is not None:
            yield from self.commit_covered(deadline)
            yield from self.finish_commits(deadline)
        yield from self.run_callbacks()

    def _leave_after_commits(self, deadline: float) -> Steps[None]:
        """Leave the group once all commits under way have ended.

        If no time is left, leaving is still tried for `GRACE`: the other members need not wait for
        session.timeout.ms then.
        """
        leave_until = max(deadline, self._core.now() + GRACE)
        self.subscription = None
        self._listener = None
        self._has_had_partitions = False
        try:
            yield from self.finish_commits(deadline)
        except GeneratorExit:
            raise
        except BaseException:
            yield from self._leave(self._core.now() + GRACE)
            raise
        yield from self._leave(leave_until)

    def _give_up_all(self, deadline: float) -> Steps[None]:
        """Commit and tell the listener, as if all partitions were revoked."""
        owned = frozenset(self._reading.buffer.partitions)
        is_member = self.group.member.identity.generation >= 0
        if owned:
            membership = self.group.member.identity.number
            reason = "the consumer leaves the group"
            revocation = RevokeWanted(owned, not is_member, reason, membership)
            yield from self._give_up(revocation, deadline)

    def _leave(self, deadline: float) -> Steps[None]:
        left: Answer[bool] = Answer()
        self._core.call(lambda now: self._core.control.leave_group(now, lambda: left.set(True)))
        try:
            yield from self._core.waits.wait(
                left, deadline, "leaving the group", may_wake=False, is_shielded=True
            )
        except KafkaError as error:
            self._log.warning("%s: the group will notice by itself", error)
        finally:
            self._reading.forget_group_news()

    # ---- polling ----

    def show_life(self, ahead: float) -> None:
        """Note that the user polls: heartbeats may go on for max.poll.interval.ms.

        Args:
            ahead: seconds that are added to this interval.
        """
        until = self._core.now() + ahead + self._settings.max_poll_interval
        self._core.plane.set_alive_until(until)
        group = self.group
        if group.member.is_paused:
            self._core.call(group.member.handle_polled)

    @property
    def has_to_act(self) -> bool:
        """Whether callbacks or group news are to be handled before records are taken."""
        return bool(self._callbacks) or self._reading.has_group_news

    def commit_if_due(self) -> None:
        """Commit covered records in the background, if commits are automatic and one is due.

        None is begun while the last one is under way: on a slow network they would pile up, and the
        last commit of a close would wait for all of them.
        """
        now = self._core.now()
        if now >= max(self._auto_commit_at, self._auto_commit_until):
            self._auto_commit_at = now + self._settings.auto_commit_interval
            self._auto_commit_until = now + self._settings.default_api_timeout
            if not self.commit_in_background(self._end_auto_commit):
                self._end_auto_commit()

    def _end_auto_commit(self) -> None:
        """Let the next automatic commit begin when it is due. Any thread."""
        self._auto_commit_until = 0.0

    def handle_news(self) -> Steps[None]:
        """Carry out what the group has asked for: revoke, assign, report failures.

        Raises:
            KafkaError: the member is out of its group, a topic cannot be used, or the listener
                raised this error.
        """
        while (news := self._reading.first_group_news()) is not None:
            subscription = self.subscription
            try:
                self._reading.drop_group_news()  # first: a listener may poll
                yield from self._carry_out(news)
            except Exception:
                raise
            except BaseException:  # Ctrl-C: the group still waits for an answer
                if self.subscription is subscription:
                    self._reading.return_group_news(news)
                raise

    def _carry_out(self, news: GroupNews) -> Steps[None]:
        """Carry out one item of group news; a repetition after an interruption is harmless."""
        match news:
            case RevokeWanted():
                yield from self._revoke(news, self._core.now() + self._settings.default_api_timeout)
            case AssignWanted():
                yield from self._assign(news)
            case MemberFailed(error):
                raise fresh_copy(error)
            case TopicFailed(error, topic):
                if self._core.control.view.topic_error(topic) == error.code:
                    raise fresh_copy(error)

    def _revoke(self, revocation: RevokeWanted, deadline: float) -> Steps[None]:
        group = self.group
        is_lost = revocation.lost or group.is_over(revocation.membership)
        try:
            yield from self._give_up(replace(revocation, lost=is_lost), deadline)
        finally:  # `revocation` itself: the group knows by it whether this is a repetition
            self._core.call(lambda now: group.handle_revoked(revocation, now))

    def _give_up(self, revocation: RevokeWanted, deadline: float) -> Steps[None]:
        """Commit, tell the listener, and stop reading these partitions.

        If the commit is interrupted (Ctrl-C, a cancellation), it goes on without us. The listener
        hears of the partitions all the same, before the interruption is raised.
        """
        began = self._core.now()
        owned = revocation.partitions & frozenset(self._reading.buffer.partitions)
        generation = self.group.member.identity.generation
        interruption = Interruption()
        try:
            if owned and not revocation.lost and self._settings.enable_auto_commit:
                try:
                    yield from self._commit_before_revocation(owned, deadline)
                except (Exception, GeneratorExit):
                    raise
                except BaseException as error:  # noqa: BLE001  raised below
                    interruption.keep_error(error)
            if owned and self._listener is not None:
                hear = self._listener
                tell = hear.on_partitions_lost if revocation.lost else hear.on_partitions_revoked
                yield Invoke(tell, (self._consumer, sorted(owned)))
        finally:
            left = [
                partition
                for partition in self._reading.buffer.partitions
                if partition not in revocation.partitions
            ]
            self._untold -= revocation.partitions
            self._reading.assign(left, by_hand=False)
            self._cursor.drop_partitions(revocation.partitions)
            kind = "lost" if revocation.lost else "revoked"
            self._note(kind, owned, generation, revocation.reason, began)
        if interruption:
            interruption.raise_it()

    def _assign(self, assignment: AssignWanted) -> Steps[None]:
        """Take partitions over, and tell the listener.

        If the listener is interrupted (Ctrl-C, a cancellation), it hears of the same partitions
        again when this is repeated.
        """
        began = self._core.now()
        group = self.group
        if group.is_over(assignment.membership):  # the loss of what was read before is told next
            self._core.call(lambda now: group.handle_assigned(assignment, now))
            return
        added = assignment.partitions - frozenset(self._reading.buffer.partitions)
        self._untold = told = added | (self._untold & assignment.partitions)
        kept = [
            partition
            for partition in self._reading.buffer.partitions
            if partition in assignment.partitions
        ]
        self._reading.assign([*kept, *sorted(added)], by_hand=False)
        self._has_had_partitions = True
        self._core.call(lambda now: group.handle_assigned(assignment, now))
        try:
            if self._listener is not None:
                yield Invoke(self._listener.on_partitions_assigned, (self._consumer, sorted(told)))
            self._untold = frozenset()
        except Exception:  # the listener has heard, and has raised it
            self._untold = frozenset()
            raise
        finally:
            self._note("assigned", added, assignment.generation, assignment.reason, began)

    def _note(
        self,
        kind: str,
        partitions: frozenset[TopicPartition],
        generation: int,
        reason: str,
        began: float,
    ) -> None:
        seconds = self._core.now() - began
        self.events.append(RebalanceEvent(kind, partitions, generation, reason, seconds))
        self._log.info("%s %s: %s", all_of(partitions), kind, reason)

    # ---- committing ----

    def commit(self, offsets: Offsets, deadline: float, *, is_last: bool = False) -> Steps[None]:
        """Commit and wait for the answer.

        A last commit does not wait for topics that are gone. It is shielded from interruptions, and
        `wakeup` does not end it. Any other goes on if the caller is interrupted or woken. A failure
        is only logged then.

        Raises:
            CommitFailedError: the group has moved on.
            KafkaTimeoutError: no answer by the deadline.
        """
        self.check_owned(offsets)
        answer: Answer[bool] = Answer()
        is_awaited = True
        failures: deque[KafkaError] = deque()  # one at most

        def done(error: KafkaError | None) -> None:
            if error is not None:
                failures.append(error)
            answer.set(error or True)
            if not is_awaited:
                log_failure()

        def log_failure() -> None:
            with suppress(IndexError):  # none; or the other thread was here
                self._log_failure(len(offsets), failures.popleft())

        self._core.queries.commit(
            offsets, done, deadline, as_member=self.is_subscribed, skips_unknown=is_last
        )
        try:
            yield from self._core.waits.wait(
                answer,
                deadline,
                "committing offsets",
                may_wake=not is_last,
                is_shielded=is_last,
                missing=self.group.why_waiting_for_coordinator,
            )
        except BaseException as error:
            is_awaited = isinstance(error, Exception) and not isinstance(error, WakeupError)
            if not is_awaited:
                log_failure()  # it may have come at the same moment
            raise
        yield from self.run_callbacks()

    def commit_later(
        self,
        offsets: Offsets,
        callback: OnCommit | None,
        deadline: float,
        on_end: Callable[[], object] = lambda: None,
        *,
        skips_unknown: bool = False,
    ) -> None:
        """Commit; the callback runs in a later poll, commit or close.

        Args:
            offsets: by partition.
            callback: gets the offsets, and None or the error. Without one, a failure is logged.
            deadline: when to give up.
            on_end: called when the commit has ended. Control thread.
            skips_unknown: see `Commits.commit`.
        """
        self.check_owned(offsets)

        def done(error: KafkaError | None) -> None:
            on_end()
            if callback is not None:
                self._callbacks.append(Invoke(callback, (offsets, error)))
            elif error is not None:
                self._log_failure(len(offsets), error)

        self._core.queries.commit(
            offsets, done, deadline, as_member=self.is_subscribed, skips_unknown=skips_unknown
        )

    def check_owned(self, offsets: Offsets) -> None:
        """Refuse offsets of partitions that this member does not own: others may own them now."""
        if not self.is_subscribed:
            return
        foreign = [
            partition
            for partition in offsets
            if self._reading.buffer.buffered_partition(partition) is None
        ]
        if foreign:
            raise CommitFailedError(
                f"{', '.join(map(str, foreign))}: not assigned to this consumer "
                + (
                    "now: whoever has it reads on from what was committed before"
                    if self._has_had_partitions
                    else "yet: the first polls join the group"
                )
            )

    def run_callbacks(self) -> Steps[None]:
        """Call the callbacks of commits that have ended."""
        while self._callbacks:
            yield self._callbacks.popleft()

    def finish_commits(self, deadline: float) -> Steps[None]:
        """Wait for commits in the background: a member that has left cannot commit."""
        if not self._core.queries.has_commits:
            return
        commits = self.group.commits
        finished: Answer[bool] = Answer()
        self._core.call(lambda now: commits.settle(None, lambda now: finished.set(True), now))
        try:
            yield from self._core.waits.wait(
                finished, deadline, "finishing commits", may_wake=False, is_shielded=True
            )
        except KafkaError as error:
            self._log.warning("%s: what was read may be read again", error)

    def commit_in_background(self, on_end: Callable[[], object] = lambda: None) -> bool:
        """Commit covered records, if commits are automatic; a failure is only logged.

        Args:
            on_end: called when the commit has ended. Control thread.

        Returns:
            Whether a commit has begun.
        """
        offsets = self._cursor.covered()
        if not self._settings.enable_auto_commit or not offsets:
            return False
        deadline = self._core.now() + self._settings.default_api_timeout
        self.commit_later(offsets, None, deadline, on_end, skips_unknown=True)
        return True

    def commit_covered(self, deadline: float) -> Steps[None]:
        """Commit covered records, if commits are automatic, and wait for the answer."""
        offsets = self._cursor.covered()
        if not self._settings.enable_auto_commit or not offsets:
            return
        try:
            yield from self.commit(offsets, deadline, is_last=True)
        except KafkaError as error:
            self._log.warning("what was read could not be committed: %s", error)

    def _commit_before_revocation(
        self, owned: frozenset[TopicPartition], deadline: float
    ) -> Steps[None]:
        offsets = {
            partition: at for partition, at in self._cursor.covered().items() if partition in owned
        }
        try:
            if offsets:
                yield from self.commit(offsets, deadline, is_last=True)
        except KafkaError as error:
            self._log.warning("partitions are given up without a last commit: %s", error)

    def _log_failure(self, count: int, error: KafkaError) -> None:
        """Log that a commit failed that nobody waits for. Any thread."""
        self._log.error("a commit of %s failed: %s", count_of(count, "partition"), error)
