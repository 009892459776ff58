"""The source behind `format("kafka_fast")`: topics as DataFrames, batch and stream, over Arrow.

    planner    options ─► subscription, bounds ─► OffsetReader: offsets ─► ranges, one for each task
    executor   range ─► consumer of the worker ─► RecordBatches

`docs/internals/spark-source.md` says who calls what, and when. Modules without PySpark and without
a network: options, subscription, java_regex, bounds, offsets, schema, ranges, planning, rate_limit.
"""
