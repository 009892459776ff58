"""The columns of a table of records: Arrow schemas and arrays, filled from spans.

This code uses no Python object. `_arrow_export` describes the layouts.
"""

from libc.stdint cimport INT32_MAX, int8_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

from kafka_fast.record._arrow_structs cimport *

cdef kf_table_column[8] KAFKA = [
    TOPIC, PARTITION, OFFSET, TIMESTAMP, TIMESTAMP_TYPE, KEY, VALUE, HEADERS,
]
cdef kf_table_column[8] SPARK = [
    KEY, VALUE, TOPIC, PARTITION, OFFSET, TIMESTAMP, TIMESTAMP_TYPE, HEADERS,
]


cdef const kf_table_column* layout_columns(bint is_spark) noexcept nogil:
    if is_spark:
        return SPARK
    return KAFKA


# ---- schemas ----

cdef bint headers_schema(ArrowSchema* schema, bint is_spark) noexcept nogil:
    cdef ArrowSchema* pair
    if not kf_schema_open(schema, b"+l", b"headers", is_spark, 1):
        return False
    pair = schema.children[0]
    return (
        kf_schema_open(pair, b"+s", b"element" if is_spark else b"item", is_spark, 2)
        and kf_schema_open(pair.children[0], b"u", b"key", is_spark, 0)
        and kf_schema_open(pair.children[1], b"z", b"value", True, 0)
    )


cdef bint topic_schema(ArrowSchema* schema, bint is_spark) noexcept nogil:
    cdef ArrowSchema* values
    if is_spark:
        return kf_schema_open(schema, b"u", b"topic", True, 0)
    if not kf_schema_open(schema, b"i", b"topic", False, 0):
        return False
    values = kf_schema_dictionary(schema)
    return values != NULL and kf_schema_open(values, b"u", b"", False, 0)


cdef const char* bytes_format(const kf_table_type* type) noexcept nogil:
    """Return the format of keys and values."""
    if type.text:
        return b"vu" if type.views else b"u"
    return b"vz" if type.views else b"z"


cdef bint column_schema(
    ArrowSchema* schema, kf_table_column column, const kf_table_type* type
) noexcept nogil:
    cdef bint is_spark = type.is_spark
    cdef const char* part = bytes_format(type)
    if column == TOPIC:
        return topic_schema(schema, is_spark)
    if column == PARTITION:
        return kf_schema_open(schema, b"i", b"partition", is_spark, 0)
    if column == OFFSET:
        return kf_schema_open(schema, b"l", b"offset", is_spark, 0)
    if column == TIMESTAMP:
        return kf_schema_open(schema, b"tsu:UTC" if is_spark else b"tsm:UTC", b"timestamp",
                              is_spark, 0)
    if column == TIMESTAMP_TYPE:
        return kf_schema_open(schema, b"i" if is_spark else b"c",
                              b"timestampType" if is_spark else b"timestamp_type", is_spark, 0)
    if column == KEY:
        return kf_schema_open(schema, part, b"key", True, 0)
    if column == VALUE:
        return kf_schema_open(schema, part, b"value", True, 0)
    return headers_schema(schema, is_spark)


# ---- arrays: each function opens and fills an array; False: no memory, or too large ----

cdef bint fits(kf_table* chunk, int64_t size) noexcept nogil:
    if size > INT32_MAX:
        chunk.too_large = True
        return False
    return True


cdef bint fixed_array(kf_table* chunk, kf_table_column column, ArrowArray* array) noexcept nogil:
    """Fill a column of integers or timestamps."""
    cdef int64_t i, row
    cdef int64_t first = 0
    cdef int64_t width = 8 if column in (OFFSET, TIMESTAMP) else 4
    cdef kf_run* run
    cdef int32_t number
    cdef bint is_bytes = column == TIMESTAMP_TYPE and not chunk.type.is_spark
    if not kf_array_open(array, chunk.rows, 2, 0):
        return False
    cdef void* data = kf_array_buffer(array, 1, <size_t>(chunk.rows * width))
    if data == NULL:
        return False
    for i in range(chunk.run_count):
        run = &chunk.runs[i]
        if column == OFFSET:
            kf_span_offsets(run.spans, run.count, <int64_t*>data + first)
        elif column == TIMESTAMP and chunk.type.is_spark:
            kf_span_microseconds(run.spans, run.count, <int64_t*>data + first)
        elif column == TIMESTAMP:
            kf_span_timestamps(run.spans, run.count, <int64_t*>data + first)
        elif is_bytes:
            memset(<int8_t*>data + first, run.timestamp_type, <size_t>run.count)
        else:
            number = (run.partition if column == PARTITION
                      else run.topic if column == TOPIC else run.timestamp_type)
            for row in range(first, first + run.count):
                (<int32_t*>data)[row] = number
        first += run.count
    return True


