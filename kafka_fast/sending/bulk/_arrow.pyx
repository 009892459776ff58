"""Arrow without pyarrow: columns from any object with `__arrow_c_array__` or `__arrow_c_stream__`.

    object ─ PyCapsules ─► ArrowSource ─► ArrowChunk ─► ArrowColumn ─► Column, Numbers, HeaderColumn
                            schema         one array     by name        what a bulk call reads

What is taken: binary and string of every layout (32 and 64 bit offsets, views, fixed size), int32
and int64, timestamps of every unit, and list<struct<key, value>> or map for headers; slices and
nulls anywhere. The interface does not tell how long buffers are, so their producer is trusted.
Offsets and views are checked once.

Thread: the caller's, with the GIL.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memset

from kafka_fast.sending.bulk._column cimport (
    KF_COLUMN_NULLS,
    KF_COLUMN_OFFSETS32,
    KF_COLUMN_OFFSETS64,
    KF_COLUMN_STRIDED,
    KF_COLUMN_VIEWS,
    Column,
    check_column,
    kf_bit,
    kf_column_get,
    kf_header_column,
    kf_headers_get,
    kf_headers_size,
    kf_put_headers,
)
from kafka_fast.sending.bulk._rows cimport HeaderColumn, Numbers, new_numbers, note_odd

from kafka_fast.errors import UsageError

# Format -> how items lie. Fixed size has its width in the format.
cdef dict LAYOUTS = {
    "n": KF_COLUMN_NULLS,
    "z": KF_COLUMN_OFFSETS32, "u": KF_COLUMN_OFFSETS32,
    "Z": KF_COLUMN_OFFSETS64, "U": KF_COLUMN_OFFSETS64,
    "vz": KF_COLUMN_VIEWS, "vu": KF_COLUMN_VIEWS,
}
# Format of integers -> width in bytes.
cdef dict WIDTHS = {"c": 1, "s": 2, "i": 4, "l": 8}
# Third letter of a timestamp's format -> how many of its units make a millisecond (or, below 0,
# how many milliseconds a unit has).
cdef dict UNITS = {"s": -1000, "m": 1, "u": 1000, "n": 1_000_000}


# ---- taking over ----

cdef class ArrowSource:
    cdef ArrowChunk next_chunk(self):
        """Return the next array; None after the last."""
        cdef ArrowChunk chunk = ArrowChunk.__new__(ArrowChunk)
        cdef ArrowArrayStream* stream = self.stream
        cdef ArrowArray* array = &chunk.array
        cdef int error
        chunk.source = self
        if stream == NULL:
            if self.only.release == NULL:
                return None
            chunk.array = self.only[0]
            self.only.release = NULL  # moved
            return chunk
        with nogil:
            error = stream.get_next(stream, array)
        if error != 0:
            raise UsageError(f"the Arrow stream failed: {stream_error(stream, error)}")
        return chunk if chunk.array.release != NULL else None


cdef str stream_error(ArrowArrayStream* stream, int error):
    cdef const char* said = stream.get_last_error(stream)
    return said.decode(errors="replace") if said != NULL else f"errno {error}"


cdef class ArrowChunk:
    def __cinit__(self):
        memset(&self.array, 0, sizeof(ArrowArray))

    def __dealloc__(self):
        if self.array.release != NULL:
            self.array.release(&self.array)


cdef class SchemaHolder:
    """A schema that came out of a stream."""

    cdef ArrowSchema schema

    def __cinit__(self):
        memset(&self.schema, 0, sizeof(ArrowSchema))

    def __dealloc__(self):
        if self.schema.release != NULL:
            self.schema.release(&self.schema)


cdef ArrowSource open_source(object data):
    """Return the arrays behind an object that speaks the interface."""
    cdef ArrowSource source = ArrowSource.__new__(ArrowSource)
    cdef SchemaHolder holder
    cdef int error
    if hasattr(data, "__arrow_c_array__"):
        schema, array = data.__arrow_c_array__()
        source.capsules = (schema, array)
        source.schema = <ArrowSchema*>PyCapsule_GetPointer(schema, "arrow_schema")
        source.only = <ArrowArray*>PyCapsule_GetPointer(array, "arrow_array")
        return source
    capsule = data.__arrow_c_stream__()
    source.stream = <ArrowArrayStream*>PyCapsule_GetPointer(capsule, "arrow_array_stream")
    holder = SchemaHolder()
    error = source.stream.get_schema(source.stream, &holder.schema)
    if error != 0:
        raise UsageError(f"the Arrow stream failed: {stream_error(source.stream, error)}")
    source.schema = &holder.schema
    source.capsules = (capsule, holder)
    return source


# ---- columns ----

cdef ArrowColumn whole_column(ArrowChunk chunk, int64_t first_row):
    """Return a chunk as a column."""
    cdef ArrowColumn column = ArrowColumn.__new__(ArrowColumn)
    column.chunk = chunk
    column.schema = chunk.source.schema
    column.array = &chunk.array
    column.first = 0
    column.count = chunk.array.length
    column.first_row = first_row
    return column


cdef ArrowColumn child_column(ArrowColumn parent, int64_t index):
    """Return a struct's field, with the rows of the parent's slice."""
    cdef ArrowColumn column = ArrowColumn.__new__(ArrowColumn)
    column.chunk = parent.chunk
    column.schema = parent.schema.children[index]
    column.array = parent.array.children[index]
    column.first = parent.first + parent.array.offset
    column.count = parent.count
    column.first_row = parent.first_row
    return column


cdef str format_of(const ArrowSchema* schema):
    return schema.format.decode()


cdef list field_names(const ArrowSchema* schema):
    """Return the names of a struct's fields; a field may be without one."""
    cdef int64_t i
    cdef const char* name
    names = []
    for i in range(schema.n_children):
        name = schema.children[i].name
        names.append("" if name == NULL else name.decode())
    return names


