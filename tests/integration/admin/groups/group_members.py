"""Members of groups, for tests of the admin client: consumers, and others of heartbeats only.

This package has no consumers of share groups or streams groups. A heartbeat makes a member.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest

from kafka_fast import Admin, Consumer
from kafka_fast.control.admin.operation import ONLY, Operation
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Meaning
from kafka_fast.control.requests.targets import Coordinator, CoordinatorKind
from kafka_fast.protocol.apis.share_groups.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kafka_fast.protocol.apis.streams_groups.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    Topology,
)
from kafka_fast.protocol.schema import Request
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.waiting import eventually

LEAVE_EPOCH = -1


def needs_kafka(kafka: RealKafka, version: str) -> None:
    """Skip a test on older brokers than it is for."""
    if _numbers(kafka.release.version) < _numbers(version):
        pytest.skip(f"needs Kafka {version}")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


@contextmanager
def joined(bootstrap: str, group: str, topic: str, **config: Any) -> Iterator[Consumer]:
    """Run a consumer in a group, once it has partitions."""
    with Consumer(
        bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False, **config
    ) as consumer:
        consumer.subscribe([topic])
        eventually(lambda: consumer.poll(0.1) is not None and consumer.assignment())
        yield consumer


class _Heartbeat(Operation[str, Any]):
    """A heartbeat that only this operation's class knows how to write."""

    name = "heartbeat"
    permission = "READ on the group"

    def __init__(self, group: str) -> None:
        super().__init__(Coordinator(CoordinatorKind.GROUP, group), [ONLY])
        self._group = group

    def outcomes(
        self, answer: Any, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[Any]]]:
        if answer.error_code:
            yield ONLY, self.refusal(ONLY, answer.error_code, answer.error_message)
        else:
            yield ONLY, Done(answer)


class ShareHeartbeat(_Heartbeat):
    """A heartbeat of a share group's member."""

    request_class = ShareGroupHeartbeatRequest
    response_class = ShareGroupHeartbeatResponse

    def __init__(self, group: str, member_id: str, epoch: int, topic: str) -> None:
        super().__init__(group)
        self._member = (member_id, epoch, topic)

    def build(self, items: Sequence[str], version: int) -> Request:
        member_id, epoch, topic = self._member
        return ShareGroupHeartbeatRequest(
            group_id=self._group,
            member_id=member_id,
            member_epoch=epoch,
            subscribed_topic_names=[topic],
        )


class StreamsHeartbeat(_Heartbeat):
    """A heartbeat of a streams group's member, which has a topology of one source."""

    request_class = StreamsGroupHeartbeatRequest
    response_class = StreamsGroupHeartbeatResponse

    def __init__(self, group: str, member_id: str, epoch: int, topic: str) -> None:
        super().__init__(group)
        self._member = (member_id, epoch, topic)

    def build(self, items: Sequence[str], version: int) -> Request:
        member_id, epoch, topic = self._member
        if epoch == LEAVE_EPOCH:
            return StreamsGroupHeartbeatRequest(
                group_id=self._group, member_id=member_id, member_epoch=epoch
            )
        part = Subtopology(subtopology_id="0", source_topics=[topic])
        return StreamsGroupHeartbeatRequest(
            group_id=self._group,
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=60_000,
            process_id="process",
            topology=Topology(epoch=0, subtopologies=[part]),
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
        )


def beat(admin: Admin, heartbeat: _Heartbeat) -> Any:
    """Send a heartbeat, and return its answer."""
    return admin._core.driver.run(admin._steps.run_one(heartbeat, None))


@contextmanager
def in_group(
    admin: Admin, kind: type[ShareHeartbeat | StreamsHeartbeat], group: str, topic: str
) -> Iterator[str]:
    """Have a member in a group for a block, and return its id."""
    member_id = str(uuid4())
    beat(admin, kind(group, member_id, 0, topic))
    yield member_id
    beat(admin, kind(group, member_id, LEAVE_EPOCH, topic))
