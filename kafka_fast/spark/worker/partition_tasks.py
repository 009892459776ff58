"""What `partitioning` has workers do: ask for the number of partitions, hash columns of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kafka_fast.producer.partitions import key_partitions
from kafka_fast.spark.options import arrived
from kafka_fast.spark.worker.producers import PRODUCERS


def count_partitions(batches: Iterable[Any], *options: Any) -> Iterator[Any]:
    """Yield one row: the number of the topic's partitions.

    Raises:
        KafkaError: the topic cannot be used.
    """
    import pyarrow as pa

    task_options = arrived(options)
    del options
    assert task_options.topic is not None
    for _ in batches:
        pass  # PySpark wants its input read
    with PRODUCERS.lease(task_options.config) as producer:
        count = len(producer.partitions_for(task_options.topic))
    yield pa.RecordBatch.from_arrays([pa.array([count], pa.int32())], ["partitions"])


def partitions_of_keys(arrays: Iterable[Any], partitions: int) -> Iterator[Any]:
    """Yield an int32 array of partitions for each array of keys."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for keys in arrays:
        partition_ids = pa.Array.from_buffers(
            pa.int32(), len(keys), [None, pa.py_buffer(key_partitions(keys, partitions))]
        )
        nothing = pa.scalar(None, pa.int32())
        yield (
            pc.if_else(pc.less(partition_ids, 0), nothing, partition_ids)
            if keys.null_count
            else partition_ids
        )


def partitions_of_series(series: Iterable[Any], partitions: int) -> Iterator[Any]:
    """Yield a pandas series of partitions for each series of keys."""
    import pyarrow as pa

    arrays = (pa.Array.from_pandas(keys) for keys in series)
    for partition_ids in partitions_of_keys(arrays, partitions):
        yield partition_ids.to_pandas(integer_object_nulls=True)