cdef object field_index(const ArrowSchema* schema, str name):
    """Return the number of a struct's field; None if there is none of the name."""
    names = field_names(schema)
    return names.index(name) if name in names else None


cdef const uint8_t* validity_of(ArrowColumn column) noexcept:
    if column.array.null_count == 0 or column.array.n_buffers == 0:
        return NULL
    return <const uint8_t*>column.array.buffers[0]


cdef int refuse_type(const ArrowSchema* schema, str what, str wanted) except -1:
    kind = "dictionary" if schema.dictionary != NULL else f"format {format_of(schema)!r}"
    raise TypeError(f"{what} must be Arrow {wanted}, not {kind}"
                    + (": decode it first" if schema.dictionary != NULL else ""))


cdef int check_bytes_type(const ArrowSchema* schema, str what) except -1:
    cdef str format = format_of(schema)
    if schema.dictionary != NULL or not (format in LAYOUTS or format.startswith("w:")):
        refuse_type(schema, what, "binary or string")
    return 0


cdef Column bytes_column(ArrowColumn source, str what):
    """Return a binary or string column, its offsets checked."""
    cdef Column column = Column.__new__(Column)
    cdef str format = format_of(source.schema)
    cdef int64_t buffer_count = source.array.n_buffers
    check_bytes_type(source.schema, what)
    column.count = source.count
    column.owner = source.chunk
    column.raw.start = source.array.offset + source.first
    column.raw.validity = validity_of(source)
    if format.startswith("w:"):
        column.raw.layout = KF_COLUMN_STRIDED
        column.raw.width = column.raw.stride = int(format[2:])
        column.raw.data = <const uint8_t*>source.array.buffers[1]
    else:
        column.raw.layout = LAYOUTS[format]
    if column.raw.layout == KF_COLUMN_VIEWS:
        # validity, views, blobs ..., sizes of the blobs
        column.raw.data = <const uint8_t*>source.array.buffers[1]
        column.raw.blobs = <const void* const*>&source.array.buffers[2]
        column.raw.blob_count = buffer_count - 3
        column.raw.blob_sizes = <const int64_t*>source.array.buffers[buffer_count - 1]
    elif column.raw.layout in (KF_COLUMN_OFFSETS32, KF_COLUMN_OFFSETS64):
        column.raw.offsets = source.array.buffers[1]
        column.raw.data = <const uint8_t*>source.array.buffers[2]
    if column.raw.data == NULL:  # no bytes at all; NULL means null to a record
        column.raw.data = <const uint8_t*>b""
    check_column(column, -1, what, source.first_row)
    return column


