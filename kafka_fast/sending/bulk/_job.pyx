"""A bulk job: rows of one topic on their way into batches.

Rows go in chunks of about 16 KiB. A chunk is filled with pointers to keys and values, then encoded
under one lock. Where chunks go:

    no keys            to the sticky partition; to another one after the end of a batch
    one partition      there
    keys, partitions   windows of 8,192 rows, sorted by partition first (a counting sort, so the
                       order within a partition stays), then run after run

Columns in buffers (Arrow, numpy, offsets and data) are read without the GIL from the first row to
the last; lists are read with it.

Thread: any caller's.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from kafka_fast.dataplane.core.state cimport *
from kafka_fast.dataplane.produce._queues cimport Queues, TopicQueues
from kafka_fast.sending._fields cimport borrow, borrowed, give_back
from kafka_fast.sending._partitioner cimport choose_partition, draw_partition, partitioner
from kafka_fast.sending.bulk._batch_future cimport BatchFuture, add_run, last_batch, reserve_slice
from kafka_fast.sending.bulk._column cimport (
    Column,
    kf_column,
    kf_column_get,
    kf_headers_size,
    kf_put_headers,
)
from kafka_fast.sending.bulk._rows cimport Rows

from kafka_fast.errors import UsageError

cdef extern from "Python.h":
    PyObject** PySequence_Fast_ITEMS(object sequence)
    bint is_plain_bytes "PyBytes_CheckExact"(PyObject* item)
    bint is_str "PyUnicode_Check"(PyObject* item)
    char* bytes_of "PyBytes_AS_STRING"(PyObject* item)
    Py_ssize_t size_of "PyBytes_GET_SIZE"(PyObject* item)
    const char* utf8_of "PyUnicode_AsUTF8AndSize"(PyObject* text, Py_ssize_t* size) except NULL

cdef enum:
    RECORD_FRAME = 10       # bytes of a record beside key and value, about: for the partitioner
    NO_BUDGET = 0x7fffffff  # bytes: no limit but the records

cdef PyObject* NONE = <PyObject*>None


# ---- where the next chunk goes ----

cdef inline int64_t row_at(const bulk_job* job, int64_t pos) noexcept nogil:
    """Return the row at a position, counted from the first row of these columns."""
    return (pos if job.rows == NULL else <int64_t>job.rows[pos]) - job.first_row


cdef void sort_window(bulk_job* job, int64_t end) noexcept nogil:
    """Sort rows[pos:end] by `chosen`, keeping the order within a partition."""
    cdef int32_t partition
    cdef int64_t i
    cdef int64_t at = job.pos
    cdef int64_t size
    memset(job.run_ends, 0, job.cursor.partition_count * sizeof(int64_t))
    for i in range(end - job.pos):
        job.run_ends[job.chosen[i]] += 1
        job.unsorted[i] = job.rows[job.pos + i]
    for partition in range(job.cursor.partition_count):
        size = job.run_ends[partition]
        job.run_ends[partition] = at  # where its run begins; each row moves it on
        at += size
    for i in range(end - job.pos):
        partition = job.chosen[i]
        job.rows[job.run_ends[partition]] = job.unsorted[i]
        job.run_ends[partition] += 1
    job.window_end = end
    job.partition = 0


cdef void choose_filled(bulk_job* job, int64_t pos, int32_t count) noexcept nogil:
    """Choose the partitions of the rows at `count` positions, whose records are filled."""
    cdef int32_t i
    cdef int64_t row
    cdef kf_record* record
    for i in range(count):
        record = &job.records[i]
        row = row_at(job, pos + i)
        if not job.has_key:
            record.key = NULL
        if job.partitions != NULL and job.partitions[row] >= 0:
            job.chosen[pos - job.pos + i] = <int32_t>job.partitions[row]
        else:
            job.chosen[pos - job.pos + i] = choose_partition(job.how, job.producer, &job.cursor,
                                                             record)


cdef int64_t plan(bulk_job* job) noexcept nogil:
    """Set the queue of the next chunk; return where its run ends."""
    cdef kf_record nothing
    cdef int64_t end = job.end
    job.leave = 0
    if job.scatter:
        while job.run_ends[job.partition] <= job.pos:
            job.partition += 1
        end = job.run_ends[job.partition]
        job.queue = job.cursor.queues[job.partition]
    elif job.partition >= 0:
        job.queue = job.cursor.queues[job.partition]
    else:
        nothing.key = NULL
        nothing.value_len = 0
        job.queue = job.cursor.queues[
            choose_partition(job.how, job.producer, &job.cursor, &nothing)]
        if job.cursor.sticky_left <= CHUNK_BYTES:
            job.leave = KF_LEAVE_FULL
    return min(end, job.pos + CHUNK_RECORDS)


# ---- filling a chunk ----

cdef inline void put_side(kf_record* record, bint is_key, const uint8_t* data,
                          int64_t size) noexcept nogil:
    if is_key:
        record.key = data
        record.key_len = size
    else:
        record.value = data
        record.value_len = size


cdef int32_t fill_raw(const kf_column* column, bulk_job* job, int64_t pos, int32_t count,
                      bint is_key, int64_t budget) noexcept nogil:
    """Point `count` records to their keys or values, or as many as `budget` bytes allow."""
    cdef int32_t i
    cdef int64_t size = 0
    cdef const uint8_t* data
    for i in range(count):
        data = kf_column_get(column, row_at(job, pos + i), &size)
        put_side(&job.records[i], is_key, data, size)
        budget -= size + RECORD_FRAME
        if budget <= 0:
            return i + 1
    return count


cdef int32_t fill_objects(Column column, bulk_job* job, int64_t pos, int32_t count, bint is_key,
                          int64_t budget) except -1:
    """The same for Python objects; stops before one that is neither bytes, str nor None.

    The pointers hold as long as the GIL does: nothing here runs Python code.
    """
    cdef PyObject** items = PySequence_Fast_ITEMS(column.items)
    cdef PyObject* item
    cdef int32_t i
    cdef Py_ssize_t size
    cdef const uint8_t* data
    for i in range(count):
        item = items[column.first + row_at(job, pos + i)]
        if is_plain_bytes(item):
            data = <const uint8_t*>bytes_of(item)
            size = size_of(item)
        elif item == NONE:
            data = NULL
            size = -1
        elif is_str(item):
            data = <const uint8_t*>utf8_of(item, &size)
        else:
            return i
        put_side(&job.records[i], is_key, data, size)
        budget -= size + RECORD_FRAME
        if budget <= 0:
            return i + 1
    return count


cdef bint fill_headers(bulk_job* job) noexcept nogil:
    """Encode the chunk's headers into the scratch buffer; False if there is no memory."""
    cdef int32_t i
    cdef size_t size = 0
    cdef uint8_t* at
    cdef void* grown
    for i in range(job.count):
        size += kf_headers_size(job.headers, row_at(job, job.pos + i))
    if size > job.scratch_size:
        grown = realloc(job.scratch, size)
        if grown == NULL:
            return False
        job.scratch = <uint8_t*>grown
        job.scratch_size = size
    at = job.scratch
    for i in range(job.count):
        job.records[i].headers = at
        at = kf_put_headers(at, job.headers, row_at(job, job.pos + i))
        job.records[i].headers_size = at - job.records[i].headers
    return True


