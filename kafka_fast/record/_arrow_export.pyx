"""Records as an Arrow table, for every library that speaks the C data interface.

    slices ─► ArrowRecords ─► __arrow_c_stream__   one chunk at a time, made on demand
                           └► __arrow_c_array__    everything in one struct array
    slices of the next step, of the one after ... ─► ArrowSteps ─► __arrow_c_stream__

Keys and values are copied. With `views` they are not: an array then pins the fetched bytes until
the receiver releases the array, from any thread. Neither pyarrow nor numpy is needed.

Layouts (only the types are promised; validity bitmaps say which items are null):

    kafka   topic: dictionary<int32, string>, partition: int32, offset: int64,
            timestamp: timestamp[ms, UTC], timestamp_type: int8, key: binary, value: binary,
            headers: list<struct<key: string, value: binary>>
    spark   key: binary, value: binary, topic: string, partition: int32, offset: int64,
            timestamp: timestamp[us, UTC], timestampType: int32,
            and if asked for headers: list<struct<key: string, value: binary>>, null for none

With `text`, keys and values are strings, and must be UTF-8.

A timestamp that is too large for int64 in Spark's microseconds becomes the largest possible one.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.exc cimport PyErr_SetInterrupt
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.errno cimport EIO, ENOMEM
from libc.stdint cimport INT32_MAX, int32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from kafka_fast.record._arrow_columns cimport (
    bytes_child, kf_run, kf_table, layout_columns, table_array, table_schema,
)
from kafka_fast.record._arrow_structs cimport *
from kafka_fast.record._reader cimport BatchBytes
from kafka_fast.record._slices cimport RecordSlice

from collections.abc import Iterable

from kafka_fast._hints import name_type, refuse_new
from kafka_fast.errors import SerializationError, UsageError

cdef extern from "Python.h" nogil:
    bint Py_IsInitialized()

cdef enum:
    CHUNK_ROWS = 16 * 1024           # chunks of this size take their memory from the heap; larger
    CHUNK_BYTES = 512 * 1024        # ones get theirs from the system, with a page fault per page


COLUMNS = {
    "kafka": (
        "topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers",
    ),
    "spark": (
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers",
    ),
}


cdef ArrowRecords arrow_records(
    list slices, object layout, bint views, object headers, object columns, bint text,
    list failures=None
):
    """Return slices as a table.

    Args:
        failures: gets the exceptions of streams; the other arguments are those of
            `ConsumerRecords.arrow`.
    """
    cdef ArrowRecords table = ArrowRecords.__new__(ArrowRecords)
    cdef RecordSlice part
    cdef int64_t i
    if not isinstance(layout, str) or layout not in COLUMNS:
        raise UsageError(f"layout must be 'kafka' or 'spark', not {layout!r}")
    table.slices = slices
    table.failures = failures
    table.topics = {}
    table.names = []
    table.type.is_spark = layout == "spark"
    table.type.views = views
    table.type.text = text
    chosen = chosen_columns(layout, headers, columns)
    table.type.count = len(chosen)
    for i in range(table.type.count):
        table.type.columns[i] = layout_columns(table.type.is_spark)[<Py_ssize_t>chosen[i]]
    for part in slices:
        table.know_topic(part.origin.topic)
    return table


cdef list chosen_columns(str layout, object headers, object columns):
    """Return the places in the layout of the columns that are wanted."""
    known = COLUMNS[layout]
    if columns is None:
        has_headers = layout == "kafka" if headers is None else headers
        return list(range(len(known) if has_headers else len(known) - 1))
    if headers is not None:
        raise UsageError("columns says whether there are headers: leave one of both out")
    if isinstance(columns, str):
        raise UsageError(f"columns must be several names, such as [{columns!r}]")
    if not isinstance(columns, Iterable):
        raise TypeError(f"columns must be several names in a list or the like, not {columns!r}")
    wanted = list(columns)
    unknown = [it for it in wanted if it not in known]
    if unknown:
        raise UsageError(
            f"no column {unknown[0]!r} in layout {layout!r}: there are {', '.join(known)}")
    if len(set(wanted)) < len(wanted) or not wanted:
        raise UsageError(f"columns must name at least one column, and each once: {wanted}")
    return [known.index(it) for it in wanted]


def arrow_steps(next_slices, topics, *, layout="kafka", bint views=False, headers=None,
                columns=None, bint text=False, list failures=None):
    """Return slices that come step by step as one table.

    Args:
        next_slices: returns the slices of the next step; None after the last.
        topics: all topics of all steps, because the steps share one dictionary of topics.
        layout: as in `ConsumerRecords.arrow`, and so are the others.
        views: whether to refer to keys and values instead of copying them.
        headers: whether there is a column of headers.
        columns: the columns, in this order.
        text: whether keys and values are strings.
        failures: gets the exceptions of streams; receivers get their texts only.
    """
    cdef ArrowSteps steps = ArrowSteps.__new__(ArrowSteps)
    steps.next_slices = next_slices
    steps.shape = arrow_records([], layout, views, headers, columns, text, failures)
    for topic in topics:
        steps.shape.know_topic(topic)
    return steps


@cython.final
cdef class ArrowRecords:
    """Records as a table for Arrow: pass it to `pyarrow.table`, polars, DuckDB, ..."""

    def __init__(self, *arguments, **named) -> None:
        raise TypeError("ArrowRecords come from ConsumerRecords.arrow()")

    def __reduce__(self):
        raise TypeError(
            "ArrowRecords refer to fetched buffers and cannot be pickled or copied: make a table "
            "of them, such as pyarrow.table(records), which can"
        )

    def __len__(self) -> int:
        cdef RecordSlice part
        cdef Py_ssize_t count = 0
        for part in self.slices:
            count += part.count
        return count

    cdef int know_topic(self, str topic) except -1:
        """Give a topic a place in the dictionary."""
        if topic not in self.topics:
            self.topics[topic] = len(self.names)
            self.names.append(topic.encode("utf-8", "replace"))
        return 0

    cdef ArrowRecords with_slices(self, list slices):
        """Return a table of the same shape with other rows."""
        cdef ArrowRecords table = ArrowRecords.__new__(ArrowRecords)
        table.slices = slices
        table.topics = self.topics
        table.names = self.names
        table.type = self.type
        table.failures = self.failures
        return table

    cdef int fill_schema(self, ArrowSchema* out) except -1:
        if not table_schema(out, &self.type):
            raise MemoryError
        return 0

    cdef Py_ssize_t chunk_end(self, Py_ssize_t first):
        """Return the number of the slice behind the chunk that begins with slice `first`."""
        cdef RecordSlice part
        cdef Py_ssize_t end = first
        cdef Py_ssize_t rows = 0
        cdef size_t size = 0
        while end < len(self.slices):
            part = <RecordSlice>self.slices[end]
            rows += part.count
            if part.count != 0 and not self.type.views:
                size += part.records.size // <size_t>part.records.count * <size_t>part.count
            if end > first and (rows > CHUNK_ROWS or size > CHUNK_BYTES):
                break
            end += 1
        return end

    cdef int fill_array(self, Py_ssize_t first, Py_ssize_t last, ArrowArray* out) except -1:
        """Make one array of the slices from `first` up to, but without, `last`."""
        cdef kf_table chunk
        cdef bint good
        memset(&chunk, 0, sizeof(kf_table))
        chunk.runs = <kf_run*>malloc(<size_t>(last - first + 1) * sizeof(kf_run))
        chunk.names = <const char**>malloc(<size_t>(len(self.names) + 1) * sizeof(char*))
        chunk.name_lens = <int32_t*>malloc(<size_t>(len(self.names) + 1) * sizeof(int32_t))
        try:
            if chunk.runs == NULL or chunk.names == NULL or chunk.name_lens == NULL:
                raise MemoryError
            self.describe(first, last, &chunk)
            with nogil:
                good = table_array(&chunk, out)
            if chunk.too_large:
                raise UsageError(
                    "more than 2 GiB in one column of one Arrow array: take the stream, as "
                    "to_arrow() and pyarrow.table() do, or views=True")
            if chunk.no_text:
                self.refuse_bytes(first, &chunk)
            if not good:
                raise MemoryError
            if self.type.views:
                keeper = [(<RecordSlice>part).records for part in self.slices[first:last]]
                keep(keeper, bytes_child(&chunk, KF_PART_KEY, out))
                keep(keeper, bytes_child(&chunk, KF_PART_VALUE, out))
        finally:
            free(chunk.runs)
            free(chunk.names)
            free(<void*>chunk.name_lens)
        return 0

    cdef int refuse_bytes(self, Py_ssize_t first, const kf_table* chunk) except -1:
        """Raise SerializationError for the key or value that is no text."""
        cdef RecordSlice part = <RecordSlice>self.slices[first + <Py_ssize_t>chunk.no_text_run]
        what = "key" if chunk.no_text_part == KF_PART_KEY else "value"
        offset = chunk.runs[chunk.no_text_run].spans[chunk.no_text_row].offset
        raise SerializationError(
            f"the {what} of {part.origin.topic}-{part.origin.partition} at offset {offset} is no "
            "UTF-8: without text=True the columns are binary")

    cdef int describe(self, Py_ssize_t first, Py_ssize_t last, kf_table* chunk) except -1:
        cdef RecordSlice part
        cdef BatchBytes source
        cdef kf_run* run
        cdef Py_ssize_t i
        cdef bytes name
        chunk.type = &self.type
        for i in range(first, last):
            part = <RecordSlice>self.slices[i]
            run = &chunk.runs[i - first]
            run.spans = part.records.spans + part.start
            run.count = part.count
            run.base = part.records.base
            run.size = part.records.size
            run.blob = run.base
            run.blob_size = run.size
            if isinstance(part.records.owner, BatchBytes):  # batches of one buffer share it
                source = <BatchBytes>part.records.owner
                if source.size <= INT32_MAX:
                    run.blob = source.data
                    run.blob_size = source.size
            run.partition = part.origin.partition
            run.topic = self.topics[part.origin.topic]
            run.timestamp_type = part.origin.timestamp_type
            chunk.rows += part.count
        chunk.run_count = last - first
        for i in range(len(self.names)):
            name = self.names[i]
            chunk.names[i] = name
            (<int32_t*>chunk.name_lens)[i] = <int32_t>len(name)
        chunk.name_count = len(self.names)
        return 0

    def __arrow_c_schema__(self):
        """Return the table's type as a PyCapsule."""
        capsule = PyCapsule_New(new_struct(sizeof(ArrowSchema)), b"arrow_schema", free_schema)
        self.fill_schema(<ArrowSchema*>PyCapsule_GetPointer(capsule, b"arrow_schema"))
        return capsule

    def __arrow_c_array__(self, requested_schema=None):
        """Return type and rows, all in one struct array, as PyCapsules.

        Raises:
            UsageError: a column has more than 2 GiB; the stream would split its rows.
        """
        capsule = PyCapsule_New(new_struct(sizeof(ArrowArray)), b"arrow_array", free_array)
        self.fill_array(0, len(self.slices),
                        <ArrowArray*>PyCapsule_GetPointer(capsule, b"arrow_array"))
        return self.__arrow_c_schema__(), capsule

    def __arrow_c_stream__(self, requested_schema=None):
        """Return the rows as a stream of chunks in a PyCapsule. A request for other types is
        ignored, as the interface allows."""
        return new_stream(self, None)

    def __repr__(self) -> str:
        return f"ArrowRecords({'spark' if self.type.is_spark else 'kafka'}, {len(self)} rows)"


