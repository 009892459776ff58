"""Record batches: read and write. Part of the public wire API.

Reading takes all three message formats and all codecs; writing makes format v2 (Kafka 0.11 on).
This package knows bytes only: nothing here connects, waits or decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_fast._lazy import lazily

if TYPE_CHECKING:
    from kafka_fast.record._columns import BytesColumn, Columns, columns
    from kafka_fast.record._reader import RecordBatch, RecordBatches, read_batches
    from kafka_fast.record._records import Record, Records
    from kafka_fast.record._writer import RecordBatchBuilder, build_control_batch, stamp_batch
    from kafka_fast.record.compression import codecs_available, compress, decompress
    from kafka_fast.record.types import Codec, ControlRecord, ControlType, TimestampType
else:
    _WHERE = {
        "BytesColumn": "_columns",
        "Codec": "types",
        "Columns": "_columns",
        "ControlRecord": "types",
        "ControlType": "types",
        "Record": "_records",
        "RecordBatch": "_reader",
        "RecordBatchBuilder": "_writer",
        "RecordBatches": "_reader",
        "Records": "_records",
        "TimestampType": "types",
        "build_control_batch": "_writer",
        "codecs_available": "compression",
        "columns": "_columns",
        "compress": "compression",
        "decompress": "compression",
        "read_batches": "_reader",
        "stamp_batch": "_writer",
    }
    __getattr__, __dir__ = lazily(__name__, _WHERE)

__all__ = [
    "BytesColumn",
    "Codec",
    "Columns",
    "ControlRecord",
    "ControlType",
    "Record",
    "RecordBatch",
    "RecordBatchBuilder",
    "RecordBatches",
    "Records",
    "TimestampType",
    "build_control_batch",
    "codecs_available",
    "columns",
    "compress",
    "decompress",
    "read_batches",
    "stamp_batch",
]
