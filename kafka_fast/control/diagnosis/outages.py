"""Nodes that are away: told once when they go, and once when they are back.

    a link is refused, or breaks ───► Outages ───► one WARNING; all else that connections to this
                                         │         node meet until it is back is DEBUG
    a link stands for a second, or ──────┴───────► INFO: "node 2 is back, 3.1 s"
    metadata name the node again

A node has several connections, and each of them meets the end of its broker in its own way: one in
the middle of a request, the next when it is made again. Of a node that was never reached, each new
cause is told, because a setting may be wrong.

When a broker stops in good order, other nodes lead its partitions before it goes, and nobody
connects to it when it returns. So metadata are asked for again while a node is away: after 2 s, and
then each time that it has been away for half as long again.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Collection

from kafka_fast.control.connections.connection_key import UNKNOWN_NODE, ConnectionKey
from kafka_fast.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError
from kafka_fast.instants import LONG_AGO, NEVER
from kafka_fast.logs import RECOVERY, Log, in_seconds
from kafka_fast.values import Value, field

__all__ = ["LASTING", "QUIET", "STANDS", "Outages", "says_only_away"]

STANDS = 1.0
"""Seconds that a new link stands before its node is said to be back."""

QUIET = 60.0
"""Seconds after which the same trouble is told again, if there was none meanwhile."""

LASTING = 30.0
"""Seconds after which an outage is told once more, if connections to the node still fail."""

FIRST_LOOK = 2.0
"""Seconds after which metadata are first asked whether a node is back."""

LOOK_AGAIN = 1.5
"""The times by which a node has been away longer at the next look."""


class Outage(Value, frozen=False, eq=False):
    """The time from the first failure of a node's connections until one of them stands."""

    began: float
    was_reached: bool
    """There was a link to the node before."""
    kinds: set[type[KafkaError]] = field(factory=set)
    """Classes of errors that the log has, of this outage."""
    muted: frozenset[type[KafkaError]] = frozenset()
    """Classes of errors that the log has of an outage that is not long over."""
    tries: int = 0
    """How many connections failed or broke."""
    failed_at: float = LONG_AGO
    """When the last connection failed or broke."""
    is_lasting: bool = False
    """The log has said that this outage lasts."""
    linked_at: float = NEVER
    """When a new link was ready that has not failed since."""
    is_unlisted: bool = False
    """Metadata did not name the node."""
    looked_at: float = LONG_AGO
    """When metadata were asked for last."""

    @property
    def is_told(self) -> bool:
        """Whether the log has told of this outage."""
        return bool(self.kinds)


class Outages:
    """The outages of one client's nodes."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._reached: set[int] = set()
        self._away: dict[int, Outage] = {}
        self._over: dict[int, Outage] = {}  # the last outage of each node that was away before

    # ---- getters ----

    def was_reached(self, key: ConnectionKey) -> bool:
        """Tell whether there was ever a link to the node."""
        return key.node_id in self._reached

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        return min((outage.linked_at + STANDS for outage in self._away.values()), default=NEVER)

    def look_at(self) -> float:
        """Return when metadata are to be asked for, to see whether a node is back."""
        away = (outage for node_id, outage in self._away.items() if node_id != UNKNOWN_NODE)
        return min(map(_look_at, away), default=NEVER)

    # ---- what happens ----

    def note(self, key: ConnectionKey, error: KafkaError, now: float) -> bool:
        """Count a failed or broken connection to a node; return whether to log a WARNING."""
        outage = self._away.get(key.node_id)
        if outage is None or now - outage.failed_at >= QUIET:
            outage = self._away[key.node_id] = self._begin(key, now)
        outage.tries += 1
        outage.failed_at = now
        outage.linked_at = NEVER
        kind = _kind(error)
        if kind not in outage.kinds:
            return kind not in outage.muted
        if now - outage.began < LASTING or outage.is_lasting:
            return False
        outage.is_lasting = True
        return True

    def _begin(self, key: ConnectionKey, now: float) -> Outage:
        """Return a new outage. What a recent outage of the node has told is not told again."""
        before = self._over.pop(key.node_id, None)
        is_recent = before is not None and now - before.failed_at < QUIET
        muted = before.muted | before.kinds if before is not None and is_recent else frozenset()
        return Outage(now, self.was_reached(key), muted=muted)

    def note_told(self, key: ConnectionKey, error: KafkaError) -> None:
        """Keep which kind of error of a node the log has, so that `note` does not repeat it."""
        self._away[key.node_id].kinds.add(_kind(error))

    def handle_ready(self, key: ConnectionKey, now: float) -> None:
        """Keep since when a node has a link, which ends its outage after STANDS seconds."""
        self._reached.add(key.node_id)
        outage = self._away.get(key.node_id)
        if outage is not None:
            outage.linked_at = min(outage.linked_at, now)

    def handle_nodes(self, node_ids: Collection[int], now: float) -> None:
        """End the outages of nodes that metadata name again, and that of the bootstrap servers."""
        for node_id, outage in list(self._away.items()):
            if node_id == UNKNOWN_NODE:
                self._end(node_id, min(outage.linked_at, now))
            elif node_id not in node_ids:
                outage.is_unlisted = True
            elif outage.is_unlisted:
                self._end(node_id, now)

    def note_look(self, now: float) -> None:
        """Put off the next look for nodes that are away, because metadata are asked for now."""
        for outage in self._away.values():
            outage.looked_at = now

    def tick(self, now: float) -> None:
        """Tell which nodes are back."""
        for node_id, outage in list(self._away.items()):
            if now >= outage.linked_at + STANDS:
                self._end(node_id, outage.linked_at)

    def times(self, key: ConnectionKey, now: float) -> str:
        """Return how often connections have failed in an outage that lasts, for its line."""
        outage = self._away[key.node_id]
        if not outage.is_lasting:
            return ""
        return f" ({outage.tries} times in {in_seconds(now - outage.began)})"

    def _end(self, node_id: int, at: float) -> None:
        outage = self._over[node_id] = self._away.pop(node_id)
        if not outage.is_told:
            return
        after = in_seconds(at - outage.began)
        if node_id == UNKNOWN_NODE:
            who = "a node" if outage.linked_at == NEVER else "a bootstrap server"
            self._log.info("%s answers, after %s", who, after, extra=RECOVERY)
        elif outage.was_reached:
            self._log.info("node %d is back, %s", node_id, after, extra=RECOVERY)
        else:
            self._log.info("node %d answers, after %s", node_id, after, extra=RECOVERY)


def says_only_away(error: KafkaError) -> bool:
    """Tell whether an error says no more of a node than that it cannot be reached."""
    return type(error) in (KafkaConnectionError, KafkaTimeoutError)


def _kind(error: KafkaError) -> type[KafkaError]:
    """Return the class of an error, one for all that only say that a node cannot be reached."""
    return KafkaConnectionError if says_only_away(error) else type(error)


def _look_at(outage: Outage) -> float:
    """Return when to ask metadata next whether a node is back."""
    if not outage.is_told or not outage.was_reached or outage.linked_at != NEVER:
        return NEVER
    return outage.began + max(FIRST_LOOK, LOOK_AGAIN * (outage.looked_at - outage.began))