cdef bint names_array(kf_table* chunk, ArrowArray* array, bint for_rows) noexcept nogil:
    """Fill a column of topic names: one for each row, or the dictionary."""
    cdef int64_t i, repeat
    cdef int64_t size = 0
    cdef int64_t length = chunk.rows if for_rows else chunk.name_count
    cdef int64_t steps = chunk.run_count if for_rows else chunk.name_count
    cdef int32_t end = 0
    cdef int32_t name
    for i in range(steps):
        size += (chunk.runs[i].count * chunk.name_lens[chunk.runs[i].topic] if for_rows
                 else chunk.name_lens[i])
    if not fits(chunk, size) or not kf_array_open(array, length, 3, 0):
        return False
    cdef int32_t* offsets = <int32_t*>kf_array_buffer(array, 1, <size_t>(length + 1) * 4)
    cdef uint8_t* data = <uint8_t*>kf_array_buffer(array, 2, <size_t>size)
    if offsets == NULL or data == NULL:
        return False
    offsets[0] = 0
    length = 0
    for i in range(steps):
        name = chunk.runs[i].topic if for_rows else <int32_t>i
        repeat = chunk.runs[i].count if for_rows else 1
        for _ in range(repeat):
            memcpy(data + end, chunk.names[name], <size_t>chunk.name_lens[name])
            end += chunk.name_lens[name]
            length += 1
            offsets[length] = end
    return True


cdef bint topic_array(kf_table* chunk, ArrowArray* array) noexcept nogil:
    if chunk.type.is_spark:
        return names_array(chunk, array, True)
    if not fixed_array(chunk, TOPIC, array):
        return False
    cdef ArrowArray* dictionary = kf_array_dictionary(array)
    return dictionary != NULL and names_array(chunk, dictionary, False)


cdef uint8_t* new_bitmap(ArrowArray* array, int64_t length) noexcept nogil:
    """Return the array's validity bitmap, zeroed; NULL: no memory."""
    cdef size_t size = <size_t>(length + 7) // 8
    cdef uint8_t* bits = <uint8_t*>kf_array_buffer(array, 0, size)
    if bits != NULL:
        memset(bits, 0, size)
    return bits


cdef bint bytes_array(kf_table* chunk, kf_part part, ArrowArray* array) noexcept nogil:
    """Fill the column of keys or of values."""
    cdef kf_span_sizes* sizes = &chunk.sizes
    cdef int64_t size = sizes.key_bytes if part == KF_PART_KEY else sizes.value_bytes
    cdef int64_t nulls = sizes.null_keys if part == KF_PART_KEY else sizes.null_values
    cdef int64_t i
    cdef int64_t first = 0
    cdef uint8_t* bits
    cdef kf_run* run
    if chunk.type.views:
        if not (empty_views_array(chunk, array) if size == 0 else views_array(chunk, part, array)):
            return False
    elif not fits(chunk, size) or not copies_array(chunk, part, size, array):
        return False
    array.null_count = nulls
    if nulls == 0:
        return True
    bits = new_bitmap(array, chunk.rows)
    if bits == NULL:
        return False
    if nulls == chunk.rows:
        return True
    for i in range(chunk.run_count):
        run = &chunk.runs[i]
        kf_part_validity(run.spans, run.count, part, bits, first)
        first += run.count
    return True


