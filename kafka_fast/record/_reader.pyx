"""Find the record batches in a buffer, and open them.

    bytes ──read_batches──▶ RecordBatch (a view) ──records()──▶ Records ──▶ Record, list, column
             length, magic          header        CRC, decompress, scan        on demand

Nothing is copied early: a batch is a view that keeps its buffer alive, and `Records` is an array of
spans over the batch (or over its decompressed records). Everything is checked before its use, in
this order: length, CRC, decompressed size, structure. Bad bytes raise a CorruptBatchError that
names the batch by its offset.

`_legacy` reads message formats v0 and v1 (before Kafka 0.11) into the same classes.
"""

cimport cython
from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory, PyMemoryView_FromObject
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kafka_fast._wire._checksum cimport crc32c_update
from kafka_fast.record._layout cimport (
    KF_ATTRIBUTE_CODEC, KF_ATTRIBUTE_CONTROL, KF_ATTRIBUTE_LOG_APPEND_TIME,
    KF_ATTRIBUTE_TRANSACTIONAL, KF_BATCH_HEADER_SIZE, KF_BATCH_LENGTH_PREFIX,
    KF_BATCH_MAGIC, KF_BATCH_POS_ATTRIBUTES, KF_BATCH_POS_MAGIC,
    KF_SCAN_OK, kf_batch_header, kf_batch_header_read, kf_read_i8, kf_read_i16, kf_read_i32,
    kf_read_i64, kf_reader, kf_reader_of, kf_scan_error, kf_scan_promise, kf_scan_records,
    kf_scan_text, kf_span,
)
from kafka_fast.record._compress cimport (
    KF_CODEC_ZSTD, Plain, codec_is_native, decompress_plain, kf_codec,
)
from kafka_fast.record._records cimport Records, new_records

from zlib import crc32

from kafka_fast._hints import name_type, refuse_new
from kafka_fast.errors import CorruptBatchError
from kafka_fast.record._compress import OverLimitError
from kafka_fast.record.compression import MAX_SIZE, PLACES_SIZE, output_limit, too_large, unpack
from kafka_fast.record.types import Codec, ControlRecord, ControlType, TimestampType

cdef str LIMIT_NAME = "max.decompressed.batch.bytes"

cdef enum:
    # A smaller batch takes 0.1 ms. A thread that releases the GIL beside a busy thread gets the GIL
    # back after a switch interval, 5 ms.
    NOGIL_SIZE = 1024 * 1024
    LEGACY_SIZE_MIN = 26  # offset, size, crc, magic, attributes, null key and null value of v0
    LEGACY_ATTRIBUTES = KF_ATTRIBUTE_CODEC | KF_ATTRIBUTE_LOG_APPEND_TIME
    NO_TIMESTAMP = -1
    ABORT = 0
    COMMIT = 1


@cython.final
cdef class BatchBytes:
    """A buffer that is held. Its batches and records keep this object, and so the bytes."""

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)


cdef BatchBytes source_of(object owner, const uint8_t* data, size_t size):
    cdef BatchBytes source = BatchBytes.__new__(BatchBytes)
    source.owner = owner
    source.data = data
    source.size = size
    return source


cdef BatchBytes source_in(object exporter):
    """Hold an object's buffer."""
    cdef BatchBytes source = BatchBytes.__new__(BatchBytes)
    PyObject_GetBuffer(exporter, &source.view, PyBUF_SIMPLE)
    source.held = True
    source.data = <const uint8_t*>source.view.buf
    source.size = <size_t>source.view.len
    return source


