"""The calls of `Admin` about offsets of partitions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from kafka_fast.admin.base import AdminCalls
from kafka_fast.control.admin.types.offsets import IsolationLevel

if TYPE_CHECKING:
    from kafka_fast.admin.result import AdminResult
    from kafka_fast.control.admin.types.offsets import ListedOffset, OffsetSpec
    from kafka_fast.types import TopicPartition


class OffsetCalls(AdminCalls):
    """Offsets of partitions: where logs begin and end, and where a time is."""

    def list_offsets(
        self,
        offsets: Mapping[TopicPartition, OffsetSpec | int | datetime],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout: float | None = None,
    ) -> AdminResult[TopicPartition, ListedOffset]:
        """Return where logs begin and end, or the first records that are not older than a time.

        ListOffsets; needs DESCRIBE on the topic. Some of `OffsetSpec` need newer brokers, and are
        an UnsupportedVersionError with older ones.

        Args:
            offsets: what is looked up in each partition: an `OffsetSpec`, or a time as Unix ms or
                as a datetime with a time zone. Of a time, the offset is -1 if no record is at or
                after it.
            isolation_level: with READ_COMMITTED the latest offset is the last stable one, where the
                first open transaction begins.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: a time is none, has no time zone, or is most likely in another unit.
        """
        from kafka_fast.control.admin.operations.offsets import ListOffsets

        operation = ListOffsets(offsets, isolation_level=isolation_level)
        return self._core.driver.run(self._steps.run_items(operation, timeout))
