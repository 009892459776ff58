"""DescribeLogDirs (35): what a broker's log directories hold (KIP-113).

What the versions changed:
    2: flexible. 3: an error of the whole answer. 4: size and free space of the volume (KIP-827).
    5: directories that take no new partitions (KIP-1066).
"""

from __future__ import annotations

from kafka_fast.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int16,
    int32,
    int64,
    string,
)


class DescribableLogDirTopic(Struct):
    """An entry of `DescribeLogDirsRequest.topics`."""

    topic: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class DescribeLogDirsRequest(Request, api_key=35, versions="1-5", flexible="2+"):
    """The partitions to describe; null for all."""

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, "0+", nullable="0+")


class DescribeLogDirsPartition(Struct):
    """An entry of `DescribeLogDirsTopic.partitions`."""

    partition_index: int = int32("0+")
    partition_size: int = int64("0+")
    offset_lag: int = int64("0+")
    is_future_key: bool = bool_("0+")


class DescribeLogDirsTopic(Struct):
    """An entry of `DescribeLogDirsResult.topics`."""

    name: str = string("0+")
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition, "0+")


class DescribeLogDirsResult(Struct):
    """An entry of `DescribeLogDirsResponse.results`."""

    error_code: int = int16("0+")
    log_dir: str = string("0+")
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic, "0+")
    total_bytes: int = int64("4+", default=-1, ignorable=True)
    usable_bytes: int = int64("4+", default=-1, ignorable=True)
    is_cordoned: bool = bool_("5+", ignorable=True)


class DescribeLogDirsResponse(Response, api_key=35, versions="1-5", flexible="2+"):
    """Sizes in bytes; a future log will replace the current one."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult, "0+")