@cython.final
@cython.freelist(64)
cdef class RecordBatch:
    """One batch of a log, as a view on its buffer.

    In message formats v0 and v1 each outer message is a batch of its own. Its `base_offset` is the
    message's offset, which is the last record's if the message wraps several. Fields that the
    format lacks read as -1.
    """

    def __init__(self, *arguments, **named) -> None:
        raise TypeError("a RecordBatch comes from read_batches()")

    def __reduce__(self):
        raise TypeError(
            "a RecordBatch is a view on its buffer and cannot be pickled or copied: use "
            "bytes(batch.data), and read_batches() where it is needed"
        )

    @property
    def base_offset(self) -> int:
        """Log offset of the first record; unchanged when compaction removes that record."""
        return self.header.base_offset

    @property
    def last_offset(self) -> int:
        """Log offset of the last record, even if compaction has removed it."""
        return self.header.base_offset + self.header.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset at which a reader goes on after this batch."""
        return self.last_offset + 1

    @property
    def size(self) -> int:
        """Bytes of the whole batch, its length prefix included."""
        return self.size_

    @property
    def data(self) -> memoryview:
        """The whole batch, read-only."""
        return self.tail(0)

    @property
    def magic(self) -> int:
        """Message format: 0, 1 or 2."""
        return self.header.magic

    @property
    def crc(self) -> int:
        """The CRC that the batch carries; see check_crc()."""
        return self.header.crc

    @property
    def attributes(self) -> int:
        """The raw attributes: codec, kind of timestamp, transactional, control."""
        return self.header.attributes

    @property
    def codec(self) -> Codec:
        """How the records are compressed.

        Raises:
            CorruptBatchError: the batch names a codec that does not exist.
        """
        cdef int codec = self.header.attributes & KF_ATTRIBUTE_CODEC
        try:
            return Codec(codec)
        except ValueError:
            raise self.corrupt(f"is compressed with unknown codec {codec}") from None

    @property
    def timestamp_type(self) -> TimestampType:
        """Who gave the records their timestamps."""
        return TimestampType((self.header.attributes & KF_ATTRIBUTE_LOG_APPEND_TIME) != 0)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return (self.header.attributes & KF_ATTRIBUTE_TRANSACTIONAL) != 0

    @property
    def is_control(self) -> bool:
        """Whether this is a control batch, which holds no data but ends a transaction."""
        return (self.header.attributes & KF_ATTRIBUTE_CONTROL) != 0

    @property
    def leader_epoch(self) -> int:
        """Epoch of the leader that wrote the batch, or -1."""
        return self.header.leader_epoch

    @property
    def base_timestamp(self) -> int:
        """Timestamp of the first record, Unix ms."""
        return self.header.base_timestamp

    @property
    def max_timestamp(self) -> int:
        """Largest timestamp of the records; with LOG_APPEND_TIME the timestamp of all records."""
        return self.header.max_timestamp

    @property
    def producer_id(self) -> int:
        """Id of the idempotent producer, or -1."""
        return self.header.producer_id

    @property
    def producer_epoch(self) -> int:
        """Epoch of the idempotent producer, or -1."""
        return self.header.producer_epoch

    @property
    def base_sequence(self) -> int:
        """Sequence number of the first record, or -1."""
        return self.header.base_sequence

    @property
    def record_count(self) -> int:
        """Number of records in the header; -1 for a compressed message of v0 or v1."""
        return self.header.record_count

    cdef object tail(self, size_t skipped):
        """Return a view of the batch without its first `skipped` bytes. If no Python object exports
        the bytes, the view is of a copy."""
        cdef size_t start = <size_t>(self.data - self.source.data)
        if not self.source.held:
            return memoryview(PyBytes_FromStringAndSize(
                <const char*>self.data + skipped, <Py_ssize_t>(self.size_ - skipped)
            ))
        whole = PyMemoryView_FromObject(<object>self.source.view.obj).cast("B").toreadonly()
        return whole[start + skipped:start + self.size_]

    cdef object corrupt(self, str what):
        return CorruptBatchError(f"record batch at offset {self.header.base_offset} {what}")

    def check_crc(self) -> None:
        """Compare the CRC with the bytes; a second call does nothing.

        Raises:
            CorruptBatchError: the CRC is wrong.
        """
        cdef const uint8_t* start = self.data + KF_BATCH_POS_ATTRIBUTES
        cdef size_t size = self.size_ - KF_BATCH_POS_ATTRIBUTES
        cdef uint32_t crc
        if self.crc_good:
            return
        if self.header.magic < KF_BATCH_MAGIC:
            crc = legacy_crc(self.data, self.size_)
        elif size < NOGIL_SIZE:
            crc = crc32c_update(0, start, size)
        else:
            with nogil:
                crc = crc32c_update(0, start, size)
        if crc != self.header.crc:
            raise self.corrupt(f"has CRC {self.header.crc:#010x}, but its bytes give {crc:#010x}")
        self.crc_good = True

    def records(self, *, bint check_crc=True, Py_ssize_t max_size=MAX_SIZE) -> Records:
        """Check, decompress and scan the batch; return its records.

        Args:
            check_crc: whether to check the CRC. Without it the structure is checked all the same.
            max_size: most bytes that decompression may give.

        Raises:
            CorruptBatchError: wrong CRC, malformed records, or more than `max_size` bytes.
            UsageError: the codec's library is missing; the message names what to install.
        """
        return self.opened(check_crc, max_size)

    cdef Records opened(self, bint check_crc, Py_ssize_t max_size):
        if check_crc:
            self.check_crc()
        if self.header.magic < KF_BATCH_MAGIC:
            from kafka_fast.record._legacy import read_messages
            return read_messages(self, check_crc, max_size)
        return self.scan(max_size)

    cdef Records scan(self, Py_ssize_t max_size):
        cdef const uint8_t* base = self.data + KF_BATCH_HEADER_SIZE
        cdef size_t size = self.size_ - KF_BATCH_HEADER_SIZE
        cdef object owner = self.source
        cdef Plain plain
        cdef int codec = self.header.attributes & KF_ATTRIBUTE_CODEC
        if codec > KF_CODEC_ZSTD:
            self.codec  # raises
        if codec != 0 and size != 0:  # an empty batch keeps the codec it had before compaction
            plain = self.decompressed(KF_BATCH_HEADER_SIZE, size, max_size)
            owner = plain
            base = plain.out.data
            size = plain.out.size
        cdef kf_scan_error error = kf_scan_promise(&self.header, size)
        if error != KF_SCAN_OK:
            raise self.corrupt(kf_scan_text(error).decode())
        if codec != 0:
            self.check_places(size, self.header.record_count, max_size)
        cdef Records records = new_records(owner, base, size, self.header.record_count)
        cdef kf_reader reader = kf_reader_of(base, size)
        cdef int32_t scanned = 0
        if size < NOGIL_SIZE:
            error = kf_scan_records(&reader, &self.header, records.spans, &scanned)
        else:
            with nogil:
                error = kf_scan_records(&reader, &self.header, records.spans, &scanned)
        if error != KF_SCAN_OK:
            raise self.corrupt(
                f"{kf_scan_text(error).decode()} (record {scanned} of {self.header.record_count})"
            )
        return records

    cdef Plain decompressed(self, size_t start, size_t size, Py_ssize_t max_size):
        """Return `size` bytes of the batch, from `start` on, decompressed."""
        cdef kf_codec codec = <kf_codec>(self.header.attributes & KF_ATTRIBUTE_CODEC)
        limit = output_limit(size, max_size)
        try:
            if codec_is_native(codec):
                return decompress_plain(codec, self.data + start, size, limit, self.header.magic)
            return unpack(codec, self.tail(start)[:size], limit, self.header.magic)
        except OverLimitError as cause:
            why = too_large(codec, self.tail(start)[:size], max_size, LIMIT_NAME)
            raise self.corrupt(f"cannot be decompressed: {why}") from cause
        except CorruptBatchError as cause:
            raise self.corrupt(f"cannot be decompressed: {cause}") from cause

    cdef int check_places(self, size_t size, int64_t count, Py_ssize_t max_size) except -1:
        """Raise if decompressed bytes hold so many records that their places take too much memory.

        A bomb may give what is allowed, and be records without key and value throughout.
        """
        cdef int64_t places = count * <int64_t>sizeof(kf_span)
        if <int64_t>size + places > max_size + <int64_t>PLACES_SIZE:
            raise self.corrupt(
                f"cannot be read: it gives {size} bytes, and the places of its {count} "
                f"records take {places}, together more than {LIMIT_NAME} ({max_size}) and "
                f"{PLACES_SIZE} bytes"
            )
        return 0

    def control_record(self) -> ControlRecord:
        """Read the only record of a control batch.

        Raises:
            CorruptBatchError: this is no control batch, or not one well-formed control record.
        """
        if not self.is_control:
            raise self.corrupt("is not a control batch")
        if self.header.attributes & KF_ATTRIBUTE_CODEC != 0:
            raise self.corrupt("is a control batch, but compressed")
        cdef Records records = self.records()
        if records.count != 1:
            raise self.corrupt(f"is a control batch with {records.count} records instead of one")
        cdef kf_span* span = &records.spans[0]
        # A negative length (null) makes the reader's first read fail, as a short key does.
        cdef kf_reader key = kf_reader_of(records.base + span.key_pos, max(span.key_len, 0))
        cdef kf_reader value = kf_reader_of(records.base + span.value_pos, max(span.value_len, 0))
        cdef int version = kf_read_i16(&key)
        cdef int kind = kf_read_i16(&key)
        if key.bad or version < 0:
            raise self.corrupt("has a control record with a malformed key")
        if kind != ABORT and kind != COMMIT:
            return ControlRecord(kind, version, -1)
        version = kf_read_i16(&value)
        cdef int32_t epoch = kf_read_i32(&value)
        if value.bad or version < 0:
            raise self.corrupt("has a control record with a malformed value")
        return ControlRecord(ControlType(kind), version, epoch)

    def __repr__(self) -> str:
        return (
            f"RecordBatch(magic={self.magic}, offsets={self.base_offset}..{self.last_offset}, "
            f"records={self.record_count}, size={self.size})"
        )


cdef uint32_t legacy_crc(const uint8_t* data, size_t size):
    """Return the CRC of a message of v0 or v1: zlib's CRC-32 of all bytes after the CRC field."""
    return crc32(PyMemoryView_FromMemory(
        <char*>data + KF_BATCH_POS_MAGIC, <Py_ssize_t>(size - KF_BATCH_POS_MAGIC), PyBUF_READ
    ))


