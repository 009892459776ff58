"""What the members of a KIP-848 group are subscribed to: names, and regular expressions.

Expressions are resolved for the whole group, and not more often than every ten seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka_fast.testing.broker.groups.reconciliation import ConsumerMember
from kafka_fast.testing.broker.groups.regexes import compile_re2
from kafka_fast.testing.broker.partitions.cluster_topics import Topic

_LEAST_INTERVAL = 10.0  # seconds between two resolutions
_REFRESH_INTERVAL = 600.0  # Kafka's group.consumer.regex.refresh.interval.ms

Topics = Mapping[str, Topic]  # by name
TopicsMetadata = tuple[tuple[str, bytes, int], ...]  # name, id and partitions of each topic


@dataclass(frozen=True, slots=True)
class RegexChange:
    """What a heartbeat means for a group's regular expressions."""

    changed: bool
    """The member has another one."""
    known: bool
    """Which topics that concerns is known already."""
    to_resolve: bool
    """They have to be looked up."""


class Subscriptions:
    """The resolved regular expressions of one group, and what follows from them."""

    def __init__(self) -> None:
        self._resolved: dict[str, frozenset[str]] = {}  # expression -> topic names
        self._resolved_at: float | None = None
        self._seen_topics: frozenset[str] = frozenset()  # when they were resolved

    # ---- questions ----

    def names(self, member: ConsumerMember) -> frozenset[str]:
        """Return the names of the topics that a member wants, whether they exist or not."""
        return member.topic_names | self._resolved.get(member.topic_regex, frozenset())

    def topic_ids(self, member: ConsumerMember, topics: Topics) -> frozenset[bytes]:
        """Return the ids of the existing topics that a member wants."""
        return frozenset(topics[name].topic_id for name in self.names(member) if name in topics)

    def metadata(self, members: Iterable[ConsumerMember], topics: Topics) -> TopicsMetadata:
        """Return what the group's assignment depends on besides its members."""
        names = {name for member in members for name in self.names(member)}
        return tuple(
            (name, topics[name].topic_id, len(topics[name].partitions))
            for name in sorted(names)
            if name in topics
        )

    # ---- changes ----

    def change(
        self,
        others: list[ConsumerMember],
        member: ConsumerMember,
        changed: ConsumerMember,
        topics: Topics,
        now: float,
    ) -> RegexChange:
        """Return what it means that a member changes.

        Args:
            others: the group's other members.
            member: as it was.
            changed: as it will be.
            topics: of the cluster.
            now: the time.

        Raises:
            InvalidRegularExpression: RE2 does not take the new expression.
        """
        new, old = changed.topic_regex, member.topic_regex
        in_use = {one.topic_regex for one in others if one.topic_regex}
        is_new = bool(new) and new != old and new not in in_use
        if is_new:
            compile_re2(new)
        known = new != old and not is_new and (not new or new in self._resolved)
        in_use |= {new} if new else set()
        is_outdated = is_new or in_use != self._resolved.keys() or self._is_stale(topics, now)
        too_early = self._resolved_at is not None and now <= self._resolved_at + _LEAST_INTERVAL
        return RegexChange(new != old, known, bool(in_use) and is_outdated and not too_early)

    def resolve(self, members: Iterable[ConsumerMember], topics: Topics, now: float) -> bool:
        """Look up the topics of all expressions; tell whether that changed anything."""
        before = self._resolved
        in_use = sorted({member.topic_regex for member in members if member.topic_regex})
        self._resolved = {
            regex: frozenset(filter(compile_re2(regex).fullmatch, topics)) for regex in in_use
        }
        self._resolved_at = now
        self._seen_topics = frozenset(topics)
        return any(
            names != before.get(regex, frozenset()) for regex, names in self._resolved.items()
        )

    def forget_unused(self, members: Iterable[ConsumerMember]) -> None:
        """Forget expressions that nobody uses any more."""
        in_use = {member.topic_regex for member in members}
        self._resolved = {one: names for one, names in self._resolved.items() if one in in_use}

    def _is_stale(self, topics: Topics, now: float) -> bool:
        """Tell whether there are topics that were not looked at, or it is long ago."""
        if self._resolved_at is None or not self._seen_topics.issuperset(topics):
            return True
        return now > self._resolved_at + _REFRESH_INTERVAL
