"""An Arrow table as rows: its columns by name, one record batch at a time.

The schema is checked when the table is opened. Cells are checked when their record batch is read,
before any of its rows is sent.

Thread: the caller's, with the GIL.
"""

from libc.stdint cimport int64_t

from kafka_fast.sending.bulk._arrow cimport (
    ArrowChunk,
    ArrowColumn,
    bytes_column,
    check_bytes_type,
    check_header_type,
    check_number_type,
    child_column,
    field_index,
    field_names,
    fill_numbers,
    format_of,
    header_column,
    open_source,
    whole_column,
)
from kafka_fast.sending.bulk._column cimport kf_bit
from kafka_fast.sending.bulk._rows cimport HeaderColumn, Numbers, Rows, new_numbers, scalar_number

from kafka_fast.errors import UsageError


cdef class Table:
    cdef Rows next_rows(self):
        """Return the rows of the next record batch; None after the last."""
        cdef ArrowChunk chunk = self.source.next_chunk()
        cdef ArrowColumn whole
        cdef Rows rows
        if chunk is None:
            return None
        whole = whole_column(chunk, self.row_count)
        refuse_null_rows(whole)
        rows = Rows.__new__(Rows)
        rows.topic = self.topic if self.topic is not None else "(topic column)"
        rows.first = self.row_count
        rows.count = whole.count
        rows.values = bytes_column(child_column(whole, self.value), self.what("value"))
        if self.key is not None:
            rows.keys = bytes_column(child_column(whole, self.key), self.what("key"))
        if self.headers is not None:
            rows.headers = header_column(child_column(whole, self.headers), self.what("headers"))
        else:
            rows.headers = HeaderColumn.__new__(HeaderColumn)
        rows.partitions = self.numbers(whole, self.partition, "partition")
        rows.timestamps = self.numbers(whole, self.timestamp, "timestamp")
        if self.topics is not None:
            self.topic_names = bytes_column(child_column(whole, self.topics), "column topic")
        self.row_count += rows.count
        return rows

    cdef str what(self, str role):
        where = "" if self.topic is None else f" for topic {self.topic!r}"
        return f"the {role} column{where}"

    cdef Numbers numbers(self, ArrowColumn whole, object index, str what):
        cdef Numbers numbers
        if index is None:
            return scalar_number(-1)
        numbers = new_numbers(whole.count)
        fill_numbers(numbers, 0, child_column(whole, index), rows_topic(self.topic), what)
        return numbers


cdef str rows_topic(object topic):
    return "(topic column)" if topic is None else topic


cdef int refuse_null_rows(ArrowColumn whole) except -1:
    """A record batch has no null rows, but an array of structs may."""
    cdef int64_t i
    cdef const unsigned char* validity
    if whole.array.null_count == 0 or whole.array.n_buffers == 0 \
            or whole.array.buffers[0] == NULL:
        return 0
    validity = <const unsigned char*>whole.array.buffers[0]
    for i in range(whole.count):
        if not kf_bit(validity, whole.array.offset + i):
            raise UsageError(f"row {whole.first_row + i} of the array is null as a whole")
    return 0


cdef Table open_table(object data, str topic, dict names):
    """Return the table, its schema checked.

    Args:
        topic: of all rows, or None: column "topic" has it.
        names: role -> name of its column or None; "key" may be missing under that name.
    """
    cdef Table table = Table.__new__(Table)
    if not (hasattr(data, "__arrow_c_array__") or hasattr(data, "__arrow_c_stream__")):
        raise TypeError(f"a table must be an Arrow array, table or stream (of any library), not "
                        f"{type(data).__name__}")
    table.source = open_source(data)
    table.topic = topic
    if format_of(table.source.schema) != "+s":
        raise TypeError("a table must have columns: send_many takes a single array")
    table.value = table_field(table, "value", names["value"])
    if names["key"] != "key" or field_index(table.source.schema, "key") is not None:
        table.key = table_field(table, "key", names["key"])
    table.headers = table_field(table, "headers", names["headers"])
    table.partition = table_field(table, "partition", names["partition"])
    table.timestamp = table_field(table, "timestamp", names["timestamp"])
    if topic is None:
        table.topics = table_field(table, "topic", "topic")
    return table


cdef object table_field(Table table, str role, object name):
    """Return the number of a role's column, its type checked; None if it has no name."""
    if name is None:
        return None
    index = field_index(table.source.schema, name)
    if index is None:
        present = ", ".join(field_names(table.source.schema))
        raise UsageError(f"the table has no column {name!r} for the {role}; it has {present}")
    what = f"column {name!r}"
    if role == "headers":
        check_header_type(table.source.schema.children[index], what)
    elif role in ("partition", "timestamp"):
        check_number_type(table.source.schema.children[index], what)
    else:
        check_bytes_type(table.source.schema.children[index], what)
    return index