cdef int read_header(RecordBatch batch) except -1:
    """Fill `batch.header` from the `batch.size_` bytes at `batch.data`."""
    cdef kf_reader reader = kf_reader_of(batch.data, batch.size_)
    cdef kf_batch_header* header = &batch.header
    if batch.data[KF_BATCH_POS_MAGIC] == KF_BATCH_MAGIC:
        if batch.size_ < KF_BATCH_HEADER_SIZE:
            raise batch.corrupt(
                f"is {batch.size_} bytes long, shorter than the {KF_BATCH_HEADER_SIZE} bytes of a "
                "batch header"
            )
        kf_batch_header_read(&reader, header)
        return 0
    header.base_offset = kf_read_i64(&reader)
    header.length = kf_read_i32(&reader)
    header.crc = <uint32_t>kf_read_i32(&reader)
    header.magic = kf_read_i8(&reader)
    header.attributes = kf_read_i8(&reader) & LEGACY_ATTRIBUTES
    header.base_timestamp = kf_read_i64(&reader) if header.magic == 1 else NO_TIMESTAMP
    if reader.bad:
        raise batch.corrupt(f"is {batch.size_} bytes long, too short for message format v1")
    if header.magic == 0:
        header.attributes &= KF_ATTRIBUTE_CODEC
    header.max_timestamp = header.base_timestamp
    header.leader_epoch = -1
    header.last_offset_delta = 0
    header.producer_id = -1
    header.producer_epoch = -1
    header.base_sequence = -1
    header.record_count = -1 if header.attributes & KF_ATTRIBUTE_CODEC != 0 else 1
    return 0


