"""Sends calls to their targets until they are answered, refused, given up or too late.

    open_call(call, items) ► waiting ── tick: a link leads there ─► in flight ── Done ──► done
                             ▲  ▲                                   │  │
                             │  └── Retry, Refresh, FindAgain ──────┘  └── Refused, ─► failed
                             └───── the connection broke ───────────┘      too late

Every retry of a call is decided here: its pace (KIP-580), the pauses that brokers ask for
(KIP-219), what a broken connection means, and when the time is up. `Router` knows which link leads
to a target. What is no call (a member's requests, batches, fetches, connections) has a pace of its
own: ARCHITECTURE.md has the table.

One request at a time asks about an item, unless its call asks another node beside a silent one. The
first answer counts, if the item is still open. After `cancel`, `discard` or another `add` for the
same item, an answer that is on its way is dropped.

Thread: control; `why_waiting` may be called from any.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from kafka_fast.config import CommonSettings
from kafka_fast.control.connections.backoff import Backoff
from kafka_fast.control.connections.connections import Connections
from kafka_fast.control.connections.link_errors import reason_of
from kafka_fast.control.connections.links import Link
from kafka_fast.control.diagnosis.troubles import About, Reason, last_trouble, timeout_error
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.requests.call import AnswerSource, Call
from kafka_fast.control.requests.coordinators import Coordinators
from kafka_fast.control.requests.meanings import Done, FindAgain, Meaning, Refresh, Refused, Retry
from kafka_fast.control.requests.open_call import Item, OpenCall, Try
from kafka_fast.control.requests.router import Router
from kafka_fast.control.requests.targets import (
    AllNodes,
    CoordinatorKind,
    CoordinatorTarget,
    Place,
)
from kafka_fast.errors import (
    BrokerError,
    KafkaConnectionError,
    KafkaError,
    ProtocolError,
    UnsupportedVersionError,
)
from kafka_fast.instants import LONG_AGO, NEVER
from kafka_fast.logs import count_of
from kafka_fast.protocol.schema import Response
from kafka_fast.values import assert_never

__all__ = ["Requester"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


ITEMS_AT_ONCE = 500
"""How many items of a call a tick sends. More would keep the control thread from other work."""


class Requester:
    """All calls of one client. Control thread only."""

    def __init__(
        self,
        settings: CommonSettings,
        cluster: Cluster,
        connections: Connections,
        random: Callable[[], float],
    ) -> None:
        """Make what finds coordinators and links; no call is open yet.

        Args:
            settings: the client's configuration.
            cluster: knows leaders, controller and nodes.
            connections: the client's.
            random: returns a float in [0, 1).
        """
        backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random)
        self.coordinators = Coordinators(
            self, cluster, connections, backoff, timeout=settings.request_timeout
        )
        self.router = Router(settings, cluster, connections, self.coordinators)
        self._requests = connections.requests
        self._backoff = backoff
        self._troubles = connections.troubles
        self._open: dict[OpenCall[Any, Any], None] = {}  # in the order in which they came
        self._ticked_at = LONG_AGO

    # ---- getters ----

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces.

        The last tick has looked at each blocked item. New metadata, a coordinator that was found,
        or a link that opened will bring the next tick.
        """
        deadline = self.coordinators.next_deadline()
        for opened in self._open:
            if any(True for _ in self._ended_by_deadline(opened)) or opened.is_spreading:
                deadline = min(deadline, opened.deadline)
            opens_at: dict[Place, float] = {}
            for item in _watched(opened):
                deadline = min(deadline, self._due(opened, item, opens_at))
                if deadline <= self._ticked_at:
                    return deadline
        return deadline

    def _ended_by_deadline(self, opened: OpenCall[K, V]) -> Iterator[Item[K]]:
        """Yield the items that end at the call's deadline."""
        waits = opened.call.waits_for_answer
        return (item for item in opened.items.values() if not (waits and item.in_flight))

    def _due(self, opened: OpenCall[K, V], item: Item[K], opens_at: dict[Place, float]) -> float:
        """Return when an item is to be sent; `opens_at` holds what was found out for others."""
        if item.in_flight:
            return max(item.beside_at, self.router.another_opens_at(item.asked, self._ticked_at))
        if not item.is_seen or item.not_before > self._ticked_at:
            return item.not_before
        if not opened.call.may_send(item.key):
            return NEVER
        place = self.router.place_of(opened.call, item.key)
        if place not in opens_at:
            opens_at[place] = self.router.opens_at(opened.call, item.key, self._ticked_at)
        return opens_at[place]

    def why_waiting(self, opened: OpenCall[K, V], key: K) -> Reason | None:
        """Return why an item is still open; None if it is not. Any thread."""
        item = opened.items.get(key)
        if item is None:
            return None
        return self._reason(opened, item, self._obstacle(opened, item))

    def _obstacle(self, opened: OpenCall[K, V], item: Item[K]) -> Reason | None:
        """Return why an item cannot be sent; None if nothing is in the way."""
        return self.router.why_waiting(opened.call, item.key, refused_by=item.refused_by)

    def _reason(self, opened: OpenCall[K, V], item: Item[K], obstacle: Reason | None) -> Reason:
        """Return why an item is still open, from what is in its way."""
        refusal = item.refusal
        if obstacle is not None or refusal is None:
            return obstacle or Reason("it has not been answered yet")
        noun = self.router.noun(opened.call.target, item.key)
        who = f"{noun} answers " if isinstance(refusal, BrokerError) else ""
        return Reason(f"{who}{refusal}", refusal)

    # ---- commands ----

    def want_data_link(self, node_id: int, now: float) -> Link | None:
        """Return the link for records to a node; None: there is none yet, and one is made."""
        return self.router.want_data(node_id, now)

    def open_call(
        self, call: Call[K, V], items: Sequence[K] | None = None, *, deadline: float = NEVER
    ) -> OpenCall[K, V]:
        """Ask about these items until each is answered, refused, given up or too late.

        Args:
            call: what is asked.
            items: what it is asked about. Without any the call ends at once, whatever its target.
                None: all nodes, if they are the target; otherwise items are added later.
            deadline: when items that are still open fail with a KafkaTimeoutError.
        """
        is_spreading = items is None and isinstance(call.target, AllNodes)
        opened = OpenCall(self, call, deadline, is_spreading=is_spreading)
        for key in items or ():
            opened.add_item(key)
        self.keep_open(opened)  # a call to all nodes begins without items
        if items is not None and not opened.is_open:
            call.handle_ended(self._requests.now)
        return opened

    def keep_open(self, opened: OpenCall[K, V]) -> None:
        """Keep a call among the open ones, if it has an item."""
        if opened.is_open:
            self._open.setdefault(opened)

    def fail_item(self, opened: OpenCall[K, V], key: K, error: KafkaError, now: float) -> None:
        """Fail an item that no node will ever answer; one that is not open any more stays so."""
        item = opened.items.get(key)
        if item is not None:
            self._fail(opened, item, error, now)

    def fail_coordinated(
        self, kind: CoordinatorKind, name: str, error: KafkaError, now: float
    ) -> None:
        """Fail the items that have no coordinator, and will have none.

        Args:
            kind: of the coordinator.
            name: of what it would coordinate.
            error: why.
            now: the time.
        """
        for opened in list(self._open):
            target = opened.call.target
            if isinstance(target, CoordinatorTarget) and target.kind is kind:
                for key in target.keys_of(name, opened.items):
                    self.fail_item(opened, key, error, now)

    # ---- time ----

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        self._ticked_at = now
        self.coordinators.tick(now)
        for opened in list(self._open):
            if opened.deadline <= now:
                self._expire(opened, now)
            if opened.is_spreading:
                self._spread(opened, now)
            self._send_due(opened, now)
            if not opened.is_open:
                self._open.pop(opened, None)

    def _expire(self, opened: OpenCall[Any, V], now: float) -> None:
        """Fail the items that end at the call's deadline."""
        if opened.is_spreading:
            opened.is_spreading = False
            what = f"{opened.call.api}: the metadata named no node in time"
            reason = last_trouble(self._troubles.last_of(About.METADATA))
            opened.call.handle_no_nodes(timeout_error(what, reason), now)
            opened.call.handle_ended(now)
        obstacles: dict[tuple[Place, int | None], Reason | None] = {}
        for item in list(self._ended_by_deadline(opened)):
            what = f"{opened.call.describe(item.key)} was not sent in time"
            if item.tries:
                tries = count_of(item.tries, "attempt")
                what = f"{opened.call.describe(item.key)}: no answer in time ({tries})"
            obstacle = self._shared_obstacle(opened, item, obstacles)
            error = timeout_error(what, self._reason(opened, item, obstacle))
            self._fail(opened, item, error, now)

    def _shared_obstacle(
        self,
        opened: OpenCall[K, V],
        item: Item[K],
        obstacles: dict[tuple[Place, int | None], Reason | None],
    ) -> Reason | None:
        """Return what is in the way of an item, as `_obstacle` does.

        Items of one node have the same in their way. There may be a hundred thousand.

        Args:
            opened: the call of the item.
            item: the item.
            obstacles: those of other items of the call.
        """
        place = self.router.place_of(opened.call, item.key)
        if isinstance(place, str):  # no node is known: each item has a reason of its own
            return self._obstacle(opened, item)
        same = (place, item.refused_by)
        if same not in obstacles:
            obstacles[same] = self._obstacle(opened, item)
        return obstacles[same]

    def _spread(self, opened: OpenCall[Any, V], now: float) -> None:
        """Make all nodes the items of a call, once the metadata name them."""
        node_ids = self.router.all_nodes(now)
        if node_ids:
            opened.is_spreading = False
            for node_id in node_ids:
                if node_id not in opened:
                    opened.add_item(node_id)

    def _send_due(self, opened: OpenCall[K, V], now: float) -> None:
        """Send items that may be sent now, in one request for each link.

        If there are many, the next tick sends the others. This one comes back to its thread soon.
        """
        by_link: dict[int, tuple[Link, list[Item[K]]]] = {}
        links: dict[Place, Link | None] = {}
        count = 0
        for item in list(_watched(opened)):
            link = self._link_now(opened, item, links, now)
            if link is not None:
                by_link.setdefault(link.id, (link, []))[1].append(item)
                count += 1
                if count == ITEMS_AT_ONCE:
                    break
        for link, items in by_link.values():
            self._send_over(opened, link, items, now)

    def _link_now(
        self, opened: OpenCall[K, V], item: Item[K], links: dict[Place, Link | None], now: float
    ) -> Link | None:
        """Return the link over which to send an item now; None if the item has to wait.

        Args:
            opened: the call of the item.
            item: the item.
            links: the links that were found for other items of the call.
            now: the time.
        """
        if item.in_flight:
            return self.router.want_another(item.asked, now) if item.beside_at <= now else None
        if item.not_before > now:
            return None
        item.is_seen = True
        if not opened.call.may_send(item.key):
            return None
        place = self.router.place_of(opened.call, item.key)
        if place not in links:
            links[place] = self.router.want_link(opened.call, item.key, now)
        return links[place]

    def _send_over(
        self, opened: OpenCall[K, V], link: Link, items: list[Item[K]], now: float
    ) -> None:
        keys = [item.key for item in items]
        try:
            version = link.versions.pick(opened.call.request_class, opened.call.max_version(keys))
        except UnsupportedVersionError as error:  # another try would end the same way
            for item in items:
                if item.in_flight:
                    item.beside_at = NEVER
                else:
                    self._fail(opened, item, error, now)
            return
        to_send = [item for item in items if self._is_to_be_sent(opened, item, link, version, now)]
        most = opened.call.max_items(version) or len(items)
        for first in range(0, len(to_send), most):
            self._send(opened, link, version, to_send[first : first + most], now)

    def _is_to_be_sent(
        self, opened: OpenCall[K, V], item: Item[K], link: Link, version: int, now: float
    ) -> bool:
        """Tell whether to send an item: it may have ended meanwhile, or end without being sent."""
        if opened.items.get(item.key) is not item:
            return False  # a handler of another item's end has discarded it
        error = opened.call.unsupported(item.key, version)
        if error is not None:  # another try would end the same way
            self._fail(opened, item, error, now)
            return False
        meaning = opened.call.settle_unsent(item.key, now)
        if meaning is not None:
            self._settle(opened, item, meaning, link, now)
        return meaning is None

    def _send(
        self, opened: OpenCall[K, V], link: Link, version: int, items: list[Item[K]], now: float
    ) -> None:
        sent = Try(link, version, [(item, item.round) for item in items])
        try:
            self._requests.send_request(
                link,
                opened.call.build([item.key for item in items], version),
                opened.call.response_class,
                lambda answer, then: self._handle_answer(opened, sent, answer, then),
                lambda error, then: self._handle_lost(opened, sent, error, then),
                timeout=opened.call.timeout,
                max_version=version,
                read_later=opened.call.read_later,
            )
        except Exception as error:  # noqa: BLE001  the call says whose fault it is
            refusal = opened.call.unsendable(error)
            for item in items:
                self._fail(opened, item, refusal, now)
            return
        for item in items:
            item.begin_try(link, now + opened.call.beside_after)
            opened.unsent.pop(item.key, None)

    # ---- in ----

    def _handle_answer(
        self, opened: OpenCall[K, V], sent: Try[K], answer: Response, now: float
    ) -> None:
        self.router.handle_throttle(sent.link, getattr(answer, "throttle_time_ms", 0), now)
        waiting = {item.key: item for item in _still_open(opened, sent)}
        if not waiting:
            return
        source = AnswerSource(
            sent.version,
            sent.link.versions.node,
            now,
            is_bootstrap=sent.link.key.is_bootstrap,
            node_id=sent.link.key.node_id,
        )
        for key, meaning in opened.call.read(answer, list(waiting), source):
            item = waiting.pop(key, None)
            if item is not None and opened.items.get(key) is item:
                self._settle(opened, item, meaning, sent.link, now)
        for key, item in waiting.items():
            if opened.items.get(key) is item:
                error = ProtocolError(f"the answer to {opened.call.api} leaves {key} out")
                self._put_off(opened, item, error, sent.link, now)
        opened.call.handle_read(now)

    def _settle(
        self, opened: OpenCall[K, V], item: Item[K], meaning: Meaning[V], link: Link, now: float
    ) -> None:
        target, key = opened.call.target, item.key
        match meaning:
            case Done(value):
                opened.discard(key)
                subject = opened.call.subject(key)
                if subject is not None:
                    self._troubles.end_trouble(subject, now)
                is_last = not opened.is_open
                opened.call.handle_done(key, value, now)
                if is_last:
                    self._end(opened, now)
            case Refused(error):
                self._fail(opened, item, error, now)
            case FindAgain(error):
                self.router.handle_moved(target, key, link, str(error), now)
                self._put_off(opened, item, error, link, now)
            case Refresh(error, topic):
                self.router.refresh(opened.call.describe(key), topic)
                self._put_off(opened, item, error, link, now)
            case Retry(error, soon):
                self._put_off(opened, item, error, link, now, soon)
            case _:
                assert_never(meaning)

    def _put_off(
        self,
        opened: OpenCall[K, V],
        item: Item[K],
        error: KafkaError,
        link: Link,
        now: float,
        soon: float | None = None,
    ) -> None:
        """Try an item again later, and keep the error."""
        item.refused_by = link.key.node_id
        subject = opened.call.subject(item.key)
        if subject is not None:
            self._troubles.note(subject, error, now)
        self._try_again(opened, item, error, now, soon)

    def _try_again(
        self,
        opened: OpenCall[K, V],
        item: Item[K],
        error: KafkaError,
        now: float,
        soon: float | None = None,
    ) -> None:
        item.refusal = error
        pause = self._backoff.delay(item.failures)
        if soon is not None:
            pause = min(pause, soon * 2**item.failures)
        item.not_before = now + pause
        item.failures += 1
        item.end_round()
        if item.failures == opened.call.max_tries:
            self._fail(opened, item, error, now)
        elif opened.items.get(item.key) is item:
            opened.unsent[item.key] = item

    def _fail(self, opened: OpenCall[K, V], item: Item[K], error: KafkaError, now: float) -> None:
        if opened.items.get(item.key) is item:
            opened.discard(item.key)
            is_last = not opened.is_open
            opened.call.handle_failed(item.key, error, now)
            if is_last:
                self._end(opened, now)

    def _end(self, opened: OpenCall[K, V], now: float) -> None:
        """End a call after its last item, unless the handler of its end has added another."""
        if not opened.is_open:
            opened.call.handle_ended(now)

    def _handle_lost(
        self, opened: OpenCall[K, V], sent: Try[K], error: KafkaError, now: float
    ) -> None:
        """Try a request's open items again, or fail them: no readable answer came."""
        for item in _still_open(opened, sent):
            self.router.handle_moved(opened.call.target, item.key, sent.link, str(error), now)
            item.in_flight -= 1
            if item.in_flight:
                continue  # another node has been asked as well
            if opened.call.is_repeatable:
                item.refused_by = None
                self._try_again(opened, item, error, now)
            else:
                what = opened.call.describe(item.key)
                unknown = KafkaConnectionError(
                    f"{what} may or may not have been done: {error}", reason=reason_of(error)
                )
                unknown.__cause__ = error
                self._fail(opened, item, unknown, now)


def _watched(opened: OpenCall[K, V]) -> Iterable[Item[K]]:
    """Return the items that may have to be sent."""
    return opened.unsent.values() if opened.call.beside_after == NEVER else opened.items.values()


def _still_open(opened: OpenCall[K, V], sent: Try[K]) -> list[Item[K]]:
    """Return the items of a request whose answer still counts."""
    return [
        item
        for item, round_ in sent.items
        if item.round == round_ and opened.items.get(item.key) is item
    ]
