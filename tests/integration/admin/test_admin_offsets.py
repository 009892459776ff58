"""Offsets of partitions by the admin client, on real Kafka."""

from __future__ import annotations

import uuid
from datetime import datetime, timezone

import pytest

from kafka_fast import Admin, Producer, TopicPartition
from kafka_fast.admin import IsolationLevel, ListedOffset, NewTopic, OffsetSpec
from kafka_fast.errors import UnknownTopicOrPartition, UnsupportedVersionError
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.admin.admin_clients import admin
from tests.integration.admin.groups.group_members import needs_kafka

__all__ = ["admin"]

pytestmark = pytest.mark.broker

FIRST_MS = 1_704_067_200_000
FIRST = datetime(2024, 1, 1, tzinfo=timezone.utc)


@pytest.fixture
def topic(admin: Admin, real_kafka: RealKafka) -> str:
    """Ten records in partition 0, one per second; none in partition 1."""
    name = f"admin-offsets-{uuid.uuid4().hex}"
    admin.create_topics([NewTopic(name, 2, 1)]).raise_first()
    with Producer(bootstrap_servers=real_kafka.bootstrap) as producer:
        for number in range(10):
            timestamp = FIRST_MS + 1000 * (number if number != 3 else 99)
            producer.send(name, b"%d" % number, partition=0, timestamp_ms=timestamp)
    return name


def test_logs_have_places_and_times(admin: Admin, topic: str) -> None:
    here, there = TopicPartition(topic, 0), TopicPartition(topic, 1)
    admin.delete_records({here: 2}).raise_first()
    assert admin.list_offsets({here: OffsetSpec.EARLIEST})[here].offset == 2
    latest = admin.list_offsets(
        {here: OffsetSpec.LATEST, there: OffsetSpec.LATEST},
        isolation_level=IsolationLevel.READ_COMMITTED,
    )
    assert [one.offset for one in latest.values()] == [10, 0]
    by_time = admin.list_offsets({here: FIRST_MS + 5001, there: FIRST})
    assert (by_time[here].offset, by_time[there].offset) == (3, -1)


def test_a_record_has_the_highest_timestamp(
    admin: Admin, topic: str, real_kafka: RealKafka
) -> None:
    here = TopicPartition(topic, 0)
    highest = admin.list_offsets({here: OffsetSpec.MAX_TIMESTAMP})
    if real_kafka.release.version < "3.0":
        assert isinstance(highest.errors[here], UnsupportedVersionError)
    else:
        assert highest[here] == ListedOffset(3, FIRST_MS + 99_000, 0)


def test_a_log_without_remote_storage_is_all_local(
    admin: Admin, topic: str, real_kafka: RealKafka
) -> None:
    needs_kafka(real_kafka, "4.2")
    here = TopicPartition(topic, 0)
    assert admin.list_offsets({here: OffsetSpec.EARLIEST_LOCAL})[here].offset == 0
    assert admin.list_offsets({here: OffsetSpec.LATEST_TIERED})[here].offset == -1
    assert admin.list_offsets({here: OffsetSpec.EARLIEST_PENDING_UPLOAD})[here].offset == -1


def test_absent_partitions_do_not_keep_the_others_away(admin: Admin, topic: str) -> None:
    here, beyond = TopicPartition(topic, 0), TopicPartition(topic, 7)
    result = admin.list_offsets(dict.fromkeys((here, beyond), OffsetSpec.LATEST))
    assert result.succeeded[here].offset == 10
    assert isinstance(result.errors[beyond], UnknownTopicOrPartition)