@cython.final
cdef class ArrowSteps:
    """Records that come step by step as one table, with the memory of one step.

    A stream takes the remaining steps; a second stream goes on where the first one stopped.
    """

    cdef object next_slices
    cdef ArrowRecords shape      # of the table; it has no rows

    def __init__(self, *arguments, **named) -> None:
        raise TypeError("ArrowSteps come from RecordRange.arrow()")

    def __reduce__(self):
        raise TypeError(
            "ArrowSteps read as they go and cannot be pickled or copied: call read_range() where "
            "the records are needed"
        )

    def __arrow_c_schema__(self):
        """Return the table's type as a PyCapsule."""
        return self.shape.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema=None):
        """Return the remaining rows as a stream of chunks in a PyCapsule.

        A request for other types is ignored, as the interface allows.
        """
        return new_stream(self.shape, self.next_slices)

    def __repr__(self) -> str:
        return f"ArrowSteps({'spark' if self.shape.type.is_spark else 'kafka'})"


# ---- streams and releases: called from any thread, with or without the GIL ----

@cython.final
cdef class Feed:
    """A stream's place in its table."""

    cdef ArrowRecords table
    cdef Py_ssize_t done          # number of slices that were handed out
    cdef object next_slices       # returns the next step's slices; None: this is the only step
    cdef bytes error              # of the last call that failed

    cdef bint refill(self) except -1:
        """Go on with the next step; return whether there is one."""
        if self.next_slices is None:
            return False
        slices = self.next_slices()
        if slices is None:
            return False
        self.table = self.table.with_slices(slices)
        self.done = 0
        return True