cdef bint copies_array(
    kf_table* chunk, kf_part part, int64_t size, ArrowArray* array
) noexcept nogil:
    cdef int64_t i
    cdef int64_t first = 0
    cdef kf_run* run
    if not kf_array_open(array, chunk.rows, 3, 0):
        return False
    cdef int32_t* offsets = <int32_t*>kf_array_buffer(array, 1, <size_t>(chunk.rows + 1) * 4)
    cdef uint8_t* data = <uint8_t*>kf_array_buffer(array, 2, <size_t>size)
    if offsets == NULL or data == NULL:
        return False
    if size == 0:  # as keys often are
        memset(offsets, 0, <size_t>(chunk.rows + 1) * 4)
        return True
    offsets[0] = 0
    for i in range(chunk.run_count):
        run = &chunk.runs[i]
        kf_part_copy(run.spans, run.count, run.base, part, offsets + first, data)
        first += run.count
    return True


cdef bint empty_views_array(kf_table* chunk, ArrowArray* array) noexcept nogil:
    """Fill views of empty items, as keys often are; such views refer to no buffer."""
    cdef size_t size = <size_t>(chunk.rows * KF_SPAN_VIEW_SIZE)
    if not kf_array_open(array, chunk.rows, 3, 0):
        return False
    cdef uint8_t* views = <uint8_t*>kf_array_buffer(array, 1, size)
    if views == NULL or kf_array_buffer(array, 2, 0) == NULL:
        return False
    memset(views, 0, size)
    return True


cdef bint views_array(kf_table* chunk, kf_part part, ArrowArray* array) noexcept nogil:
    """Fill views into the runs' own bytes: validity, views, one buffer for each blob, sizes."""
    cdef int64_t i
    cdef int64_t first = 0
    cdef int64_t blob = -1
    cdef int64_t blob_count = 0
    cdef kf_run* run
    for i in range(chunk.run_count):
        blob_count += begins_blob(chunk, i)
    if not kf_array_open(array, chunk.rows, blob_count + 3, 0):
        return False
    cdef uint8_t* views = <uint8_t*>kf_array_buffer(
        array, 1, <size_t>(chunk.rows * KF_SPAN_VIEW_SIZE)
    )
    cdef int64_t* sizes = <int64_t*>kf_array_buffer(array, blob_count + 2, <size_t>blob_count * 8)
    if views == NULL or sizes == NULL:
        return False
    for i in range(chunk.run_count):
        run = &chunk.runs[i]
        if begins_blob(chunk, i):
            blob += 1
            kf_array_lend(array, 2 + blob, run.blob)
            sizes[blob] = <int64_t>run.blob_size
        kf_part_views(run.spans, run.count, run.base, part, <int32_t>blob,
                      <int32_t>(run.base - run.blob), views + first * KF_SPAN_VIEW_SIZE)
        first += run.count
    return True


cdef bint begins_blob(kf_table* chunk, int64_t i) noexcept nogil:
    """Whether a run points into another buffer than the one before it."""
    return i == 0 or chunk.runs[i].blob != chunk.runs[i - 1].blob


