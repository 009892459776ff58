"""How much a micro-batch reads: maxOffsetsPerTrigger, minOffsetsPerTrigger, maxTriggerDelay."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kafka_fast.spark.source.offsets import Offsets
from kafka_fast.types import TopicPartition


def limited(
    limit: int, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
) -> Offsets:
    """Return the end of a micro-batch of about `limit` offsets.

    Each partition gets its share of the limit, in proportion to what it has to read. A share below
    one is one, so that a small partition beside large ones is read, too.

    Args:
        limit: maxOffsetsPerTrigger.
        start: where each partition of `end` stands.
        end: what there is.
    """
    sizes = {
        partition: size for partition, at in end.items() if (size := at - start[partition]) > 0
    }
    total = sum(sizes.values())
    return {
        partition: min(at, start[partition] + _share(limit, sizes[partition], total))
        if partition in sizes
        else at
        for partition, at in end.items()
    }


def _share(limit: int, size: int, total: int) -> int:
    share = limit * (size / total)
    return math.ceil(share) if share < 1 else math.floor(share)


class Delay:
    """Holds a micro-batch back until there is enough to read, or enough time has passed.

    Args:
        least: minOffsetsPerTrigger.
        longest: maxTriggerDelay in seconds.
    """

    def __init__(self, least: int, longest: float) -> None:
        self._least = least
        self._longest = longest
        self._triggered = -math.inf

    def holds_back(
        self,
        start: Mapping[TopicPartition, int],
        end: Mapping[TopicPartition, int],
        now: float,
    ) -> bool:
        """Return whether this micro-batch is to wait; the first one never waits.

        Args:
            start: where each partition of `end` stands.
            end: what there is.
            now: monotonic seconds.
        """
        is_late = now - self._triggered >= self._longest
        if (
            not is_late
            and sum(at - start[partition] for partition, at in end.items()) < self._least
        ):
            return True
        self._triggered = now
        return False
