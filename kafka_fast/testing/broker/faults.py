"""What goes wrong on purpose: rules that the brokers ask before and after each request.

A rule says which requests it strikes (API, node, topic, partition), how many times, after how many
that pass, and with what probability; the random numbers are the ones handed in, so a seed decides
every strike. Killing nodes and moving leaders are commands of the cluster, not rules.

Rules may be added and cleared from another thread than the brokers': lists are replaced, never
changed, and only the brokers count.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafka_fast.errors import BrokerError
from kafka_fast.testing.broker.versions import METADATA


@dataclass(slots=True, kw_only=True)
class Rule:
    """Which requests are struck; None means any."""

    api: int | None = None
    """API key."""
    node: int | None = None
    """Node id."""
    topic: str | None = None
    partition: int | None = None
    count: int | None = None
    """Strikes before the rule is used up."""
    skip: int = 0
    """Matching requests that pass before the first strike."""
    probability: float = 1.0
    strikes: int = field(default=0, init=False)
    cancelled: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Refuse what could never strike.

        Raises:
            ValueError: a probability beyond 0 to 1, or a negative number.
        """
        if not 0.0 <= self.probability <= 1.0:
            raise ValueError(f"probability {self.probability} is not within 0 and 1")
        if self.skip < 0 or (self.count is not None and self.count < 0):
            raise ValueError("skip and count are not negative")

    def cancel(self) -> None:
        """Strike no more."""
        self.cancelled = True

    @property
    def used_up(self) -> bool:
        """Tell whether the rule will never strike again."""
        return self.cancelled or (self.count is not None and self.strikes >= self.count)


@dataclass(slots=True, kw_only=True)
class ErrorRule(Rule):
    """Answer with an error code: for one partition, one topic, or the whole request."""

    code: int
    applied: bool = False
    """Do the work first, then claim that it failed."""


@dataclass(slots=True, kw_only=True)
class DelayRule(Rule):
    """Hold the answer back; the connection's later requests wait behind it."""

    seconds: float


@dataclass(slots=True, kw_only=True)
class ThrottleRule(Rule):
    """Report a throttle time in the answer and read no more from the connection until then."""

    throttle_ms: int


@dataclass(slots=True, kw_only=True)
class DropRule(Rule):
    """Never answer; what else the connection sends is neither read nor answered."""

    applied: bool = True
    """Do the work, lose the answer; False: lose the request."""
    close: bool = False
    """Close the connection instead of leaving it silent."""


@dataclass(slots=True, kw_only=True)
class CutRule(Rule):
    """Send the first bytes of the answer, then close the connection."""

    after: int
    """Bytes, the length field included."""
    reset: bool = False
    """By RST, as a process does that is killed with bytes unread."""


@dataclass(slots=True, kw_only=True)
class GarbleRule(Rule):
    """Send other bytes in the place of an answer."""

    change: Callable[[bytes], bytes]
    """Of the whole frame, length field included."""


@dataclass(slots=True, kw_only=True)
class UnaskedRule(Rule):
    """Answer a request that wants no answer: Produce with acks=0."""

    answer: Callable[[int], bytes]
    """The whole frame for a correlation id, length field included."""


Script = Callable[[Any, int], None]  # (response, node id)
AnyRule = TypeVar("AnyRule", bound=Rule)