cdef void fill_rest(bulk_job* job) noexcept nogil:
    """Set what all records share, the timestamps, and what the partitioner has to count."""
    cdef int32_t i
    cdef int64_t time
    cdef kf_record* record
    for i in range(job.count):
        record = &job.records[i]
        job.timestamps[i] = job.now
        if job.headers == NULL:
            record.headers = job.header
            record.headers_size = job.header_size
        if not job.has_key:
            record.key = NULL
            record.key_len = -1
        if not job.scatter and job.partition < 0:
            job.cursor.sticky_left -= max(0, record.value_len) + RECORD_FRAME
    if job.times != NULL:
        for i in range(job.count):
            time = job.times[row_at(job, job.pos + i)]
            if time >= 0:
                job.timestamps[i] = time


# ---- appending ----

cdef bint is_time_up(const bulk_job* job) noexcept nogil:
    return job.until != 0.0 and job.producer.env.now(job.producer.env.context) >= job.until


cdef int append_chunk(bulk_job* job) noexcept nogil:
    """Append what is left of the chunk; returns KF_APPEND_OK if that was all."""
    cdef kf_batch* last
    cdef kf_batch* batch
    cdef int32_t index = 0
    cdef int32_t done = 0
    cdef int result
    while job.next < job.count:
        if not reserve_slice(job.slices):
            return JOB_NO_MEMORY
        last = batch = last_batch(job.slices)
        result = kf_queue_append_run(job.queue, &job.records[job.next],
                                     &job.timestamps[job.next], job.count - job.next, job.leave,
                                     &batch, &index, &done)
        if result == KF_APPEND_NEXT:
            job.queue = job.cursor.queues[draw_partition(job.how, job.producer, &job.cursor)]
            job.leave = 0
            continue
        if result != KF_APPEND_OK:
            return result
        add_run(job.slices, last, batch, index, done, job.pos)
        job.pos += done
        job.next += done
    return KF_APPEND_OK


