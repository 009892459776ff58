"""The calls of `aio.Admin` about topics.

Made of `admin/calls/topics.py` by `python -m tests.shells`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafka_fast.admin.base import AdminCalls

if TYPE_CHECKING:
    from kafka_fast.admin.result import AdminResult
    from kafka_fast.control.admin.types.topics import (
        CreatedTopic,
        NewPartitions,
        NewTopic,
        TopicDescription,
        TopicListing,
    )
    from kafka_fast.types import TopicPartition


class AsyncTopicCalls(AdminCalls):
    """Topics: list, describe, create and delete them; add partitions, delete records."""

    async def list_topics(
        self, *, include_internal: bool = False, timeout: float | None = None
    ) -> dict[str, TopicListing]:
        """Return all topics that this client may see, by name.

        Metadata; needs DESCRIBE on a topic to see it.

        Args:
            include_internal: whether to include internal topics, which brokers keep for themselves.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.control.admin.operations.topics import ListTopics

        return await self._driver.run(
            self._steps.run_one(ListTopics(include_internal=include_internal), timeout)
        )

    async def describe_topics(
        self,
        topics: Iterable[str],
        *,
        by_id: bool = False,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> AdminResult[str, TopicDescription]:
        """Return the partitions of topics, and what this client may do with them.

        DescribeTopicPartitions, page by page, or Metadata if the brokers are older than Kafka 3.8;
        for topics that are named by ids, Metadata first; needs DESCRIBE on the topic. A topic that
        does not exist is an UnknownTopicOrPartition. Ids need Kafka 3.1, operations 2.3, eligible
        leader replicas 3.8.

        Args:
            topics: their names.
            by_id: whether `topics` are ids, as other calls return them.
            include_authorized_operations: whether to ask what this client may do with them.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.admin.workflows.topics import describe_topics

        return await self._driver.run(
            describe_topics(
                self._steps,
                topics,
                by_id=by_id,
                include_authorized_operations=include_authorized_operations,
                timeout=timeout,
            )
        )

    async def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        retry_on_quota: bool = True,
        timeout: float | None = None,
    ) -> AdminResult[str, CreatedTopic]:
        """Create topics.

        CreateTopics; needs CREATE on the topic or on the cluster, and DESCRIBE_CONFIGS on the topic
        to be told its configuration. When this returns, not all brokers may know the topics yet.

        Args:
            topics: each with a name of its own.
            validate_only: whether to check only whether they could be created.
            retry_on_quota: whether to wait while the cluster's quota on changes forbids it
                (KIP-599). Otherwise such a topic is a ThrottlingQuotaExceeded.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: two topics have the same name, or one has assignments and numbers.
        """
        from kafka_fast.control.admin.operations.topics import CreateTopics

        operation = CreateTopics(topics, validate_only=validate_only, retry_on_quota=retry_on_quota)
        return await self._driver.run(self._steps.run_items(operation, timeout))

    async def wait_until_topics_visible(
        self, topics: Iterable[str], *, timeout: float | None = None
    ) -> None:
        """Wait until every broker knows these topics, and a leader for each of their partitions.

        Metadata from all brokers; needs DESCRIBE on the topic. Clients of any broker can then use
        topics that `create_topics` has created.

        Args:
            topics: their names.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            KafkaTimeoutError: a broker does not know one of them in time; the error names both.
            TopicAuthorizationFailed: this client may not see one of them.
        """
        from kafka_fast.admin.workflows.topics import wait_until_topics_visible

        return await self._driver.run(
            wait_until_topics_visible(self._steps, topics, timeout=timeout)
        )

    async def delete_topics(
        self,
        topics: Iterable[str],
        *,
        by_id: bool = False,
        retry_on_quota: bool = True,
        timeout: float | None = None,
    ) -> AdminResult[str, None]:
        """Delete topics, with all their records.

        DeleteTopics; needs DELETE on the topic. When this returns, not all brokers may have
        forgotten the topics. Ids need Kafka 2.8.

        Args:
            topics: their names.
            by_id: whether `topics` are ids, as other calls return them.
            retry_on_quota: as in `create_topics`.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.control.admin.operations.topics import DeleteTopics

        operation = DeleteTopics(topics, by_id=by_id, retry_on_quota=retry_on_quota)
        return await self._driver.run(self._steps.run_items(operation, timeout))

    async def create_partitions(
        self,
        partitions: Mapping[str, NewPartitions],
        *,
        validate_only: bool = False,
        retry_on_quota: bool = True,
        timeout: float | None = None,
    ) -> AdminResult[str, None]:
        """Add partitions to topics. Keys then go to other partitions than before.

        CreatePartitions; needs ALTER on the topic.

        Args:
            partitions: how many partitions each topic is to have, by its name.
            validate_only: whether to check only whether they could be added.
            retry_on_quota: as in `create_topics`.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.control.admin.operations.topics import CreatePartitions

        operation = CreatePartitions(
            partitions, validate_only=validate_only, retry_on_quota=retry_on_quota
        )
        return await self._driver.run(self._steps.run_items(operation, timeout))

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> AdminResult[TopicPartition, int]:
        """Delete the records before an offset, and return where each log starts now.

        DeleteRecords; needs DELETE on the topic.

        Args:
            offsets: the first offset that each partition keeps; -1: its high watermark, so that
                nothing is left.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.control.admin.operations.topics import DeleteRecords

        return await self._driver.run(self._steps.run_items(DeleteRecords(offsets), timeout))