cdef RecordBatch batch_at(BatchBytes source, const uint8_t* data, size_t left):
    cdef kf_reader reader = kf_reader_of(data, left)
    cdef RecordBatch batch
    cdef int64_t size
    if left < KF_BATCH_LENGTH_PREFIX:
        return None
    batch = RecordBatch.__new__(RecordBatch)
    batch.source = source
    batch.data = data
    batch.header.base_offset = kf_read_i64(&reader)
    size = <int64_t>kf_read_i32(&reader) + KF_BATCH_LENGTH_PREFIX
    if size < LEGACY_SIZE_MIN:
        raise batch.corrupt(
            f"announces {size - KF_BATCH_LENGTH_PREFIX} bytes, fewer than any batch has"
        )
    if left > KF_BATCH_POS_MAGIC and data[KF_BATCH_POS_MAGIC] > KF_BATCH_MAGIC:
        raise batch.corrupt(
            f"has magic {<int8_t>data[KF_BATCH_POS_MAGIC]}; only message formats 0, 1 and 2 exist"
        )
    if <uint64_t>size > left:
        return None
    batch.size_ = <size_t>size
    read_header(batch)
    return batch


@cython.final
cdef class RecordBatches:
    """The batches of one buffer, in order, and an incomplete batch that may end the buffer.

    Attributes:
        partial: the bytes after the last whole batch; empty if there are none. A broker cuts at the
            fetch size, so an incomplete last batch is no error.
        partial_size: size of the incomplete batch as a whole; None if its length is missing, too.
    """

    cdef readonly tuple batches
    cdef readonly object partial
    cdef readonly object partial_size

    def __init__(self, batches, partial, partial_size) -> None:
        self.batches = tuple(batches)
        self.partial = partial
        self.partial_size = partial_size

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self):
        return iter(self.batches)

    def __getitem__(self, index):
        return self.batches[index]

    def __repr__(self) -> str:
        return f"RecordBatches({list(self.batches)!r}, partial={len(self.partial)} bytes)"


