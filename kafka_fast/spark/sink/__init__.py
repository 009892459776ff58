"""The sink behind `format("kafka_fast")`: DataFrames into topics, batch and stream, over Arrow.

    planner    options, schema ─► checks ─► a writer, pickled ─► ... ─► commit: the report, logged
    worker     writer ─► RecordBatches ─► dedupe headers ─► task.write_tables ─► report rows

`docs/internals/spark-sink.md` says who calls what, and when. Only `writers` knows PySpark's
classes; only a task asks brokers.
"""
