"""The heartbeats of a KIP-848 member: everything when it joins, then only what has changed.

If a heartbeat is not answered, the coordinator may or may not have read it, and the lost answer may
have had an assignment. So the next heartbeat tells everything again, and the coordinator answers
with everything.

Thread: control.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.group.consumer_protocol.reconciliation import Ids
from kafka_fast.control.group.member import Subscription
from kafka_fast.protocol.apis.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)

JOIN = 0
LEAVE = -1
LEAVE_FOR_A_WHILE = -2

FIRST_VERSION_WITH_REGEX = 1
NO_REGEX = ""


class HeartbeatBuilder:
    """Builds one member's heartbeats, and knows what the last one told. Control thread only."""

    def __init__(self, settings: ConsumerSettings, group_id: str, member_id: str) -> None:
        """Start with nothing told, so that the first heartbeat tells everything.

        Args:
            settings: the consumer's configuration.
            group_id: the group.
            member_id: the member's own (KIP-1082).
        """
        self._settings = settings
        self._group_id = group_id
        self.member_id = member_id
        self._told_subscription: Subscription | None = None
        self._told_owned: Ids | None = None
        self._has_regex = False  # the coordinator may know a regex of this member

    def tell_all_again(self) -> None:
        """Tell everything in the next heartbeat."""
        self._told_subscription = None
        self._told_owned = None

    def is_news(self, subscription: Subscription, owned: Ids) -> bool:
        """Tell whether this differs from what the coordinator was told."""
        return (subscription, owned) != (self._told_subscription, self._told_owned)

    def make(
        self, epoch: int, subscription: Subscription, owned: Ids, held: Ids
    ) -> ConsumerGroupHeartbeatRequest:
        """Return the heartbeat that tells what has changed.

        Args:
            epoch: the member epoch; 0: it joins.
            subscription: topic names (also for a pattern that the client matches), or a regex.
            owned: the partitions that the user's thread has. If they change, `held` is told.
            held: the partitions that no other member may own yet.
        """
        request = self.alive(epoch)
        is_full = epoch == JOIN or self._told_subscription is None or self._told_owned is None
        if is_full:
            request.rebalance_timeout_ms = self._settings.max_poll_interval_ms
            request.server_assignor = self._settings.group_remote_assignor
            request.rack_id = self._settings.client_rack or None
        if is_full or subscription != self._told_subscription:
            request.subscribed_topic_names = sorted(subscription.topics)
            if subscription.regex is not None:
                request.subscribed_topic_regex = subscription.regex
                self._has_regex = True
            elif self._has_regex:
                request.subscribed_topic_regex = NO_REGEX
        if is_full or owned != self._told_owned:
            request.topic_partitions = _by_id(held)
        self._told_subscription, self._told_owned = subscription, owned
        return request

    def alive(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        """Return a heartbeat without news."""
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self._settings.group_instance_id,
        )

    def leaving_heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        """Return the heartbeat of a member that leaves. A static member may come back."""
        is_static = self._settings.group_instance_id is not None
        return self.alive(LEAVE_FOR_A_WHILE if is_static else LEAVE)


def new_member_id(random: Callable[[], float]) -> str:
    """Return a unique member id: 128 random bits, in Kafka's form of a UUID."""
    bits = bytes(int(random() * 256) for _ in range(16))
    return base64.urlsafe_b64encode(bits).rstrip(b"=").decode()


def _by_id(partitions: Ids) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
    numbers_by_id: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        numbers_by_id.setdefault(topic_id, []).append(partition)
    return [
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in numbers_by_id.items()
    ]
