"""The heartbeats between a KIP-848 member and its coordinator, one at a time.

    tell ──► one heartbeat with what is new ───► answer ──────────────┐
      └────► one without news, every period ──► unexpected answers ──┴──► handle, handle_lost

Each heartbeat names the epoch of the answer before, so only one is in flight at a time. The data
plane ensures that. It takes each new epoch by itself, because Python may not run for a long time.
A heartbeat with news may have been built before the latest answer came up. The data plane then
drops it, and everything is told again.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.connections.links import Link
from kafka_fast.control.context import Context
from kafka_fast.control.group.consumer_protocol import heartbeat_builder
from kafka_fast.control.group.consumer_protocol.heartbeat_builder import HeartbeatBuilder
from kafka_fast.control.group.consumer_protocol.reconciliation import Ids
from kafka_fast.control.group.group_coordinator import GroupCoordinator
from kafka_fast.control.group.heartbeats import Heartbeats
from kafka_fast.control.group.member import Subscription
from kafka_fast.control.requests.meanings import MOVED
from kafka_fast.errors import KafkaError, UnsupportedVersionError
from kafka_fast.protocol.apis.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

NOT_SUPPORTED = (
    "the brokers do not speak the consumer protocol (KIP-848, Kafka 4.0): set "
    "group.protocol=classic"
)
NO_REGEX = (
    "the coordinator matches no patterns (KIP-848 since Kafka 4.0): subscribe with re.compile(…), "
    "and the client matches"
)


class Conversation:
    """One member's heartbeats. Control thread only."""

    def __init__(
        self,
        context: Context[ConsumerSettings],
        coordinator: GroupCoordinator,
        member_id: str,
        *,
        handle: Callable[[ConsumerGroupHeartbeatResponse, float], None],
        handle_lost: Callable[[float], None],
    ) -> None:
        """Send no heartbeats before `tell`.

        Args:
            context: the consumer's.
            coordinator: the way to the group's coordinator.
            member_id: the member's own (KIP-1082).
            handle: called with each answer to news, and each unexpected answer.
            handle_lost: called when the link is gone. An answer may be lost with it.
        """
        self._coordinator = coordinator
        self._builder = HeartbeatBuilder(context.settings, coordinator.group_id, member_id)
        self._heartbeats: Heartbeats[ConsumerGroupHeartbeatResponse] = Heartbeats(
            context.connections.requests,
            self._hear_unasked,
            self._lose,
            timeout=context.settings.request_timeout,
        )
        self._handle = handle
        self._handle_lost = handle_lost
        self._is_asking = False
        self._interval_ms = 0  # between heartbeats, from the last answer
        self._may_be_known = False  # the coordinator may know this member

    # ---- getters ----

    @property
    def member_id(self) -> str:
        """The member's own id, in and out of the group."""
        return self._builder.member_id

    @property
    def is_asking(self) -> bool:
        """Whether a heartbeat with news has no answer yet."""
        return self._is_asking

    def is_news(self, subscription: Subscription, owned: Ids) -> bool:
        """Tell whether this differs from what the coordinator was told."""
        return self._builder.is_news(subscription, owned)

    # ---- sending ----

    def tell(
        self, link: Link, epoch: int, subscription: Subscription, owned: Ids, held: Ids
    ) -> None:
        """Send a heartbeat with what has changed; see `HeartbeatBuilder.make`.

        Raises:
            UnsupportedVersionError: the coordinator is too old for what this member needs.
        """
        _check_version(link, subscription)
        if epoch == heartbeat_builder.JOIN:
            self.fall_silent()
        if self._heartbeats.link is not link:
            self._keep(link, epoch)
        self._is_asking = self._may_be_known = True
        body = self._builder.make(epoch, subscription, owned, held)
        self._heartbeats.send_between(body, ConsumerGroupHeartbeatResponse, self._hear)

    def fall_silent(self) -> None:
        """Send no more heartbeats, and tell everything in the next one."""
        self._heartbeats.stop_sending()
        self._is_asking = False
        self._builder.tell_all_again()

    def say_goodbye(self, done: Callable[[], None]) -> None:
        """Send no more heartbeats but the last one, by which the member leaves."""
        self.fall_silent()
        link = self._coordinator.link
        if not self._may_be_known or link is None:
            done()
            return
        self._may_be_known = False
        self._coordinator.send_request(
            link,
            self._builder.leaving_heartbeat(),
            ConsumerGroupHeartbeatResponse,
            lambda response, then: done(),
            lambda error, then: done(),
        )

    # ---- receiving ----

    def forget_told(self) -> None:
        """Tell everything in the next heartbeat."""
        self._builder.tell_all_again()

    def forget_coordinator(self) -> None:
        """Send no goodbye: another member has this one's instance id."""
        self._may_be_known = False

    def _keep(self, link: Link, epoch: int) -> None:
        """Have heartbeats without news sent, as soon as an epoch is known.

        A new member has no epoch before its first answer. A member that goes on with another
        coordinator has one.
        """
        expected = ConsumerGroupHeartbeatResponse(
            member_id=self.member_id, member_epoch=epoch, heartbeat_interval_ms=self._interval_ms
        )
        period = self._interval_ms / 1000
        self._heartbeats.keep_sending(
            link,
            self._builder.alive(epoch),
            expected,
            period=period,
            delay=period,
            epoch_field="member_epoch",
        )

    def _hear_unasked(self, response: ConsumerGroupHeartbeatResponse, now: float) -> None:
        if self._is_asking:
            self._builder.tell_all_again()  # the heartbeat with news was not sent
        self._hear(response, now)

    def _hear(self, response: ConsumerGroupHeartbeatResponse, now: float) -> None:
        """Take an answer. After an error, everything is told again.

        The heartbeats go on meanwhile: if Python could not run for a while, more answers, with a
        later epoch, may be on their way up.
        """
        self._is_asking = False
        if response.error_code:
            self._builder.tell_all_again()
            if response.error_code in MOVED and self._heartbeats.link is not self._coordinator.link:
                return  # known already: another coordinator is being found
        elif response.heartbeat_interval_ms > 0:
            self._interval_ms = response.heartbeat_interval_ms
        self._handle(response, now)

    def _lose(self, error: KafkaError, now: float) -> None:
        self._coordinator.handle_heartbeats_lost(error, now)
        self.fall_silent()
        self._handle_lost(now)


def _check_version(link: Link, subscription: Subscription) -> None:
    """Refuse a coordinator that is too old.

    Raises:
        UnsupportedVersionError: it cannot do what this member needs.
    """
    try:
        version = link.versions.pick(ConsumerGroupHeartbeatRequest)
    except UnsupportedVersionError as error:
        raise UnsupportedVersionError(f"{NOT_SUPPORTED} ({error})") from error
    if subscription.regex is not None and version < heartbeat_builder.FIRST_VERSION_WITH_REGEX:
        raise UnsupportedVersionError(NO_REGEX)