cdef void choose_raw(bulk_job* job, int64_t end) noexcept nogil:
    """Choose the partitions of the rows at positions pos to end, from their raw keys."""
    cdef int32_t count
    cdef int64_t pos = job.pos
    while pos < end:
        count = <int32_t>min(CHUNK_RECORDS, end - pos)
        if job.has_key:
            fill_raw(&job.key, job, pos, count, True, NO_BUDGET)
        fill_raw(&job.value, job, pos, count, False, NO_BUDGET)
        choose_filled(job, pos, count)
        pos += count


cdef int append_raw(bulk_job* job) noexcept nogil:
    """Append rows until all are done or one cannot be appended now."""
    cdef int64_t end
    cdef int result
    while True:
        result = append_chunk(job)
        if result != KF_APPEND_OK:
            return result
        if job.pos == job.end:
            return JOB_DONE
        if is_time_up(job):
            return JOB_YIELDS
        if job.scatter and job.pos == job.window_end:
            end = min(job.end, job.pos + WINDOW_ROWS)
            choose_raw(job, end)
            sort_window(job, end)
        end = plan(job)
        job.next = 0
        job.count = fill_raw(&job.value, job, job.pos, <int32_t>(end - job.pos), False,
                             CHUNK_BYTES)
        if job.has_key:
            job.count = fill_raw(&job.key, job, job.pos, job.count, True, CHUNK_BYTES)
        if job.headers != NULL and not fill_headers(job):
            job.count = 0
            return JOB_NO_MEMORY
        fill_rest(job)


# ---- the same with Python objects ----

cdef int32_t fill(Column column, bulk_job* job, int64_t pos, int32_t count, bint is_key,
                  int64_t budget) except -1:
    """Point records to a column's items; 0 if the first needs to be borrowed alone."""
    if column.items is None:
        return fill_raw(&column.raw, job, pos, count, is_key, budget)
    if len(column.items) < column.first + column.count:
        raise UsageError("a list was made shorter while it was being sent")
    return fill_objects(column, job, pos, count, is_key, budget)


cdef int choose_objects(bulk_job* job, Rows rows, int64_t end) except -1:
    """Choose partitions like `choose_raw`, from objects."""
    cdef int32_t count
    cdef int64_t row
    cdef int64_t pos = job.pos
    cdef borrowed key, value
    while pos < end:
        count = fill(rows.values, job, pos, <int32_t>min(CHUNK_RECORDS, end - pos), False,
                     NO_BUDGET)
        if rows.keys is not None and count > 0:
            count = fill(rows.keys, job, pos, count, True, NO_BUDGET)
        if count > 0:
            choose_filled(job, pos, count)
        else:
            row = row_at(job, pos)
            value_item = rows.values.item(row)
            key_item = None if rows.keys is None else rows.keys.item(row)
            borrow_row(job, rows, key_item, value_item, &key, &value)
            choose_filled(job, pos, 1)
            give_back(&key)
            give_back(&value)
            count = 1
        pos += count
    return 0


cdef int borrow_row(bulk_job* job, Rows rows, object key_item, object value_item,
                    borrowed* key, borrowed* value) except -1:
    """Point the first record to one row's bytes; both must be given back."""
    key.has_view = False
    borrow(value, value_item, rows.topic, "a value")
    job.records[0].value = value.data
    job.records[0].value_len = value.len
    if job.has_key:
        try:
            borrow(key, key_item, rows.topic, "a key")
        except BaseException:
            give_back(value)
            raise
        job.records[0].key = key.data
        job.records[0].key_len = key.len
    return 0


cdef int append_borrowed(bulk_job* job, Rows rows) except -1:
    """Append one row whose bytes must be borrowed from their objects meanwhile."""
    cdef borrowed key, value
    cdef int result
    cdef int64_t row = row_at(job, job.pos)
    value_item = rows.values.item(row)
    key_item = None if rows.keys is None else rows.keys.item(row)
    borrow_row(job, rows, key_item, value_item, &key, &value)
    try:
        job.count = 1
        fill_rest(job)
        fill_encoded_headers(job, rows)
        result = append_chunk(job)
    finally:
        give_back(&key)
        give_back(&value)
    return result