cdef int check_number_type(const ArrowSchema* schema, str what) except -1:
    cdef str format = format_of(schema)
    if schema.dictionary != NULL or not (format in WIDTHS or format == "n"
                                         or format.startswith("ts")):
        refuse_type(schema, what, "integers or timestamps")
    return 0


cdef int64_t integer_at(const void* items, int64_t i, int width) noexcept nogil:
    if width == 8:
        return (<const int64_t*>items)[i]
    if width == 4:
        return (<const int32_t*>items)[i]
    if width == 2:
        return (<const int16_t*>items)[i]
    return (<const int8_t*>items)[i]


cdef int fill_numbers(Numbers numbers, int64_t start, ArrowColumn source, str topic,
                      str what) except -1:
    """Copy a column's integers, or its timestamps in ms, to numbers[start:]; nulls become -1."""
    cdef str format
    cdef int64_t i, place, number
    cdef int64_t unit = 1
    cdef int width
    cdef bint is_typed
    cdef const uint8_t* validity = validity_of(source)
    check_number_type(source.schema, f"{what} for topic {topic!r}")
    format = format_of(source.schema)
    is_typed = format.startswith("ts")
    if is_typed:
        unit = UNITS[format[2]]
    width = WIDTHS.get(format, 8)
    for i in range(source.count):
        place = source.array.offset + source.first + i
        if format == "n" or (validity != NULL and not kf_bit(validity, place)):
            numbers.items[start + i] = -1
            continue
        number = integer_at(source.array.buffers[1], place, width)
        if number < 0:
            raise UsageError(f"{what} of row {source.first_row + i} for topic {topic!r} must be at "
                             f"least 0, not {number}")
        if unit < 0 and number > INT64_MAX // -unit:
            raise UsageError(f"{what} of row {source.first_row + i} for topic {topic!r} must be "
                             f"Unix ms in int64, not {number} s")
        numbers.items[start + i] = number // unit if unit > 0 else number * -unit
        if not is_typed:
            note_odd(numbers, number)
    return 0


cdef int check_header_type(const ArrowSchema* schema, str what) except -1:
    cdef str format = format_of(schema)
    cdef const ArrowSchema* pair
    if schema.dictionary != NULL or format not in ("+l", "+L", "+m", "n"):
        refuse_type(schema, what, "list<struct<key: string, value: binary>> or a map")
    if format == "n":
        return 0
    pair = schema.children[0]
    if format_of(pair) != "+s" or pair.n_children != 2:
        refuse_type(pair, what, "list<struct<key: string, value: binary>> or a map")
    check_bytes_type(pair.children[0], f"a key of {what}")
    check_bytes_type(pair.children[1], f"a value of {what}")
    return 0