cdef object new_stream(ArrowRecords table, object next_slices):
    cdef Feed feed = Feed.__new__(Feed)
    cdef ArrowArrayStream* stream
    feed.table = table
    feed.next_slices = next_slices
    capsule = PyCapsule_New(
        new_struct(sizeof(ArrowArrayStream)), b"arrow_array_stream", free_stream
    )
    stream = <ArrowArrayStream*>PyCapsule_GetPointer(capsule, b"arrow_array_stream")
    stream.get_schema = stream_schema
    stream.get_next = stream_next
    stream.get_last_error = stream_error
    stream.release = stream_release
    stream.private_data = <void*>feed
    Py_INCREF(feed)
    return capsule


cdef int stream_schema(ArrowArrayStream* stream, ArrowSchema* out) noexcept with gil:
    cdef Feed feed = <Feed>stream.private_data
    try:
        feed.table.fill_schema(out)
    except BaseException as error:
        return keep_error(feed, error)
    return 0


cdef int stream_next(ArrowArrayStream* stream, ArrowArray* out) noexcept with gil:
    cdef Feed feed = <Feed>stream.private_data
    cdef Py_ssize_t end
    out.release = NULL  # means the stream's end, if this stays
    try:
        end = feed.table.chunk_end(feed.done)
        while end == feed.done and feed.refill():
            end = feed.table.chunk_end(0)
        if end > feed.done:
            feed.table.fill_array(feed.done, end, out)
        feed.done = end
    except BaseException as error:
        return keep_error(feed, error)
    return 0