cdef int fill_encoded_headers(bulk_job* job, Rows rows) except -1:
    """Point the chunk's records to headers that lie in a list."""
    cdef int32_t i
    cdef bytes encoded
    if job.headers != NULL and not fill_headers(job):
        raise MemoryError
    if rows.headers.encoded is None:
        return 0
    for i in range(job.count):
        encoded = rows.headers.encoded[row_at(job, job.pos + i)]
        if encoded is not None:
            job.records[i].headers = <const uint8_t*>PyBytes_AS_STRING(encoded)
            job.records[i].headers_size = PyBytes_GET_SIZE(encoded)
    return 0


cdef int append_objects(bulk_job* job, Rows rows) except -1:
    """Append rows like `append_raw`, with the GIL.

    A chunk never outlives this call: another thread may change the list once the GIL is released.
    """
    cdef int64_t end
    cdef int result
    while job.pos < job.end:
        if is_time_up(job):
            return JOB_YIELDS
        if job.scatter and job.pos == job.window_end:
            end = min(job.end, job.pos + WINDOW_ROWS)
            choose_objects(job, rows, end)
            sort_window(job, end)
        end = plan(job)
        job.next = 0
        job.count = fill(rows.values, job, job.pos, <int32_t>(end - job.pos), False,
                         CHUNK_BYTES)
        if rows.keys is not None and job.count > 0:
            job.count = fill(rows.keys, job, job.pos, job.count, True, CHUNK_BYTES)
        if job.count > 0:
            fill_rest(job)
            fill_encoded_headers(job, rows)
            result = append_chunk(job)
        else:
            result = append_borrowed(job, rows)
        if result != KF_APPEND_OK:
            return result
    return JOB_DONE


# ---- making and freeing a job ----

cdef void copy_cursor(kf_topic* topic, kf_topic* cursor) noexcept:
    """Copy the callers' fields; the data plane may be writing its own."""
    cursor.queues = topic.queues
    cursor.partition_count = topic.partition_count
    cursor.sticky = topic.sticky
    cursor.sticky_left = topic.sticky_left
    cursor.random = topic.random
    kf_set_long(&cursor.batch_limit, kf_get_long(&topic.batch_limit))


cdef bulk_job* new_job(Queues queues, const partitioner* how, TopicQueues topic, Rows rows,
                       BatchFuture future) except NULL:
    cdef bulk_job* job = <bulk_job*>calloc(1, sizeof(bulk_job))
    if job == NULL:
        raise MemoryError
    job.producer = queues.producer
    copy_cursor(topic.topic, &job.cursor)
    job.how = how
    job.slices = &future.slices
    job.value = rows.values.raw
    job.raw = rows.values.items is None and rows.headers.encoded is None
    if rows.keys is not None:
        job.has_key = True
        job.key = rows.keys.raw
        job.raw = job.raw and rows.keys.items is None
    if rows.headers.scalar is not None:
        job.header = <const uint8_t*>PyBytes_AS_STRING(rows.headers.scalar)
        job.header_size = PyBytes_GET_SIZE(rows.headers.scalar)
    if rows.headers.owner is not None:
        job.headers = &rows.headers.raw
    if rows.partitions.count >= 0:
        job.partitions = &rows.partitions.items[rows.partition_start]
    if rows.timestamps.count >= 0:
        job.times = &rows.timestamps.items[rows.timestamp_start]
    job.now = future.timestamp_ms
    if rows.timestamps.count < 0 and rows.timestamps.scalar >= 0:
        job.now = future.timestamp_ms = rows.timestamps.scalar
    job.first_row = rows.first
    return job


cdef int scatter(bulk_job* job) except -1:
    job.scatter = True
    job.run_ends = <int64_t*>calloc(job.cursor.partition_count, sizeof(int64_t))
    job.chosen = <int32_t*>malloc(WINDOW_ROWS * sizeof(int32_t))
    job.unsorted = <uint32_t*>malloc(WINDOW_ROWS * sizeof(uint32_t))
    if job.run_ends == NULL or job.chosen == NULL or job.unsorted == NULL:
        raise MemoryError
    return 0


cdef void free_job(bulk_job* job) noexcept:
    free(job.run_ends)
    free(job.chosen)
    free(job.unsorted)
    free(job.scratch)
    free(job)
