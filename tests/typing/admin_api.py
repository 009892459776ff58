"""The admin client as a user's type checker sees it; read by mypy --strict, never run."""

from __future__ import annotations

from typing_extensions import assert_type

from kafka_fast import Admin, KafkaError, TopicPartition, aio
from kafka_fast.admin import (
    AdminResult,
    CreatedTopic,
    NewPartitions,
    NewTopic,
    TopicDescription,
    TopicListing,
)


def administer() -> None:
    with Admin({"bootstrap.servers": "localhost:9092"}, default_api_timeout_ms=1000) as admin:
        assert_type(admin, Admin)
        created = admin.create_topics([NewTopic("a", 3, configs={"retention.ms": "1"})])
        assert_type(created, AdminResult[str, CreatedTopic])
        assert_type(created["a"].partition_count, int | None)
        assert_type(created.errors, dict[str, KafkaError])
        assert_type(created.raise_first().succeeded, dict[str, CreatedTopic])
        assert_type(admin.list_topics(timeout=1.0), dict[str, TopicListing])
        described = admin.describe_topics(["a"])
        assert_type(described, AdminResult[str, TopicDescription])
        assert_type(described["a"].partitions[0].leader, int | None)
        assert_type(
            admin.create_partitions({"a": NewPartitions(3)}, validate_only=True),
            AdminResult[str, None],
        )
        assert_type(
            admin.delete_records({TopicPartition("a", 0): 1}), AdminResult[TopicPartition, int]
        )


async def administer_in_a_loop() -> None:
    async with aio.Admin(bootstrap_servers="localhost:9092") as admin:
        assert_type(admin, aio.Admin)
        assert_type(await admin.create_topics([NewTopic("a")]), AdminResult[str, CreatedTopic])
        assert_type(await admin.list_topics(), dict[str, TopicListing])
