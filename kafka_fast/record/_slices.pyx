"""Slices: ranges of records in a batch, with the partition that the records come from.

Records are passed on as slices. So a batch is scanned once, and a record's objects are made only
when the user asks for them.
"""

cimport cython
from libc.stdint cimport int8_t, int32_t, int64_t

from kafka_fast.record._reader cimport RecordBatch
from kafka_fast.record._records cimport Records


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class Origin:
    """Topic, partition, leader epoch and kind of timestamp of a batch's records."""

    def __init__(self, *arguments, **named) -> None:
        raise TypeError("an Origin belongs to records that were read")


@cython.final
@cython.freelist(64)
cdef class RecordSlice:
    """Some of the records of one batch, in their order."""

    def __init__(self, *arguments, **named) -> None:
        raise TypeError("a RecordSlice comes from slice_of() or a PartitionReader")

    def __len__(self) -> int:
        return self.count

    cdef RecordSlice part(self, Py_ssize_t start, Py_ssize_t count):
        """Return a part of the slice. Only a part up to the end keeps the slice's next offset."""
        cdef Py_ssize_t first = self.start + start
        cdef RecordSlice part
        if count == self.count:
            return self
        part = new_slice(self.origin, self.records, first, count, self.next_offset)
        if start + count != self.count:
            part.next_offset = self.records.spans[first + count - 1].offset + 1
        if self.key_objects is not None:
            part.key_objects = self.key_objects[start:start + count]
        if self.value_objects is not None:
            part.value_objects = self.value_objects[start:start + count]
        return part


cdef Origin new_origin(str topic, int32_t partition, int32_t leader_epoch, int8_t timestamp_type):
    cdef Origin origin = Origin.__new__(Origin)
    origin.topic = topic
    origin.partition = partition
    origin.leader_epoch = leader_epoch
    origin.timestamp_type = timestamp_type
    return origin


cdef RecordSlice new_slice(Origin origin, Records records, Py_ssize_t start, Py_ssize_t count,
                           int64_t next_offset):
    cdef RecordSlice made = RecordSlice.__new__(RecordSlice)
    made.origin = origin
    made.records = records
    made.start = start
    made.count = count
    made.next_offset = next_offset
    return made


def slice_of(
    RecordBatch batch not None, str topic not None, int32_t partition, *, bint check_crc=True
) -> RecordSlice:
    """Return all records of a batch as a slice of the given partition.

    Raises:
        CorruptBatchError: as RecordBatch.records().
    """
    cdef Records records = batch.records(check_crc=check_crc)
    cdef Origin origin = new_origin(
        topic, partition, batch.header.leader_epoch, <int8_t>batch.timestamp_type
    )
    return new_slice(origin, records, 0, records.count, batch.next_offset)