cdef int keep_error(Feed feed, object error):
    feed.error = f"{type(error).__name__}: {error}".encode()
    if feed.table.failures is not None:
        feed.table.failures.append(error)
    if isinstance(error, KeyboardInterrupt):
        PyErr_SetInterrupt()  # the receiver gets only a text: raise the interrupt again
    return ENOMEM if isinstance(error, MemoryError) else EIO


cdef const char* stream_error(ArrowArrayStream* stream) noexcept with gil:
    cdef Feed feed = <Feed>stream.private_data
    if feed.error is None:
        return NULL
    return PyBytes_AS_STRING(feed.error)


cdef void stream_release(ArrowArrayStream* stream) noexcept nogil:
    drop_keeper(stream.private_data)
    stream.release = NULL


cdef int keep(list keeper, ArrowArray* column) except -1:
    """Let a column, if there is such a column, keep the bytes that its views point into."""
    if column == NULL:
        return 0
    Py_INCREF(keeper)
    kf_array_keep(column, <void*>keeper, drop_keeper)
    return 0


cdef void drop_keeper(void* keeper) noexcept nogil:
    if Py_IsInitialized():  # otherwise the interpreter's end has freed everything
        drop_object(keeper)


cdef void drop_object(void* kept) noexcept with gil:
    Py_DECREF(<object>kept)


cdef void* new_struct(size_t size) except NULL:
    cdef void* made = calloc(1, size)
    if made == NULL:
        raise MemoryError
    return made


cdef void free_schema(object capsule) noexcept:
    cdef ArrowSchema* schema = <ArrowSchema*>PyCapsule_GetPointer(capsule, b"arrow_schema")
    kf_schema_release(schema)
    free(schema)


cdef void free_array(object capsule) noexcept:
    cdef ArrowArray* array = <ArrowArray*>PyCapsule_GetPointer(capsule, b"arrow_array")
    kf_array_release(array)
    free(array)


cdef void free_stream(object capsule) noexcept:
    cdef ArrowArrayStream* stream = <ArrowArrayStream*>PyCapsule_GetPointer(
        capsule, b"arrow_array_stream"
    )
    if stream.release != NULL:
        stream.release(stream)
    free(stream)


name_type(ArrowRecords, "kafka_fast")
refuse_new(ArrowRecords, "ArrowRecords come from ConsumerRecords.arrow()")
name_type(ArrowSteps, "kafka_fast")
refuse_new(ArrowSteps, "ArrowSteps come from RecordRange.arrow()")
