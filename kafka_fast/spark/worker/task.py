"""The work of a task in a Spark worker: its input goes to the producer of the process.

The pickled function of `entry` calls this module, in a process that has kafka_fast. Every task
waits for its own last acknowledgement: Spark kills the process, so nothing is left to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from kafka_fast.errors import UsageError
from kafka_fast.spark.options import TaskOptions, arrived
from kafka_fast.spark.report import REPORT_SCHEMA, ReportRow
from kafka_fast.spark.table_columns import ARGUMENT, null_topic, with_timestamps
from kafka_fast.spark.task_errors import carried, identity
from kafka_fast.spark.worker import partition_tasks
from kafka_fast.spark.worker.ledger import Ledger
from kafka_fast.spark.worker.producers import PRODUCERS
from kafka_fast.spark.worker.records import columns

CHUNK_BYTES = 4 << 20
"""Estimated size at which a chunk ends, so chunks of large records are short."""
PART_RECORDS = 256
"""Records that are taken from the input at a time."""
SAMPLED = 16
"""About so many of these records are measured, to estimate the size of all."""

COLUMNS = ("key", "headers", "partition", "timestamp")
"""Optional columns of a DataFrame."""
OPTIONAL_COLUMNS = ("keys", "headers", "partitions", "timestamps_ms")
"""Optional arguments of `send_many`, in the order of `TopicColumns`."""
ARROW_TYPES = {"int": "int32", "bigint": "int64", "string": "string", "double": "double"}
SIZED = (bytes, str, bytearray, memoryview)


def run(function: str, records: Iterable[Any], arguments: tuple[Any, ...]) -> Iterator[Any]:
    """Run the task that `function` names, and yield its rows.

    Args:
        function: name of one of TASKS.
        records: the task's input.
        arguments: the other arguments of the function.

    Raises:
        TaskError: in place of a KafkaError.
    """
    rows = TASKS[function](records, *arguments)
    del arguments  # a traceback that has this frame shows no secret
    yield from carried(rows)


def write_records(records: Iterable[Any], *options: Any) -> Iterator[ReportRow]:
    """Write the records of an RDD's partition; yield the report once all of them are settled.

    Raises:
        KafkaDeliveryError: records were not delivered, unless errors are to be reported.
        UsageError: a record has no form that can be written.
    """
    task_options = arrived(options)
    del options

    def send(producer: Any, ledger: Ledger) -> None:
        for chunk in chunks(records, task_options.chunk_records):
            for topic, values, *others in columns(chunk, task_options.topic):
                named = dict(zip(OPTIONAL_COLUMNS, others, strict=True))
                try:
                    future = producer.send_many(topic, values, **named)
                except TypeError as error:  # the input's own TypeErrors are raised in `chunks`
                    raise UsageError(str(error)) from error
                ledger.add_future(topic, future)

    yield from _write(send, task_options)


def write_batches(batches: Iterable[Any], *options: Any) -> Iterator[Any]:
    """Write the Arrow record batches of a DataFrame's partition; yield the report as a batch.

    Raises:
        KafkaDeliveryError: records were not delivered, unless errors are to be reported.
    """
    import pyarrow as pa

    task_options = arrived(options)
    del options
    rows = write_tables(batches, task_options, ARGUMENT)
    if rows:
        yield pa.RecordBatch.from_pylist([row._asdict() for row in rows], schema=_report_schema())


def write_tables(batches: Iterable[Any], options: TaskOptions, setting: str) -> list[ReportRow]:
    """Write Arrow record batches; return the report once all of their rows are settled.

    Args:
        batches: `pyarrow.RecordBatch`, with the columns of `table_columns`.
        options: the job's.
        setting: what sets the topic of all rows, for a message.

    Raises:
        KafkaDeliveryError: records were not delivered, unless errors are to be reported.
        UsageError: a row's topic is null.
    """

    def send(producer: Any, ledger: Ledger) -> None:
        for batch in map(with_timestamps, batches):
            present = batch.schema.names
            if options.topic is None and batch.column("topic").null_count:
                raise UsageError(null_topic(setting))
            names = {name: name if name in present else None for name in COLUMNS}
            ledger.add_future(options.topic, producer.send_table(options.topic, batch, **names))

    return _write(send, options)


def _report_schema() -> Any:
    """Return REPORT_SCHEMA in Arrow's types."""
    import pyarrow as pa

    columns_of_report = (column.split() for column in REPORT_SCHEMA.split(", "))
    return pa.schema(
        [(name, pa.type_for_alias(ARROW_TYPES[kind])) for name, kind in columns_of_report]
    )


def _write(send: Callable[[Any, Ledger], None], options: TaskOptions) -> list[ReportRow]:
    """Have `send` pass the input to a producer; wait, and return the report."""
    task, attempt = identity()
    with PRODUCERS.lease(options.config) as producer:
        ledger = Ledger(task, attempt, PRODUCERS.delivery_timeout(producer))
        send(producer, ledger)
        ledger.close()
        error = ledger.error()
        if error is not None and options.on_error == "raise":
            raise error
        if ledger.unsettled:
            PRODUCERS.retire(producer)
    return ledger.rows()


def chunks(records: Iterable[Any], most: int) -> Iterator[list[Any]]:
    """Yield the records in lists of at most `most`; lists of large records are shorter."""
    iterator = iter(records)
    chunk: list[Any] = []
    size = 0
    while part := list(islice(iterator, min(PART_RECORDS, most - len(chunk)))):
        chunk += part
        sample = part[:: -(-len(part) // SAMPLED)]
        size += sum(map(size_of, sample)) * len(part) // len(sample)
        if len(chunk) >= most or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def size_of(record: Any) -> int:
    """Return the approximate number of bytes in a record."""
    if isinstance(record, SIZED):
        return len(record)
    if isinstance(record, dict):
        record = record.values()
    if not isinstance(record, Iterable):
        return 0  # not a record; `columns` refuses it
    return sum(len(item) for item in record if isinstance(item, SIZED))


TASKS: dict[str, Callable[..., Iterator[Any]]] = {
    "write_records": write_records,
    "write_batches": write_batches,
    "count_partitions": partition_tasks.count_partitions,
    "partitions_of_keys": partition_tasks.partitions_of_keys,
    "partitions_of_series": partition_tasks.partitions_of_series,
}