cdef bint headers_array(kf_table* chunk, ArrowArray* array) noexcept nogil:
    """Fill the lists of headers, their pairs, and the pairs' names and values."""
    cdef int64_t i, row
    cdef int64_t first = 0
    cdef int64_t nulls = 0
    cdef kf_span_sizes* sizes = &chunk.sizes
    cdef int64_t count = sizes.headers
    cdef kf_header_columns out
    cdef kf_run* run
    cdef uint8_t* bits
    cdef ArrowArray* pairs
    memset(&out, 0, sizeof(kf_header_columns))
    if not fits(chunk, max(count, max(sizes.header_key_bytes, sizes.header_value_bytes))):
        return False
    if not kf_array_open(array, chunk.rows, 2, 1):
        return False
    pairs = array.children[0]
    if not (kf_array_open(pairs, count, 1, 2)
            and kf_array_open(pairs.children[0], count, 3, 0)
            and kf_array_open(pairs.children[1], count, 3, 0)):
        return False
    out.lists = <int32_t*>kf_array_buffer(array, 1, <size_t>(chunk.rows + 1) * 4)
    out.key_offsets = <int32_t*>kf_array_buffer(pairs.children[0], 1, <size_t>(count + 1) * 4)
    out.keys = <uint8_t*>kf_array_buffer(pairs.children[0], 2, <size_t>sizes.header_key_bytes)
    out.value_offsets = <int32_t*>kf_array_buffer(pairs.children[1], 1, <size_t>(count + 1) * 4)
    out.values = <uint8_t*>kf_array_buffer(pairs.children[1], 2, <size_t>sizes.header_value_bytes)
    if (out.lists == NULL or out.key_offsets == NULL or out.keys == NULL
            or out.value_offsets == NULL or out.values == NULL):
        return False
    if sizes.null_header_values != 0:
        out.value_bits = new_bitmap(pairs.children[1], count)
        if out.value_bits == NULL:
            return False
    pairs.children[1].null_count = sizes.null_header_values
    out.lists[0] = out.key_offsets[0] = out.value_offsets[0] = 0
    if count == 0:
        memset(out.lists, 0, <size_t>(chunk.rows + 1) * 4)
    else:
        for i in range(chunk.run_count):
            run = &chunk.runs[i]
            kf_headers_copy(run.spans, run.count, run.base, run.size, first, &out)
            first += run.count
    if not chunk.type.is_spark:
        return True
    bits = new_bitmap(array, chunk.rows)
    if bits == NULL:
        return False
    for row in range(chunk.rows):
        if out.lists[row] == out.lists[row + 1]:
            nulls += 1
        else:
            bits[row // 8] |= <uint8_t>(1 << (row % 8))
    array.null_count = nulls
    return True


cdef bint column_array(kf_table* chunk, kf_table_column column, ArrowArray* array) noexcept nogil:
    if column == TOPIC:
        return topic_array(chunk, array)
    if column == KEY:
        return bytes_array(chunk, KF_PART_KEY, array)
    if column == VALUE:
        return bytes_array(chunk, KF_PART_VALUE, array)
    if column == HEADERS:
        return headers_array(chunk, array)
    return fixed_array(chunk, column, array)


# ---- the table ----

cdef bint is_text(kf_table* chunk) noexcept nogil:
    """Return whether the columns of keys and values are UTF-8; if not, `chunk` says where."""
    cdef int64_t i, run
    for i in range(chunk.type.count):
        if chunk.type.columns[i] != KEY and chunk.type.columns[i] != VALUE:
            continue
        chunk.no_text_part = KF_PART_KEY if chunk.type.columns[i] == KEY else KF_PART_VALUE
        for run in range(chunk.run_count):
            chunk.no_text_run = run
            chunk.no_text_row = kf_part_no_text(
                chunk.runs[run].spans, chunk.runs[run].count, chunk.runs[run].base,
                chunk.no_text_part,
            )
            if chunk.no_text_row >= 0:
                chunk.no_text = True
                return False
    return True


cdef bint table_schema(ArrowSchema* out, const kf_table_type* type) noexcept nogil:
    cdef int64_t i
    if not kf_schema_open(out, b"+s", b"", False, type.count):
        return False
    for i in range(type.count):
        if not column_schema(out.children[i], type.columns[i], type):
            kf_schema_release(out)
            return False
    return True


cdef bint table_array(kf_table* chunk, ArrowArray* out) noexcept nogil:
    cdef int64_t i
    cdef kf_run* run
    for i in range(chunk.run_count):
        run = &chunk.runs[i]
        kf_measure(run.spans, run.count, run.base, run.size, &chunk.sizes)
    if chunk.type.text and not is_text(chunk):
        return False
    if not kf_array_open(out, chunk.rows, 1, chunk.type.count):
        return False
    for i in range(chunk.type.count):
        if not column_array(chunk, chunk.type.columns[i], out.children[i]):
            kf_array_release(out)
            return False
    return True


cdef ArrowArray* bytes_child(kf_table* chunk, kf_part part, ArrowArray* table) noexcept nogil:
    cdef int64_t i
    for i in range(chunk.type.count):
        if chunk.type.columns[i] == (KEY if part == KF_PART_KEY else VALUE):
            return table.children[i]
    return NULL
