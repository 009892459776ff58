"""A classic member as its coordinator knows it: its ids, its generation, its heartbeats.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.connections.links import Link
from kafka_fast.control.context import Context
from kafka_fast.control.group.classic import classic_messages
from kafka_fast.control.group.group_coordinator import GroupCoordinator
from kafka_fast.control.group.heartbeats import Heartbeats
from kafka_fast.control.group.member import NO_GENERATION, GroupIdentity
from kafka_fast.errors import ErrorCode, KafkaError
from kafka_fast.protocol.apis.groups.heartbeat import HeartbeatResponse
from kafka_fast.protocol.apis.groups.join_group import JoinGroupRequest, JoinGroupResponse


class Session:
    """One member's identity and heartbeats. Control thread only."""

    def __init__(
        self,
        context: Context[ConsumerSettings],
        coordinator: GroupCoordinator,
        *,
        on_heartbeat: Callable[[int, float], None],
        on_moved: Callable[[float], None],
    ) -> None:
        """Start without a member id, a generation and heartbeats.

        Args:
            context: the consumer's.
            coordinator: the way to the group's coordinator.
            on_heartbeat: called with the error code of an unexpected answer, after which the
                heartbeats stop. (While Python cannot run, this is delayed and heartbeats go on.)
            on_moved: called when the link is gone, which ends the heartbeats. While a join is
                under way, its `handle_lost` is called instead.
        """
        settings = self._settings = context.settings
        self._coordinator = coordinator
        self._on_heartbeat = on_heartbeat
        self._on_moved = on_moved
        self._on_join_lost: Callable[[KafkaError, float], None] | None = None
        self._identity = GroupIdentity(instance_id=settings.group_instance_id)
        self._heartbeats: Heartbeats[HeartbeatResponse] = Heartbeats(
            context.connections.requests,
            self._handle_heartbeat,
            self._handle_lost,
            timeout=settings.heartbeat_timeout,
        )

    @property
    def identity(self) -> GroupIdentity:
        """The present identity."""
        return self._identity

    # ---- who the member is ----

    def take_id(self, member_id: str) -> None:
        """Take the member id that the coordinator has given, for the next join."""
        self._identity = self._identity._replace(member_id=member_id)

    def enter(self, generation: int, member_id: str) -> None:
        """Become a member of a generation."""
        self._identity = self._identity._replace(generation=generation, member_id=member_id)

    def lose_generation(self) -> None:
        """Keep the member id, but lose the generation and with it the partitions."""
        self.fall_silent()
        number = self._identity.number + 1
        self._identity = self._identity._replace(generation=NO_GENERATION, number=number)

    def forget_membership(self) -> None:
        """Lose the member id and the generation: the coordinator does not know this member."""
        self.fall_silent()
        before = self._identity
        self._identity = GroupIdentity(instance_id=before.instance_id, number=before.number + 1)

    # ---- heartbeats ----

    def join(
        self,
        link: Link,
        request: JoinGroupRequest,
        handle: Callable[[JoinGroupResponse, float], None],
        handle_lost: Callable[[KafkaError, float], None],
        *,
        timeout: float,
    ) -> None:
        """Join the next generation, and have heartbeats sent as soon as the answer comes.

        The coordinator answers when the other members have joined. From then on the session's time
        runs, even while Python cannot run, so the data plane begins the heartbeats. This needs a
        member id. A member without an id (its first join before Kafka 2.2, or as a static member)
        gets heartbeats only when Python has seen the answer.

        Args:
            link: to the coordinator.
            request: the JoinGroup.
            handle: called with the answer and the time.
            handle_lost: called with an error and the time, when the link is gone.
            timeout: seconds for the answer.
        """
        identity = self._identity._replace(generation=NO_GENERATION)
        if not identity.member_id:
            ask = self._coordinator.send_request
            ask(link, request, JoinGroupResponse, handle, handle_lost, timeout=timeout)
            return

        def take(response: JoinGroupResponse, now: float) -> None:
            self._on_join_lost = None
            if response.error_code or response.generation_id < 0:
                self._heartbeats.stop_sending()
            handle(response, now)

        self._keep(link, identity, HeartbeatResponse(), delay=0.0, learns=True)
        self._on_join_lost = handle_lost
        try:
            self._heartbeats.send_between(request, JoinGroupResponse, take, timeout=timeout)
        except KafkaError:
            self.fall_silent()
            raise

    def keep_alive(self, now: float, *, expect_rebalance: bool, delay: float = 0.0) -> None:
        """Have heartbeats sent, if none are being sent.

        Args:
            now: the time.
            expect_rebalance: this member knows that the group rebalances, and will join when its
                user's thread has answered. Until then, REBALANCE_IN_PROGRESS is the expected answer
                to every heartbeat.
            delay: seconds to the first heartbeat.
        """
        identity = self._identity
        if self._heartbeats.is_running or identity.generation == NO_GENERATION:
            return
        link = self._coordinator.want_link(now)
        if link is None:
            return
        code = ErrorCode.REBALANCE_IN_PROGRESS if expect_rebalance else 0
        self._keep(link, identity, HeartbeatResponse(error_code=code), delay=delay)

    def fall_silent(self) -> None:
        """Send no more heartbeats, and drop the answer to a join that is under way."""
        self._heartbeats.stop_sending()
        self._on_join_lost = None

    def _keep(
        self,
        link: Link,
        identity: GroupIdentity,
        expected: HeartbeatResponse,
        *,
        delay: float,
        learns: bool = False,
    ) -> None:
        self._heartbeats.keep_sending(
            link,
            classic_messages.heartbeat_request(self._coordinator.group_id, identity),
            expected,
            period=self._settings.heartbeat_interval,
            delay=delay,
            epoch_field="generation_id" if learns else None,
        )

    def _handle_heartbeat(self, response: HeartbeatResponse, now: float) -> None:
        self._heartbeats.stop_sending()
        self._on_heartbeat(response.error_code, now)

    def _handle_lost(self, error: KafkaError, now: float) -> None:
        on_join_lost, self._on_join_lost = self._on_join_lost, None
        self._coordinator.handle_heartbeats_lost(error, now)
        if on_join_lost is not None:
            on_join_lost(error, now)
        else:
            self._on_moved(now)