class Faults:
    """The rules in force."""

    def __init__(self, random_source: random.Random) -> None:
        """Start with no rule; probabilities are decided by `random_source`."""
        self._random = random_source
        self._rules: list[Rule] = []
        self._versions: dict[int, tuple[int, int]] = {}
        self._scripts: list[tuple[int, Script]] = []  # (API key, script)

    # ---- commands: what shall go wrong ----

    def error(
        self, api: int, error: type[BrokerError] | int, *, applied: bool = False, **match: Any
    ) -> ErrorRule:
        """Answer with an error code.

        Args:
            api: API key.
            error: a class of kafka_fast.errors, or any number, to see what a client makes of it.
            applied: do what was asked first, then claim that it failed.
            match: node, topic, partition, count, skip, probability (see `Rule`).
        """
        code = error if isinstance(error, int) else error.code
        if code == 0 or not -(2**15) <= code < 2**15:
            raise ValueError(f"{code} is not an error code")
        return self._add(ErrorRule(api=api, code=code, applied=applied, **match))

    def delay(self, seconds: float, **match: Any) -> DelayRule:
        """Hold answers back by `seconds`."""
        return self._add(DelayRule(seconds=seconds, **match))

    def throttle(self, throttle_ms: int, **match: Any) -> ThrottleRule:
        """Throttle as a quota would (KIP-219): answer at once, then read nothing for a while."""
        return self._add(ThrottleRule(throttle_ms=throttle_ms, **match))

    def drop(self, *, applied: bool = True, close: bool = False, **match: Any) -> DropRule:
        """Lose the answer, or with `applied=False` the request itself."""
        return self._add(DropRule(applied=applied, close=close, **match))

    def cut(self, after: int, *, reset: bool = False, **match: Any) -> CutRule:
        """Close the connection, or reset it, after the first `after` bytes of an answer."""
        return self._add(CutRule(after=after, reset=reset, **match))

    def garble(self, change: Callable[[bytes], bytes], **match: Any) -> GarbleRule:
        """Send what `change` makes of the bytes of an answer, its length field included."""
        return self._add(GarbleRule(change=change, **match))

    def answer_unasked(self, answer: Callable[[int], bytes], **match: Any) -> UnaskedRule:
        """Send what `answer(correlation_id)` returns where a request wants no answer."""
        return self._add(UnaskedRule(answer=answer, **match))

    def limit_versions(self, versions: Mapping[int, tuple[int, int]]) -> None:
        """Offer these APIs only, in no more than these versions (see versions.py for presets)."""
        self._versions = dict(versions)

    def script(self, api: int, script: Script) -> None:
        """Let `script(response, node_id)` change each answer of an API before it is sent."""
        self._scripts = [*self._scripts, (api, script)]

    def script_metadata(self, script: Script) -> None:
        """Let `script(response, node_id)` change each Metadata answer before it is sent."""
        self.script(METADATA, script)

    def clear(self) -> None:
        """Let everything go right again."""
        self._rules = []
        self._versions = {}
        self._scripts = []

    def _add(self, rule: AnyRule) -> AnyRule:
        if not isinstance(rule, ErrorRule) and (rule.topic, rule.partition) != (None, None):
            raise ValueError("only errors strike single topics and partitions")
        self._rules = [*(old for old in self._rules if not old.used_up), rule]
        return rule

    # ---- questions: what goes wrong now ----

    def take_rule(self, kind: type[AnyRule], node: int, api: int) -> AnyRule | None:
        """Return the rule of this kind that strikes a request as a whole, if one does."""
        for rule in self._rules:
            if isinstance(rule, kind) and self._strikes(rule, node, api):
                return rule
        return None

    def take_error(
        self,
        node: int,
        api: int,
        topic: str | None = None,
        partition: int | None = None,
        *,
        exactly: bool = False,
    ) -> ErrorRule | None:
        """Return the error for this topic or partition, if a rule strikes.

        With `exactly` only rules that name the partition count: the others were asked before, for
        the topic.
        """
        for rule in self._rules:
            if (
                isinstance(rule, ErrorRule)
                and rule.topic in (None, topic)
                and (rule.partition == partition or (rule.partition is None and not exactly))
                and self._strikes(rule, node, api)
            ):
                return rule
        return None

    def version_range(self, api: int, lowest: int, highest: int) -> tuple[int, int] | None:
        """Return what is left of a version range, or None if the API is not to be offered."""
        if not self._versions:
            return lowest, highest
        if api not in self._versions:
            return None
        low, high = self._versions[api]
        low, high = max(low, lowest), min(high, highest)
        return (low, high) if low <= high else None

    def rewrite(self, api: int, response: Any, node: int) -> None:
        """Let the scripts change an answer."""
        for scripted, script in self._scripts:
            if scripted == api:
                script(response, node)

    def _strikes(self, rule: Rule, node: int, api: int) -> bool:
        if rule.used_up or rule.api not in (None, api) or rule.node not in (None, node):
            return False
        if rule.skip > 0:
            rule.skip -= 1
            return False
        if rule.probability < 1.0 and self._random.random() >= rule.probability:
            return False
        rule.strikes += 1
        return True
