"""The calls of `aio.Admin` about how far groups are: their lag, and where they go on.

Made of `admin/calls/lag.py` by `python -m tests.shells`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_fast.admin.base import AdminCalls

if TYPE_CHECKING:
    from kafka_fast.admin.result import AdminResult
    from kafka_fast.control.admin.types.groups.lag import GroupLag
    from kafka_fast.control.admin.types.groups.resets import ResetPlan, ResetTo
    from kafka_fast.types import TopicPartition


class AsyncLagCalls(AdminCalls):
    """How far groups are: their lag, and where they go on."""

    async def consumer_group_lag(
        self,
        groups: Iterable[str] | None = None,
        *,
        topics: Iterable[str] | None = None,
        timeout: float | None = None,
    ) -> AdminResult[str, GroupLag]:
        """Return how far groups of consumers are behind the ends of their partitions.

        The partitions are those of all topics of which a group has committed offsets, or to which
        its members subscribe. Of a classic group that rebalances, only the former are known. All
        groups are asked together, and all leaders, so many groups take hardly longer than one.

        ListGroups, ConsumerGroupDescribe, DescribeGroups, OffsetFetch, Metadata and ListOffsets;
        needs DESCRIBE on the groups and topics. What may not be seen, or is not there, is an error
        of its partition, topic or group only: see `GroupLag`. A group that neither exists nor has
        offsets is a GroupIdNotFound. If topics are named, such a group has a value as well: it has
        committed nothing of them, and its `members_error` is that error.

        Args:
            groups: their ids; None: all groups of consumers, of either protocol.
            topics: all partitions of these, and no others; None: those of each group.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            KafkaError: all groups are meant, and a node has not listed those that it coordinates.
        """
        from kafka_fast.admin.workflows import lag as lags

        deadline = self._steps.begin_call(timeout)
        lag = lags.consumer_group_lag(self._steps, groups, topics, deadline)
        return await self._driver.run(lag)

    async def reset_consumer_group_offsets(
        self,
        group_id: str,
        to: ResetTo | ResetPlan,
        *,
        topics: Iterable[str] = (),
        partitions: Iterable[TopicPartition] = (),
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> ResetPlan:
        """Say where a group without members goes on, and return what was committed.

        An offset outside of a log is moved to the log's next end: such a reset is `clamped`. First
        everything is planned, and if a partition cannot be, nothing is committed. The coordinator
        may still refuse some partitions in the end: the plan's `errors` has them, and its
        `raise_first` raises. They are logged, too. A plan from a dry run may be stored
        (`ResetPlan.to_json`), and be carried out later: its offsets are committed as they are.

        OffsetFetch, Metadata, ListOffsets and OffsetCommit; needs READ on the group and the topics.

        Args:
            group_id: the group; one that does not exist is made.
            to: the place in each partition, such as `ResetTo.earliest()`; or a plan.
            topics: reset all partitions of these.
            partitions: reset these as well. Neither topics nor partitions: all partitions that the
                group has committed offsets of, or those of the plan.
            dry_run: whether to commit nothing, and return the plan. Partitions that cannot be reset
                are among its `errors`. The group may have members.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            NonEmptyGroup: the group has members; the error names them.
            UnknownTopicOrPartition: there is no such topic.
            UsageError: nothing is committed that could be shifted; or the plan is for another
                group, or partitions are given beside it.
        """
        from kafka_fast.admin.workflows.resets import ResetScope, reset_offsets

        reset = reset_offsets(
            self._steps,
            group_id,
            to,
            ResetScope.of(topics, partitions),
            dry_run=dry_run,
            deadline=self._steps.begin_call(timeout),
        )
        return await self._driver.run(reset)