cdef HeaderColumn header_column(ArrowColumn source, str what):
    """Return headers: a list of (key, value) pairs, or a map, for each row."""
    cdef HeaderColumn column = HeaderColumn.__new__(HeaderColumn)
    cdef Column lists = Column.__new__(Column)
    cdef ArrowColumn pairs = ArrowColumn.__new__(ArrowColumn)
    cdef Column keys, values
    cdef str format = format_of(source.schema)
    check_header_type(source.schema, what)
    column.count = source.count
    if format == "n":
        column.encoded = [None] * source.count
        return column
    lists.count = source.count
    lists.raw.layout = KF_COLUMN_OFFSETS64 if format == "+L" else KF_COLUMN_OFFSETS32
    lists.raw.start = source.array.offset + source.first
    lists.raw.validity = validity_of(source)
    lists.raw.offsets = source.array.buffers[1]
    pairs.chunk = source.chunk
    pairs.schema = source.schema.children[0]
    pairs.array = source.array.children[0]
    pairs.count = pairs.array.length
    check_column(lists, pairs.count, what, source.first_row)
    keys = bytes_column(child_column(pairs, 0), f"a key of {what}")
    values = bytes_column(child_column(pairs, 1), f"a value of {what}")
    column.raw.lists = lists.raw
    column.raw.keys = keys.raw
    column.raw.values = values.raw
    column.owner = (lists, keys, values)
    check_header_keys(&column.raw, source, validity_of(pairs), pairs.array.offset, what)
    return column


cdef int check_header_keys(const kf_header_column* headers, ArrowColumn source,
                           const uint8_t* pairs, int64_t pairs_start, str what) except -1:
    """Raise UsageError for a pair or a key that is null."""
    cdef int64_t row, i, first, pair_count, size
    if pairs == NULL and headers.keys.validity == NULL \
            and headers.keys.layout != KF_COLUMN_NULLS:
        return 0
    for row in range(source.count):
        first = kf_headers_get(headers, row, &pair_count)
        for i in range(first, first + pair_count):
            kf_column_get(&headers.keys, i, &size)
            if size < 0 or (pairs != NULL and not kf_bit(pairs, pairs_start + i)):
                raise UsageError(f"{what}: a key in row {source.first_row + row} is null")
    return 0


# ---- the columns of send_many ----

cdef list chunks_of(object data):
    """Return all arrays of an object as columns."""
    cdef ArrowSource source = open_source(data)
    cdef ArrowChunk chunk = source.next_chunk()
    cdef list columns = []
    cdef int64_t first_row = 0
    while chunk is not None:
        columns.append(whole_column(chunk, first_row))
        first_row += chunk.array.length
        chunk = source.next_chunk()
    return columns


def arrow_columns(data, str what):
    """Return the Columns of a binary or string array, or of a stream of these."""
    return [bytes_column(column, what) for column in chunks_of(data)]


def arrow_numbers(data, str topic, str what):
    """Return the Numbers of an array of integers or timestamps, or of a stream of these."""
    cdef list columns = chunks_of(data)
    cdef ArrowColumn column
    cdef int64_t start = 0
    cdef int64_t total = 0
    for column in columns:
        total += column.count
    cdef Numbers numbers = new_numbers(total)
    for column in columns:
        fill_numbers(numbers, start, column, topic, what)
        start += column.count
    return numbers


def arrow_headers(data, str topic):
    """Return the HeaderColumn of an array of lists of pairs, or of a stream of these."""
    cdef list columns = chunks_of(data)
    cdef HeaderColumn headers
    cdef str what = f"headers for topic {topic!r}"
    cdef int64_t row
    if len(columns) == 1:
        return header_column(columns[0], what)
    cdef HeaderColumn all_headers = HeaderColumn.__new__(HeaderColumn)
    all_headers.encoded = []
    for column in columns:
        headers = header_column(column, what)
        for row in range(headers.count):
            all_headers.encoded.append(encoded_headers(headers, row))
    all_headers.count = len(all_headers.encoded)
    return all_headers


cdef bytes encoded_headers(HeaderColumn headers, int64_t row):
    """Return one row's headers as they stand in a record; None if it has none."""
    cdef bytes encoded
    if headers.encoded is not None:
        return headers.encoded[row]
    encoded = PyBytes_FromStringAndSize(NULL, kf_headers_size(&headers.raw, row))
    kf_put_headers(<uint8_t*>PyBytes_AS_STRING(encoded), &headers.raw, row)
    return encoded
