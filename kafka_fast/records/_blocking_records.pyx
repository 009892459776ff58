"""What `for record in consumer` iterates over: one record after the other, without end.

    __next__ ─┬─► the next record of the poll, at once
              └─► `ask`: the first record, or a record that needs attention

Thread: the consumer's user.
"""

cimport cython

from kafka_fast.records._consumer_record cimport ConsumerRecord
from kafka_fast.records._consumer_records cimport RecordIterator, record_at
from kafka_fast.records._record_loop cimport RecordLoop

from kafka_fast._hints import name_type, refuse_new, refused_new


@cython.final
cdef class BlockingRecords(RecordLoop):
    """The iterator of one loop.

    Args:
        records: what all loops of the consumer take their records from, and wait for them in.
        ask: called before the first record, and before a record that needs attention: another
            loop or a poll has taken records since, or the consumer was woken. Is told whether the
            record is the first. May raise.
        frame: the frame whose `for` statement runs this loop; None: not known.
    """

    cdef object ask

    def __init__(self, RecordIterator records not None, object ask=None, object frame=None):
        if ask is None:
            refused_new(BlockingRecords)
        RecordLoop.__init__(self, records, frame)
        self.ask = ask

    def __iter__(self):
        return self

    def __next__(self) -> ConsumerRecord:
        # As `take`, without its call and without a reference to `records`: most records come here.
        cdef Py_ssize_t index = self.records.index
        if self.records.asker == <void*>self and index < self.records.end:
            self.records.index = index + 1
            return record_at(self.records.part, index)
        cdef bint is_first = self.begin_next()
        if not self.is_undisturbed():
            self.ask(is_first)
        return self.take_next()


name_type(BlockingRecords, "kafka_fast")
refuse_new(BlockingRecords, "a loop is begun by iter(consumer)")
