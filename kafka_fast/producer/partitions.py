"""Which partition the producer would choose, for whoever sorts records before they are produced."""

from __future__ import annotations

from array import array
from typing import Any

from kafka_fast.errors import UsageError
from kafka_fast.sending.bulk._key_partitions import partitions_of_columns


def key_partitions(keys: Any, partitions: int) -> array[int]:
    """Return the partition of each key, as every Java producer chooses it (murmur2).

    Examples:
        >>> key_partitions(pa.array(["a", None, "b"]), 6)
        array('i', [4, -1, 2])

    Args:
        keys: an Arrow array or stream of binary or string; strings are hashed as UTF-8.
        partitions: how many partitions the topic has.

    Returns:
        One number for each key, as int32. -1 stands for null: without a key, the producer chooses.

    Raises:
        TypeError: the keys are something else.
        UsageError: the keys are not valid, or a topic cannot have so many partitions.
    """
    if not (hasattr(keys, "__arrow_c_array__") or hasattr(keys, "__arrow_c_stream__")):
        raise TypeError(f"keys must be an Arrow array or stream, not {type(keys).__name__}")
    check_partition_count(partitions)
    return array("i", partitions_of_columns(keys, partitions))


def check_partition_count(partitions: int) -> None:
    """Raise UsageError if a topic cannot have so many partitions."""
    if not 1 <= partitions < 1 << 31:
        raise UsageError(f"a topic has 1 to 2**31 - 1 partitions, not {partitions}")