def read_batches(object data not None) -> RecordBatches:
    """Split a buffer, as in Fetch responses and log segments, into its batches.

    Each batch is read by its own magic byte, so message formats may be mixed. Only lengths and
    magic are checked here; RecordBatch.records() checks the rest.

    Args:
        data: any object with a contiguous buffer. The object is kept alive, and locked against
            resizing, until the last batch and the last Records of an uncompressed batch are gone.

    Raises:
        CorruptBatchError: a length below the smallest batch, or an unknown magic.
    """
    cdef BatchBytes source = source_in(data)
    cdef const uint8_t* at = source.data
    cdef size_t left = source.size
    cdef kf_reader reader
    cdef RecordBatch batch
    batches = []
    partial_size = None
    while left >= KF_BATCH_LENGTH_PREFIX:
        batch = batch_at(source, at, left)
        if batch is None:
            reader = kf_reader_of(at, left)
            kf_read_i64(&reader)
            partial_size = <int64_t>kf_read_i32(&reader) + KF_BATCH_LENGTH_PREFIX
            break
        batches.append(batch)
        at += batch.size_
        left -= batch.size_
    rest = PyMemoryView_FromObject(data).cast("B").toreadonly()
    return RecordBatches(batches, rest[source.size - left:], partial_size)


name_type(RecordBatch, "kafka_fast.record")
refuse_new(RecordBatch, "a RecordBatch comes from read_batches()")
name_type(RecordBatches, "kafka_fast.record")
