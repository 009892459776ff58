"""Groups by the admin client, on a broker that knows only classic ones."""

from __future__ import annotations

import uuid

import pytest

from kafka_fast import Admin, OffsetAndMetadata, TopicPartition
from kafka_fast.admin import (
    GroupState,
    GroupType,
    IsolationLevel,
    NewTopic,
    OffsetSpec,
    ResetTo,
)
from kafka_fast.errors import GroupIdNotFound, UnknownMemberId, UnsupportedVersionError
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.admin.groups.group_members import joined

pytestmark = pytest.mark.broker


def test_old_brokers_do_what_they_can(old_kafka: RealKafka) -> None:
    topic = group = f"admin-old-{uuid.uuid4().hex}"
    absent = f"{group}-absent"
    here = TopicPartition(topic, 0)
    with Admin(bootstrap_servers=old_kafka.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)]).raise_first()
        with joined(old_kafka.bootstrap, group, topic) as consumer:
            consumer.commit({here: OffsetAndMetadata(0)})
            # Listings have states since 2.6, and types since 3.8.
            listed = admin.list_groups(states=[GroupState.STABLE])[group]
            assert (listed.type, listed.protocol_type) == (GroupType.UNKNOWN, "consumer")
            filtered = admin.list_groups(types=[GroupType.CLASSIC])
            assert dict(filtered) == {}
            assert isinstance(filtered.errors[1], UnsupportedVersionError)
            told = admin.describe_consumer_groups([group, absent])
            assert told[group].type is GroupType.CLASSIC
            assert told[group].members[0].assignment == {here}
            assert isinstance(told.errors[absent], GroupIdNotFound)
            for describe in (admin.describe_share_groups, admin.describe_streams_groups):
                assert isinstance(describe([group]).errors[group], UnsupportedVersionError)
            error = admin.alter_consumer_group_offsets(group, {here: 0}).errors[here]
            assert isinstance(error, UnknownMemberId)
            lag = admin.consumer_group_lag([group, absent])
            assert [one.lag for one in lag[group].partitions] == [0]
            assert isinstance(lag.errors[absent], GroupIdNotFound)
            assert admin.consumer_group_lag()[group] == lag[group]
        several = admin.list_consumer_group_offsets({group: None, absent: [here]})
        assert several[group] == {here: OffsetAndMetadata(0)}
        assert several[absent] == {here: None}
        plan = admin.reset_consumer_group_offsets(group, ResetTo.to_offset(5))
        assert [(one.target, one.clamped) for one in plan.resets] == [(0, True)]
        highest = admin.list_offsets({here: OffsetSpec.MAX_TIMESTAMP})
        assert isinstance(highest.errors[here], UnsupportedVersionError)
        latest = admin.list_offsets(
            {here: OffsetSpec.LATEST}, isolation_level=IsolationLevel.READ_COMMITTED
        )
        assert latest[here].offset == 0
        admin.delete_groups([group]).raise_first()
